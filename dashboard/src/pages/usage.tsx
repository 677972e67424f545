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
import { DownloadIcon } from '../parts/icons.tsx'
import { Menu } from '../parts/menu.tsx'
import { Listing, useList } from '../parts/paged-lists.tsx'
import { limits as rateLimits } from '../parts/rate-figure.tsx'
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
      {member.tenantId === null && tenantId === undefined && data && <Tenants period={period} page={filters.page} test={testOf(mail)} />}
    </>
  )
}

interface UseProps {
  points: readonly ShownPoint[]
  period: ReturnType<typeof periodOf>
  mail: ReturnType<typeof mailOf>
  limit: Limits['sendLimit'] | undefined
}

const monthOf = zonedFormat({ month: 'long', year: 'numeric' })

/** From this growth on, percents say less than the difference. */
const mostPercent = 1000

/** "↑ 12%", or "↑ 4,492" for growth from very little. */
function changeOf(now: number, before: number): string {
  const percent = Math.round(((now - before) / before) * 100)
  const arrow = now < before ? '↓' : '↑'
  if (percent === 0) return words.unchanged
  return percent < mostPercent ? `${arrow} ${Math.abs(percent)}%` : `${arrow} ${(now - before).toLocaleString()}`
}

const isHigh = (lost: number, sent: number) => sent > 0 && (lost / sent) * 100 >= rateLimits.bounces.most

/** How much was sent, and the part that arrived: the rates are on the overview. */
function UseFigures({ points, period, mail, limit }: UseProps) {
  const { tenantId } = useHere()
  const isHourly = period === 'today'
  const month = useOverTime('this_month', tenantId, monthEveryMs, mail)
  const accepted = sumOf(points, 'sent')
  const lost = sumOf(points, 'hard_failed') + sumOf(points, 'bounced')
  const each = points.length === 0 ? 0 : Math.round(accepted / points.length)
  const perPart = isHourly ? words.perHour(each) : words.perDay(each)
  const before = useBefore(period, tenantId, mail)
  return (
    <Figures>
      <Figure
        name={texts.counts.sent}
        value={accepted.toLocaleString()}
        before={before?.sent ? changeOf(accepted, before.sent) : undefined}
        note={before?.sent ? texts.overview.thanBefore(texts.overview.before[period]) : perPart}
      />
      <Figure
        name={texts.counts.delivered}
        value={accepted === 0 ? '–' : tablePercent(sumOf(points, 'delivered'), accepted)}
        note={words.lostOf(tablePercent(lost, accepted))}
        {...(isHigh(lost, accepted) ? { tone: 'wait' as const } : {})}
      />
      <Figure
        name={words.thisMonth}
        value={month.data ? sumOf(month.data.points, 'sent').toLocaleString() : '–'}
        note={
          month.data
            ? words.daysOf(monthOf(new Date()), month.data.points.length, Number(month.data.lastDay.slice(-2)))
            : monthOf(new Date())
        }
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
  return (
    <Menu
      label={texts.files.save}
      icon={<DownloadIcon size={16} />}
      actions={[{ label: words.overTime, onChoose: onSeries }, ...ofTenants]}
    />
  )
}

const saveSeries = (points: readonly ShownPoint[], period: string) =>
  saveCsv(`usage-over-time-${period}.csv`, [
    ['from', ...counted.map(([key]) => key)],
    ...points.map((point) => [point.timestamp, ...counted.map(([key]) => point[key])]),
  ])

const lostOf = ({ emails }: UsageListTenantsItem) => emails.hard_failed + emails.bounced

/** `most`: of the greatest tenant, whose bar is full. */
const columnsOf = (most: number): readonly Column<UsageListTenantsItem>[] => [
  {
    name: words.tenant,
    phone: 'title',
    className: 'font-medium md:whitespace-nowrap',
    by: (one) => one.tenantName,
    cell: (one) => one.tenantName,
  },
  {
    name: texts.counts.sent,
    phone: 'line',
    // The bars take the width that the other columns leave.
    className: 'md:w-full',
    by: (one) => one.emails.sent,
    cell: (one) => (
      <span className="inline-flex items-center gap-x-3 tabular-nums md:flex">
        <span className="flex grow max-md:hidden [&>span]:w-full">
          <Meter part={one.emails.sent} whole={most} tone="none" />
        </span>
        <span className="md:min-w-12 md:text-right">
          {one.emails.sent.toLocaleString()}
          <OnPhone>{texts.counts.sent}</OnPhone>
        </span>
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
      <span className={isHigh(lostOf(one), one.emails.sent) ? 'text-wait' : ''}>
        {tablePercent(lostOf(one), one.emails.sent)}
        <OnPhone>{words.lostShort}</OnPhone>
      </span>
    ),
  },
]

function Tenants({ period, page, test }: { period: string; page: string | undefined; test: string | undefined }) {
  const list = useList<UsageListTenantsItem>(
    'usage of tenants',
    withQuery('/v1/usage/tenants', { period, timezone: zoneNow(), page, minSent: 1, test }),
  )
  return (
    <Section title={words.byTenant}>
      <Listing
        label={words.byTenant}
        list={list}
        columns={columnsOf(Math.max(0, ...(list.data?.items ?? []).map(({ emails }) => emails.sent)))}
        keyOf={(one) => one.tenantId}
        sortedBy={texts.counts.sent}
        empty={texts.overview.nothing}
      />
    </Section>
  )
}
