/** Usage: how much was sent, in numbers, over time, by tenant, and as files. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { download, get, withQuery } from '../api-client.ts'
import type { Limits, ShownPoint, UsageListTenantsItem } from '../api-types.ts'
import { Heading, Meter, OnPhone, Problem, Section } from '../parts/basic-components.tsx'
import {
  ChooseMail,
  ChoosePeriod,
  counted,
  Figure,
  Figures,
  NoMail,
  ofLimit,
  PointsTable,
  periodOf,
  sumOf,
  tablePercent,
  useBefore,
  useOverTime,
  VolumeChart,
} from '../parts/chart.tsx'
import { saveCsv } from '../parts/csv.ts'
import type { Column } from '../parts/data-table.tsx'
import { Menu } from '../parts/menu.tsx'
import { Listing, useList } from '../parts/paged-lists.tsx'
import { mailOf, testOf, useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { zonedFormat, zoneNow } from '../time-zone.ts'

const words = texts.usage
const everyMs = 15_000

export function UsagePage() {
  const { tenantId, member } = useHere()
  const [filters, change] = useFilters()
  const period = periodOf(filters.period)
  const mail = mailOf(filters.mail)
  const { data, error } = useOverTime(period, tenantId, everyMs, mail)
  const limits = useQuery({
    queryKey: ['limits'],
    queryFn: () => get<Limits>('/v1/limits'),
    refetchInterval: everyMs,
  })
  const exportPath = withQuery('/v1/usage/export', { period, timezone: zoneNow(), format: 'csv' })
  const file = useMutation({ mutationFn: () => download(exportPath, `usage-${period}.csv`) })
  const accepted = data ? sumOf(data.points, 'sent') : 0
  return (
    <>
      <Heading title={texts.pages.usage}>
        <ChooseMail mail={mail} onChange={(next) => change({ mail: next })} />
        <ChoosePeriod period={period} onChange={(next) => change({ period: next })} />
        {data && <SaveMenu onSeries={() => saveSeries(data.points, period)} onTenants={() => file.mutate()} />}
      </Heading>
      <Problem error={error ?? file.error} />
      {data && <UseFigures points={data.points} period={period} mail={mail} limit={limits.data?.sendLimit} />}
      {data && (
        <Section title={texts.overview.volume}>
          {accepted === 0 ? (
            <NoMail mail={mail} period={period} tenantId={tenantId} onShow={() => change({ mail: 'test' })} />
          ) : (
            <VolumeChart points={data.points} isHourly={period === 'today'} />
          )}
          <PointsTable points={data.points} />
        </Section>
      )}
      {member.tenantId === null && tenantId === undefined && data && (
        <Tenants all={accepted} period={period} page={filters.page} test={testOf(mail)} />
      )}
    </>
  )
}

interface UseProps {
  points: readonly ShownPoint[]
  period: ReturnType<typeof periodOf>
  mail: ReturnType<typeof mailOf>
  limit: Limits['sendLimit'] | undefined
}

const dayOf = zonedFormat({ dateStyle: 'medium' })
const hourOf = zonedFormat({ hour: 'numeric', minute: '2-digit' })
const monthOf = zonedFormat({ month: 'long', year: 'numeric' })

/** How much was sent: the outcomes are on the overview. */
function UseFigures({ points, period, mail, limit }: UseProps) {
  const { tenantId } = useHere()
  const isHourly = period === 'today'
  const month = useOverTime('this_month', tenantId, monthEveryMs, mail)
  const accepted = sumOf(points, 'sent')
  const busiest = points.reduce<ShownPoint | undefined>((most, one) => (one.sent > (most?.sent ?? 0) ? one : most), undefined)
  const each = points.length === 0 ? 0 : Math.round(accepted / points.length)
  const perPart = isHourly ? words.perHour(each) : words.perDay(each)
  const before = useBefore(period, tenantId, mail)
  return (
    <Figures>
      <Figure
        name={texts.counts.sent}
        value={accepted.toLocaleString()}
        before={before?.sent ? texts.overview.was(before.sent.toLocaleString()) : undefined}
        note={before?.sent ? texts.overview.thanBefore(texts.overview.before[period]) : perPart}
      />
      <Figure
        name={isHourly ? words.busiestHour : words.busiestDay}
        value={busiest ? busiest.sent.toLocaleString() : '–'}
        note={busiest && (isHourly ? hourOf : dayOf)(new Date(busiest.timestamp))}
      />
      <Figure
        name={words.thisMonth}
        value={month.data ? sumOf(month.data.points, 'sent').toLocaleString() : '–'}
        note={monthOf(new Date())}
      />
      <Figure
        name={texts.overview.thisHour}
        value={limit ? ofLimit(limit) : '–'}
        note={limit?.limit == null ? texts.overview.noLimitHelp : texts.overview.limitHelp}
      />
    </Figures>
  )
}
const monthEveryMs = 60_000

