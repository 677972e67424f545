/** Reputation: how mailbox providers treat the mail, by domain, address and provider; blocklists; changes since yesterday. */
import { useQuery } from '@tanstack/react-query'
import { get } from '../api-client.ts'
import type { ReputationRetrieveData } from '../api-types.ts'
import { Badge, Button, Empty, Heading, Problem, Section, Warning } from '../parts/basic-components.tsx'
import { Figure, Figures, fillOfRate, percent, tablePercent } from '../parts/chart.tsx'
import { Columns, type Series } from '../parts/columns-chart.tsx'
import { DataTable, Table, TableSkeleton } from '../parts/data-table.tsx'
import { Select } from '../parts/form-controls.tsx'
import { limits, RateFigure } from '../parts/rate-figure.tsx'
import { attemptsOf, type Figured as Counts, columnsOf, complaintRate, type Grouping, groupName } from '../parts/reputation-columns.tsx'
import { Sources } from '../parts/source-addresses.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.reputation
const periods = ['7', '30', '90']
const usualDays = '7'
const groupings = ['domain', 'source', 'provider'] as const
const dayMs = 86_400_000
const everyMs = 60_000

type Day = ReputationRetrieveData['days'][number]
const groupingOf = (given: string | undefined): Grouping => groupings.find((one) => one === given) ?? 'domain'

export function ReputationPage() {
  const { scoped } = useHere()
  const [filters, change] = useFilters()
  const days = periods.find((one) => one === filters.days) ?? usualDays
  const groupBy = groupingOf(filters.by)
  const isTest = filters.mail === 'test'
  const path = scoped('/v1/reputation', { days, groupBy, test: String(isTest) })
  const { data, error } = useQuery({
    queryKey: ['reputation', path],
    queryFn: () => get<ReputationRetrieveData>(path),
    refetchInterval: everyMs,
  })
  return (
    <>
      <Heading
        title={texts.pages.reputation}
        about={
          data && data.findings.length === 0 && !isOver(data) && !isInClear(data.totals) ? `${words.about} ${words.unchanged}` : words.about
        }
      >
        <Select
          bare
          label={texts.mail.label}
          value={isTest ? 'test' : 'live'}
          choices={[
            { value: 'live', label: texts.mail.live },
            { value: 'test', label: texts.mail.test },
          ]}
          onChange={(next) => change({ mail: next === 'test' ? next : undefined })}
        />
        <Select
          bare
          label={words.days}
          value={days}
          choices={periods.map((value) => ({ value, label: words.lastDays(value) }))}
          onChange={(next) => change({ days: next })}
        />
      </Heading>
      <Problem error={error} />
      {!data && !error && <TableSkeleton />}
      {data && (
        <>
          {isOver(data) && <Over data={data} />}
          {isInClear(data.totals) && (
            <Warning>{words.inClear(tablePercent(data.totals.accepted - data.totals.secured, data.totals.accepted))}</Warning>
          )}
          {data.findings.length > 0 && <Changes findings={data.findings} />}
          {attemptsOf(data.totals) + data.totals.bounced + data.totals.complained > 0 ? (
            <Figured data={data} onGroup={(by) => change({ by })} />
          ) : (
            <Nothing isTest={isTest} onTest={() => change({ mail: 'test' })} />
          )}
          {data.sources.length > 0 && <Sources sources={data.sources} />}
        </>
      )}
    </>
  )
}

const Nothing = ({ isTest, onTest }: { isTest: boolean; onTest: () => void }) => (
  <Empty>
    <span className="block">{isTest ? words.none : words.noneLive}</span>
    {!isTest && (
      <span className="mt-3 block">
        <Button onClick={onTest}>{texts.mail.showTest}</Button>
      </span>
    )}
  </Empty>
)

const overIn = ({ groups }: Pick<ReputationRetrieveData, 'groups'>) => groups.filter((one) => complaintRate(one) >= limits.complaints.most)

const isOver = (data: ReputationRetrieveData) => complaintRate(data.totals) >= limits.complaints.most || overIn(data).length > 0

/** The verdict before the figures: who is over the limit of complaints. */
function Over({ data }: { data: ReputationRetrieveData }) {
  const names = overIn(data).map(({ name }) => groupName(data.groupBy, name))
  return (
    <Warning tone={complaintRate(data.totals) >= limits.complaints.most ? 'bad' : 'wait'}>
      {words.overLimit(`${limits.complaints.most}%`, names.slice(0, maxNamed).join(', '))}
      {names.length > maxNamed && ` ${texts.overview.andMore(names.length - maxNamed)}`}
    </Warning>
  )
}
const maxNamed = 5

