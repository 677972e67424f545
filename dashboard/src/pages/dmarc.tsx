/** DMARC and TLS reports about a sending domain: the next step with its evidence, who sends as the domain, and failed TLS sessions. */
import { useQuery } from '@tanstack/react-query'
import { get, withQuery } from '../api-client.ts'
import type { DomainsListData, DomainsRetrieveDmarcData, DomainsRetrieveTlsReportsData } from '../api-types.ts'
import { Badge, Empty, Heading, OnPhone, Problem, Section } from '../parts/basic-components.tsx'
import { Figure, Figures, percent, tablePercent } from '../parts/chart.tsx'
import { Columns, type Fill } from '../parts/columns-chart.tsx'
import { type Column, DataTable, Table, TableSkeleton } from '../parts/data-table.tsx'
import { AdviceCard, RecordLines } from '../parts/dmarc-advice.tsx'
import { Select } from '../parts/form-controls.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.dmarc
const periods = ['7', '30', '90', '365']
const usualDays = '30'
const dayMs = 86_400_000
const simulator = 'simulator.test'
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })
/** Of a day of UTC, such as `2026-03-01`. */
const dayInWords = (day: string) => dayFormat.format(new Date(day))

const tabs = [
  { name: 'dmarc', label: words.views.dmarc },
  { name: 'tls', label: words.views.tls },
] as const

type Source = DomainsRetrieveDmarcData['sources'][number]
type Reporter = DomainsRetrieveDmarcData['reporters'][number]
type Failure = DomainsRetrieveTlsReportsData['failures'][number]
type TlsReporter = DomainsRetrieveTlsReportsData['reporters'][number]

export function DmarcPage() {
  const { scoped } = useHere()
  const [filters, change] = useFilters()
  const path = scoped('/v1/domains')
  const { data, error } = useQuery({ queryKey: ['domains', path], queryFn: () => get<DomainsListData>(path) })
  // The simulator's domain sends no mail that receivers could report.
  const all = (data?.domains ?? []).filter(({ name }) => name !== simulator)
  const chosen = all.find(({ id }) => String(id) === filters.domain) ?? all[0]
  const days = periods.find((one) => one === filters.days) ?? usualDays
  const view = filters.view === 'tls' ? 'tls' : 'dmarc'
  return (
    <>
      <Heading title={texts.pages.dmarc} about={words.intro}>
        {chosen && (
          <Select
            bare
            label={words.domain}
            value={String(chosen.id)}
            choices={all.map(({ id, name }) => ({ value: String(id), label: name }))}
            onChange={(domain) => change({ domain })}
          />
        )}
        <Select
          bare
          label={words.days}
          value={days}
          choices={periods.map((value) => ({ value, label: words.lastDays(value) }))}
          onChange={(value) => change({ days: value })}
        />
      </Heading>
      <Problem error={error} />
      {!data && !error && <TableSkeleton />}
      {data && !chosen && <Empty>{words.none}</Empty>}
      {chosen && (
        <Tabs label={words.view} tabs={tabs} chosen={view} onChoose={(next) => change({ view: next === 'tls' ? next : undefined })}>
          {view === 'dmarc' ? (
            <Dmarc key={`${chosen.id} ${days}`} id={chosen.id} days={days} />
          ) : (
            <Tls key={`${chosen.id} ${days}`} id={chosen.id} days={days} />
          )}
        </Tabs>
      )}
    </>
  )
}

interface Asked {
  id: number
  days: string
}

