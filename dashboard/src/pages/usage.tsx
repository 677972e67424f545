/** Usage: volume and outcomes as numbers, over time, by tenant, and as files. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { download, get, withQuery } from '../api-client.ts'
import type { Limits, ShownPoint, UsageListTenantsItem } from '../api-types.ts'
import { Heading, Problem, Section } from '../parts/basic-components.tsx'
import {
  ChooseMail,
  ChoosePeriod,
  counted,
  Figure,
  Figures,
  NoMail,
  ofLimit,
  PointsTable,
  percent,
  periodOf,
  sumOf,
  tablePercent,
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
import { zoneNow } from '../time-zone.ts'

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
  const lost = data ? sumOf(data.points, 'bounced') + sumOf(data.points, 'hard_failed') : 0
  return (
    <>
      <Heading title={texts.pages.usage}>
        <ChooseMail mail={mail} onChange={(next) => change({ mail: next })} />
        <ChoosePeriod period={period} onChange={(next) => change({ period: next })} />
        {data && <SaveMenu onSeries={() => saveSeries(data.points, period)} onTenants={() => file.mutate()} />}
      </Heading>
      <Problem error={error ?? file.error} />
      {data && (
        <Figures>
          <Figure name={texts.counts.sent} value={accepted.toLocaleString()} note={texts.overview.acceptedHelp} />
          <Figure
            name={texts.counts.delivered}
            value={percent(sumOf(data.points, 'delivered'), accepted)}
            note={words.of(sumOf(data.points, 'delivered'), accepted)}
          />
          <Figure name={words.lost} value={percent(lost, accepted)} note={words.of(lost, accepted)} />
          {limits.data?.sendLimit && (
            <Figure
              name={texts.overview.thisHour}
              value={ofLimit(limits.data.sendLimit)}
              note={limits.data.sendLimit.limit === null ? texts.overview.noLimitHelp : texts.overview.limitHelp}
            />
          )}
        </Figures>
      )}
      {data && (
        <Section title={words.overTime}>
          {accepted === 0 ? (
            <NoMail mail={mail} period={period} tenantId={tenantId} onShow={() => change({ mail: 'test' })} />
          ) : (
            <VolumeChart points={data.points} isHourly={period === 'today'} />
          )}
          <PointsTable points={data.points} />
        </Section>
      )}
      {member.tenantId === null && tenantId === undefined && <Tenants period={period} page={filters.page} test={testOf(mail)} />}
    </>
  )
}

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

const columns: readonly Column<UsageListTenantsItem>[] = [
  { name: words.tenant, phone: 'title', className: 'font-medium', by: (one) => one.tenantName, cell: (one) => one.tenantName },
  {
    name: texts.counts.sent,
    phone: 'side',
    isNumber: true,
    by: (one) => one.emails.sent,
    cell: (one) => one.emails.sent.toLocaleString(),
  },
  {
    name: texts.counts.delivered,
    isNumber: true,
    by: (one) => one.emails.delivered / one.emails.sent,
    cell: (one) => tablePercent(one.emails.delivered, one.emails.sent),
  },
  {
    name: texts.counts.hard_failed,
    isNumber: true,
    by: (one) => one.emails.hard_failed / one.emails.sent,
    cell: (one) => tablePercent(one.emails.hard_failed, one.emails.sent),
  },
  {
    name: texts.counts.bounced,
    isNumber: true,
    by: (one) => one.emails.bounced / one.emails.sent,
    cell: (one) => tablePercent(one.emails.bounced, one.emails.sent),
  },
]

function Tenants({ period, page, test }: { period: string; page: string | undefined; test: string | undefined }) {
  const list = useList<UsageListTenantsItem>(
    'usage of tenants',
    withQuery('/v1/usage/tenants', { period, timezone: zoneNow(), page, minSent: 1, test }),
  )
  return (
    <Section title={words.byTenant}>
      <Listing label={words.byTenant} list={list} columns={columns} keyOf={(one) => one.tenantId} empty={texts.overview.nothing} />
    </Section>
  )
}