function Changes({ findings }: Pick<ReputationRetrieveData, 'findings'>) {
  const { tenants, nameOf } = useHere()
  return (
    <section className="mb-6">
      <h2 className="mb-2 text-base font-semibold">{words.changes}</h2>
      <ul className="divide-y divide-line rounded-lg border border-line text-sm">
        {findings.map(({ kind, severity, tenantId, domain, source, provider, blocklist, text }) => (
          <li key={[kind, tenantId, domain, source, provider, blocklist].join(' ')} className="flex gap-2 px-4 py-2.5">
            <span className="shrink-0">
              <Badge tone={severity === 'problem' ? 'bad' : 'wait'}>{words.severity[severity]}</Badge>
            </span>
            <span className="min-w-0 [overflow-wrap:anywhere]">
              {text}
              {tenantId !== null && tenants.length > 1 && <span className="text-soft"> · {words.ofTenant(nameOf(tenantId))}</span>}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Figured({ data, onGroup }: { data: ReputationRetrieveData; onGroup: (by: string) => void }) {
  const { totals, groupBy, groups, moreGroups } = data
  const attempts = attemptsOf(totals)
  return (
    <>
      <div className="flex flex-col gap-3">
        <Figures>
          <Figure
            name={words.accepted}
            value={tablePercent(totals.accepted, attempts)}
            note={words.ofAttempts(attempts.toLocaleString())}
          />
          <Figure name={words.deferred} value={tablePercent(totals.deferred, attempts)} note={words.deferredHelp} />
          <Figure name={words.blocked} value={tablePercent(totals.blocked, attempts)} note={words.blockedHelp} />
          <RateFigure name={texts.chart.complaintRate} part={totals.complained} whole={totals.accepted} limits={limits.complaints} />
        </Figures>
        <Figures columns={3}>
          <Figure isSmall name={words.bounced} value={totals.bounced.toLocaleString()} note={words.bouncedHelp} />
          <Figure
            isSmall
            name={words.tls}
            value={tablePercent(totals.secured, totals.accepted)}
            note={words.tlsHelp}
            {...(isInClear(totals) ? { tone: 'wait', note: words.tlsLow } : {})}
          />
          <Figure
            isSmall
            name={words.dmarc}
            value={totals.dmarc === null ? '–' : tablePercent(totals.dmarc.aligned, totals.dmarc.messages)}
            note={totals.dmarc === null ? words.noDmarc : words.dmarcHelp}
          />
        </Figures>
      </div>
      <Charts data={data} />
      <Section
        title={words.by[groupBy]}
        aside={
          <Select
            bare
            label={words.groupBy}
            value={groupBy}
            choices={groupings.map((value) => ({ value, label: words.groupings[value] }))}
            onChange={onGroup}
          />
        }
      >
        <DataTable
          label={words.groupings[groupBy]}
          columns={columnsOf(groupBy, groups)}
          items={groups}
          keyOf={({ name }) => name}
          isWhole
          sortedBy={words.complaints}
        />
        {moreGroups > 0 && <p className="mt-2 text-xs text-soft">{words.moreGroups(moreGroups)}</p>}
      </Section>
    </>
  )
}

/** Most mailbox providers offer TLS, so that a lower share names a fault. */
const tlsAtLeast = 0.9

const isInClear = ({ accepted, secured }: ReputationRetrieveData['totals']) => accepted > 0 && secured < accepted * tlsAtLeast

const daysOf = (firstMs: number, lastMs: number) =>
  Array.from({ length: Math.round((lastMs - firstMs) / dayMs) + 1 }, (_, index) => new Date(firstMs + index * dayMs))

/** Days without figures are absent in the answer, and empty in the charts. */
function Charts({ data: { from, to, days, totals } }: { data: ReputationRetrieveData }) {
  const known = new Map(days.map((one) => [one.day, one]))
  const times = daysOf(Date.parse(from), Date.parse(to))
  const values = (pick: (one: Day) => number) =>
    times.map((time) => {
      const one = known.get(time.toISOString().slice(0, 10))
      return one ? pick(one) : 0
    })
  const attempts = attemptsOf(totals)
  const series = (key: keyof Counts, fill: Series['fill']): Series => ({
    name: words[key],
    fill,
    values: values((one) => one[key]),
    note: `${totals[key].toLocaleString()} (${tablePercent(totals[key], attempts)})`,
  })
  const { high, most } = limits.complaints
  const fillOf = fillOfRate(limits.complaints)
  const rates = values((one) => (one.accepted === 0 ? 0 : (one.complained / one.accepted) * 100))
  // On a larger scale the two lines would meet.
  const isFar = Math.max(...rates) > most * headroom
  const limitLines = [
    ...(isFar ? [] : [{ value: high, name: texts.chart.highFrom(`${high}%`), tone: 'wait' as const }]),
    { value: most, name: texts.chart.limit(`${most}%`), tone: 'bad' as const },
  ]
  return (
    <>
      <Section title={words.overTime}>
        <Columns
          label={words.overTime}
          times={times}
          isHourly={false}
          isUtc
          series={[series('accepted', 'good'), series('deferred', 'wait'), series('failed', 'bad'), series('blocked', 'complaint')]}
        />
      </Section>
      <Section title={words.complaintsOverTime}>
        <Columns
          label={words.complaintsOverTime}
          times={times}
          isHourly={false}
          isUtc
          isSmall
          unit="%"
          atLeast={most * headroom}
          limits={limitLines}
          series={[
            {
              name: texts.chart.complaintRate,
              fill: fillOf((totals.complained / Math.max(1, totals.accepted)) * 100),
              fillOf,
              values: rates,
              note: percent(totals.complained, totals.accepted),
            },
          ]}
        />
        <DaysTable days={days} />
      </Section>
    </>
  )
}
const headroom = 1.3

const tableColumns = ['accepted', 'deferred', 'failed', 'blocked', 'bounced'] as const

const DaysTable = ({ days }: { days: readonly Day[] }) => (
  <details className="mt-3">
    <summary className="w-fit text-xs text-soft hover:text-ink">{words.asTable}</summary>
    <div className="mt-2">
      <Table label={words.overTime} columns={[words.day, ...tableColumns.map((key) => words[key]), words.complaints]}>
        {days.map((one) => (
          <tr key={one.day}>
            <td className="whitespace-nowrap">{one.day}</td>
            {tableColumns.map((key) => (
              <td key={key} className="tabular-nums">
                {one[key].toLocaleString()}
              </td>
            ))}
            <td className="tabular-nums">{one.complained.toLocaleString()}</td>
          </tr>
        ))}
      </Table>
    </div>
  </details>
)