function Dmarc({ id, days }: Asked) {
  const { data, error } = useQuery({
    queryKey: ['dmarc', id, days],
    queryFn: () => get<DomainsRetrieveDmarcData>(withQuery(`/v1/domains/${id}/dmarc`, { days })),
  })
  if (error) return <Problem error={error} />
  if (!data) return <TableSkeleton />
  const { totals } = data
  if (totals.messages === 0) return <ToPublish title={words.record} text={words.noReports} record={data.record} />
  return (
    <>
      <AdviceCard data={data} />
      <Figures>
        <Figure
          name={words.messages}
          value={totals.messages.toLocaleString()}
          note={totals.unauthenticated > 0 && words.unproven(totals.unauthenticated)}
        />
        <Figure name={words.aligned} value={tablePercent(totals.aligned, totals.messages)} />
        <Figure name={words.quarantined} value={totals.quarantined.toLocaleString()} />
        <Figure name={words.rejected} value={totals.rejected.toLocaleString()} />
      </Figures>
      <Section title={words.sources}>
        <DataTable
          label={words.sources}
          columns={sourceColumns}
          items={data.sources}
          keyOf={(one) => `${one.source} ${one.headerFrom}`}
          isWhole
        />
        {data.moreSources > 0 && <p className="mt-2 text-xs text-soft">{words.moreSources(data.moreSources)}</p>}
      </Section>
      {data.days.length >= leastReported && (
        <Section title={words.overTime}>
          <Chart data={data} />
          <DaysTable days={data.days} />
        </Section>
      )}
      <Section title={words.reporters}>
        <DataTable
          label={words.reporters}
          columns={reporterColumns}
          items={data.reporters}
          keyOf={(one) => `${one.reporter} ${one.sender} ${one.authenticated}`}
          isWhole
        />
      </Section>
    </>
  )
}

/** With fewer days, a chart would be a column in an empty field. */
const leastReported = 3

/** Begins with the first report, at least a week before the last day, so that the columns are not slivers. Days without messages are absent in the answer, and empty in the chart. */
function Chart({ data: { from, days } }: { data: DomainsRetrieveDmarcData }) {
  const known = new Map(days.map((one) => [one.day, one]))
  const reported = days.map(({ day }) => Date.parse(day))
  const last = Math.max(Date.parse(from), ...reported)
  const first = Math.max(Date.parse(from), Math.min(last - leastDays * dayMs, ...reported))
  const times = Array.from({ length: (last - first) / dayMs + 1 }, (_, index) => new Date(first + index * dayMs))
  const values = (pick: (one: (typeof days)[number]) => number) =>
    times.map((time) => {
      const one = known.get(time.toISOString().slice(0, 10))
      return one ? pick(one) : 0
    })
  const series = (name: string, fill: Fill, pick: (one: (typeof days)[number]) => number) => {
    const counts = values(pick)
    return { name, fill, values: counts, note: counts.reduce((sum, count) => sum + count, 0).toLocaleString() }
  }
  return (
    <Columns
      label={words.overTime}
      times={times}
      series={[series(words.aligned, 'good', (one) => one.aligned), series(words.unaligned, 'bad', (one) => one.messages - one.aligned)]}
      isHourly={false}
      isUtc
    />
  )
}

const DaysTable = ({ days }: { days: DomainsRetrieveDmarcData['days'] }) => (
  <details className="mt-3">
    <summary className="w-fit text-xs text-soft hover:text-ink">{texts.chart.asTable}</summary>
    <div className="mt-2">
      <Table label={words.overTime} columns={[words.day, words.aligned, words.unaligned]}>
        {days.map((one) => (
          <tr key={one.day}>
            <td className="whitespace-nowrap">{dayInWords(one.day)}</td>
            <td className="tabular-nums">{one.aligned.toLocaleString()}</td>
            <td className="tabular-nums">{(one.messages - one.aligned).toLocaleString()}</td>
          </tr>
        ))}
      </Table>
    </div>
  </details>
)

function ToPublish({ title, text, record }: { title: string; text?: string; record: { fullName: string; value: string } }) {
  return (
    <Section title={title}>
      {text && <p className="mb-2 text-sm">{text}</p>}
      <RecordLines record={record} />
    </Section>
  )
}

const leastDays = 6

/** An unknown source is news only if its mail does not pass. */
const toneOf = ({ kind, aligned, messages }: Source) =>
  kind !== 'other' ? 'good' : aligned === messages ? 'none' : aligned * 2 < messages ? 'bad' : 'wait'