/** The file by tenant is for members of the organisation. */
function SaveMenu({ onSeries, onTenants }: { onSeries: () => void; onTenants: () => void }) {
  const { member } = useHere()
  const ofTenants = member.tenantId === null ? [{ label: words.byTenant, onChoose: onTenants }] : []
  return <Menu isNamed label={texts.files.save} actions={[{ label: words.overTime, onChoose: onSeries }, ...ofTenants]} />
}

const saveSeries = (points: readonly ShownPoint[], period: string) =>
  saveCsv(`usage-over-time-${period}.csv`, [
    ['from', ...counted.map(([key]) => key)],
    ...points.map((point) => [point.timestamp, ...counted.map(([key]) => point[key])]),
  ])

const lostOf = ({ emails }: UsageListTenantsItem) => emails.hard_failed + emails.bounced

/** `all`: of the whole list; `most`: of the greatest tenant, whose bar is full. */
const columnsOf = (all: number, most: number): readonly Column<UsageListTenantsItem>[] => [
  { name: words.tenant, phone: 'title', className: 'font-medium', by: (one) => one.tenantName, cell: (one) => one.tenantName },
  {
    name: texts.counts.sent,
    phone: 'line',
    by: (one) => one.emails.sent,
    cell: (one) => (
      <span className="inline-flex flex-wrap items-center gap-x-2 tabular-nums">
        <span className="max-md:hidden">
          <Meter part={one.emails.sent} whole={most} tone="none" />
        </span>
        <span className="md:min-w-12 md:text-right">{one.emails.sent.toLocaleString()}</span>
        <OnPhone>{texts.counts.sent}</OnPhone>
        <span className="text-soft max-md:hidden">{words.share(tablePercent(one.emails.sent, all))}</span>
      </span>
    ),
  },
  {
    name: texts.counts.delivered,
    phone: 'line',
    isNumber: true,
    by: (one) => one.emails.delivered / one.emails.sent,
    cell: (one) => (
      <>
        {tablePercent(one.emails.delivered, one.emails.sent)}
        <OnPhone>{texts.counts.delivered}</OnPhone>
      </>
    ),
  },
  {
    name: texts.counts.lost,
    phone: 'line',
    isNumber: true,
    by: (one) => lostOf(one) / one.emails.sent,
    cell: (one) => (
      <>
        {tablePercent(lostOf(one), one.emails.sent)}
        <OnPhone>{words.lostShort}</OnPhone>
      </>
    ),
  },
]

/** `all`: accepted emails of the period. */
function Tenants({ all, period, page, test }: { all: number; period: string; page: string | undefined; test: string | undefined }) {
  const list = useList<UsageListTenantsItem>(
    'usage of tenants',
    withQuery('/v1/usage/tenants', { period, timezone: zoneNow(), page, minSent: 1, test }),
  )
  return (
    <Section title={words.byTenant}>
      <Listing
        label={words.byTenant}
        list={list}
        columns={columnsOf(all, Math.max(0, ...(list.data?.items ?? []).map(({ emails }) => emails.sent)))}
        keyOf={(one) => one.tenantId}
        sortedBy={texts.counts.sent}
        empty={texts.overview.nothing}
      />
    </Section>
  )
}
