/** Overview of the mail: volume, rates against the providers' limits, delivery time, failing domains, use of the send limit, and health. */
import { useQuery } from '@tanstack/react-query'
import { get, withQuery } from '../api-client.ts'
import type { Limits, RecentResponse, ShownPoint, Tenant } from '../api-types.ts'
import { Badge, Coded, Empty, Heading, Problem, Section, Skeleton, Warning } from '../parts/basic-components.tsx'
import {
  ChooseMail,
  ChoosePeriod,
  Figure,
  Figures,
  NoMail,
  ofLimit,
  PointsTable,
  percent,
  periodOf,
  RateChart,
  sumOf,
  useOverTime,
  VolumeChart,
} from '../parts/chart.tsx'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { FirstSteps } from '../parts/first-steps.tsx'
import { Health } from '../parts/health.tsx'
import { limits, RateFigure } from '../parts/rate-figure.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { mailOf, testOf, useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const everyMs = 15_000
const words = texts.overview

const seconds = (ms: number | null | undefined) =>
  ms == null ? '–' : words.seconds((ms / 1000).toLocaleString(undefined, { maximumFractionDigits: ms < 10_000 ? 2 : 0 }))

/** The visible tenants whose mail is held, because a person has to act on them. */
function usePaused() {
  const { tenantId, member, tenants } = useHere()
  const own = useQuery({
    queryKey: ['tenants', member.tenantId],
    queryFn: () => get<Tenant>(`/v1/tenants/${member.tenantId}`),
    enabled: member.tenantId !== null,
    refetchInterval: everyMs,
  })
  const looked = member.tenantId === null ? tenants : own.data ? [own.data] : []
  return looked.flatMap(({ id, name, pauseReason: reason }) =>
    reason !== null && (tenantId === undefined || tenantId === id) ? [{ id, name, reason }] : [],
  )
}

export function OverviewPage() {
  const { tenantId, member, mayChange } = useHere()
  const paused = usePaused()
  const [filters, change] = useFilters()
  const period = periodOf(filters.period)
  const mail = mailOf(filters.mail)
  const series = useOverTime(period, tenantId, everyMs, mail)
  const recentPath = withQuery('/dashboard/api/recent', { tenantId, test: testOf(mail) })
  const recent = useQuery({ queryKey: ['recent', recentPath], queryFn: () => get<RecentResponse>(recentPath), refetchInterval: everyMs })
  const points = series.data?.points ?? []
  const accepted = sumOf(points, 'sent')
  return (
    <>
      <Heading title={texts.pages.overview}>
        <ChooseMail mail={mail} onChange={(next) => change({ mail: next })} />
        <ChoosePeriod period={period} onChange={(next) => change({ period: next })} />
      </Heading>
      <Problem error={series.error ?? recent.error} />
      {paused.map(({ id, name, reason }) => (
        <Warning key={id} tone="bad">
          <p className="font-semibold">{words.paused(name, reason)}</p>
          <p>
            <Coded>{words.resume}</Coded>
          </p>
        </Warning>
      ))}
      {!series.data && !series.error && <Skeleton lines={9} />}
      {series.data && accepted === 0 && mayChange && member.tenantId === null && tenantId === undefined && <FirstSteps />}
      {series.data && <MailFigures points={points} recent={recent.data} />}
      {series.data && accepted === 0 && (
        <div className="mt-6">
          <NoMail mail={mail} period={period} tenantId={tenantId} onShow={() => change({ mail: 'test' })} />
        </div>
      )}
      {series.data && accepted > 0 && <Charts points={points} isHourly={period === 'today'} />}
      {member.tenantId === null && <Health />}
      {recent.data && <FailingDomains recent={recent.data} />}
    </>
  )
}

function MailFigures({ points, recent }: { points: readonly ShownPoint[]; recent: RecentResponse | undefined }) {
  const { data } = useQuery({ queryKey: ['limits'], queryFn: () => get<Limits>('/v1/limits'), refetchInterval: everyMs })
  const accepted = sumOf(points, 'sent')
  const lost = sumOf(points, 'bounced') + sumOf(points, 'hard_failed')
  const limit = data?.sendLimit
  return (
    <Figures>
      <Figure name={texts.counts.sent} value={accepted.toLocaleString()} note={words.acceptedHelp} />
      <Figure name={texts.counts.delivered} value={percent(sumOf(points, 'delivered'), accepted)} note={words.deliveredHelp} />
      <RateFigure name={texts.chart.bounceRate} of={texts.rate.ofBounces} part={lost} whole={accepted} limits={limits.bounces} />
      <RateFigure
        name={texts.chart.complaintRate}
        of={texts.rate.ofComplaints}
        part={sumOf(points, 'complained')}
        whole={accepted}
        limits={limits.complaints}
      />
      <Figure name={words.half} value={seconds(recent?.delivered.p50Ms)} note={words.tookHelp} />
      <Figure name={words.nearlyAll} value={seconds(recent?.delivered.p99Ms)} note={words.tookHelp} />
      <Figure
        name={words.thisHour}
        value={limit ? ofLimit(limit) : '–'}
        note={limit?.limit == null ? words.noLimitHelp : words.limitHelp}
      />
      <Figure name={words.failingNow} value={recent ? recent.failing.length.toLocaleString() : '–'} note={words.failingHelp} />
    </Figures>
  )
}

const Charts = ({ points, isHourly }: { points: readonly ShownPoint[]; isHourly: boolean }) => (
  <>
    <Section title={words.volume}>
      <VolumeChart points={points} isHourly={isHourly} />
    </Section>
    <div className="grid gap-x-10 md:grid-cols-2 [&>*]:min-w-0">
      <Section title={words.bounces}>
        <RateChart points={points} isHourly={isHourly} of="bounced" limit={limits.bounces.most} />
      </Section>
      <Section title={words.complaints}>
        <RateChart points={points} isHourly={isHourly} of="complained" limit={limits.complaints.most} />
      </Section>
    </div>
    <PointsTable points={points} />
  </>
)

type Failing = RecentResponse['failing'][number]

const failing: readonly Column<Failing>[] = [
  {
    name: words.domain,
    phone: 'title',
    className: 'min-w-36 font-medium [overflow-wrap:anywhere]',
    by: (one) => one.recipientDomain,
    cell: (one) => one.recipientDomain,
  },
  { name: texts.counts.soft_failed, isNumber: true, by: (one) => one.deferred, cell: (one) => one.deferred.toLocaleString() },
  { name: texts.counts.hard_failed, isNumber: true, by: (one) => one.failed, cell: (one) => one.failed.toLocaleString() },
  { name: texts.counts.bounced, isNumber: true, by: (one) => one.bounced, cell: (one) => one.bounced.toLocaleString() },
  {
    name: words.reason,
    phone: 'line',
    className: 'min-w-60',
    cell: (one) => (
      <>
        {one.classification && <Badge tone="none">{one.classification.replaceAll('_', ' ')}</Badge>}{' '}
        <span className="text-soft [overflow-wrap:anywhere]">{one.lastReply.slice(0, 200)}</span>
      </>
    ),
  },
  { name: words.lastSeen, phone: 'side', by: (one) => one.lastAt, cell: (one) => <Time at={one.lastAt} /> },
]

const FailingDomains = ({ recent }: { recent: RecentResponse }) => (
  <Section title={words.failing}>
    {recent.failing.length === 0 ? (
      <Empty>{words.noneFails}</Empty>
    ) : (
      <DataTable label={words.failing} columns={failing} items={recent.failing} keyOf={(one) => one.recipientDomain} isWhole />
    )}
  </Section>
)