const sourceColumns: readonly Column<Source>[] = [
  { name: words.source, phone: 'title', by: (one) => one.source, cell: (one) => one.source || words.others },
  { name: words.kind, phone: 'side', by: (one) => one.kind, cell: (one) => <Badge tone={toneOf(one)}>{words.kinds[one.kind]}</Badge> },
  { name: words.from, phone: 'line', by: (one) => one.headerFrom, cell: (one) => one.headerFrom },
  {
    name: words.messages,
    phone: 'line',
    isNumber: true,
    by: (one) => one.messages,
    cell: (one) => (
      <>
        {one.messages.toLocaleString()}
        <OnPhone>{words.messages}</OnPhone>
      </>
    ),
  },
  {
    name: words.aligned,
    phone: 'line',
    isNumber: true,
    by: (one) => one.aligned / one.messages,
    cell: (one) => (
      <>
        {tablePercent(one.aligned, one.messages)}
        <OnPhone>{words.aligned}</OnPhone>
      </>
    ),
  },
  {
    name: words.signers,
    phone: 'none',
    className: 'text-soft',
    cell: (one) => [...one.signers, ...one.spfDomains].slice(0, 2).join(', ') || words.notSigned,
  },
  { name: words.lastSeen, phone: 'line', className: 'text-soft', by: (one) => one.lastDay, cell: (one) => dayInWords(one.lastDay) },
]

const reporterColumns: readonly Column<Reporter>[] = [
  { name: words.reporter, phone: 'title', by: (one) => one.reporter, cell: (one) => one.reporter },
  {
    name: words.sender,
    phone: 'full',
    by: (one) => one.sender,
    cell: (one) => (one.authenticated ? one.sender : words.unsigned(one.sender)),
  },
  { name: words.reports, isNumber: true, by: (one) => one.reports, cell: (one) => one.reports.toLocaleString() },
  { name: words.messages, isNumber: true, by: (one) => one.messages, cell: (one) => one.messages.toLocaleString() },
]

function Tls({ id, days }: Asked) {
  const { data, error } = useQuery({
    queryKey: ['tls-reports', id, days],
    queryFn: () => get<DomainsRetrieveTlsReportsData>(withQuery(`/v1/domains/${id}/tls-reports`, { days })),
  })
  if (error) return <Problem error={error} />
  if (!data) return null
  const sessions = data.totals.successful + data.totals.failed
  if (sessions === 0) return <ToPublish title={words.tlsRecord} text={words.noTls} record={data.record} />
  return (
    <>
      <Section title={words.tls}>
        <Figures>
          <Figure name={words.sessions} value={sessions.toLocaleString()} />
          <Figure name={words.failed} value={percent(data.totals.failed, sessions)} />
        </Figures>
        <DataTable
          label={words.tls}
          columns={tlsColumns}
          items={data.reporters}
          keyOf={(one) => `${one.reporter} ${one.policyType}`}
          isWhole
        />
      </Section>
      {data.failures.length > 0 && (
        <Section title={words.failure}>
          <DataTable
            label={words.failure}
            columns={failureColumns}
            items={data.failures}
            keyOf={(one) => `${one.result} ${one.receivingMx}`}
            isWhole
          />
        </Section>
      )}
    </>
  )
}

const tlsColumns: readonly Column<TlsReporter>[] = [
  { name: words.reporter, phone: 'title', by: (one) => one.reporter, cell: (one) => one.reporter || words.others },
  { name: words.policy, phone: 'side', by: (one) => one.policyType, cell: (one) => one.policyType },
  { name: words.sessions, isNumber: true, by: (one) => one.successful, cell: (one) => (one.successful + one.failed).toLocaleString() },
  { name: words.failed, isNumber: true, by: (one) => one.failed, cell: (one) => one.failed.toLocaleString() },
]

const failureColumns: readonly Column<Failure>[] = [
  { name: words.failure, phone: 'title', by: (one) => one.result, cell: (one) => one.result },
  { name: words.host, by: (one) => one.receivingMx, cell: (one) => one.receivingMx },
  { name: words.sessions, isNumber: true, by: (one) => one.failed, cell: (one) => one.failed.toLocaleString() },
  { name: words.lastSeen, phone: 'line', className: 'text-soft', by: (one) => one.lastDay, cell: (one) => dayInWords(one.lastDay) },
]
