/** Overview of the mail: volume and rates beside those of the period before, delivery time, failing domains, use of the send limit, and health. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get, withQuery } from '../api-client.ts'
import type { BeforeResponse, Limits, RecentResponse, ShownPoint, Tenant } from '../api-types.ts'
import { Coded, Heading, Problem, Section, Skeleton, Warning } from '../parts/basic-components.tsx'
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
  tablePercent,
  useBefore,
  useOverTime,
  VolumeChart,
} from '../parts/chart.tsx'
import { FailingDomains } from '../parts/failing-domains.tsx'
import { FirstSteps } from '../parts/first-steps.tsx'
import { Health } from '../parts/health.tsx'
import { limits, RateFigure } from '../parts/rate-figure.tsx'
import { mailOf, testOf, useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { zonedFormat } from '../time-zone.ts'

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
  const before = useBefore(period, tenantId, mail)
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
      {period !== 'today' && <OverLimit points={points} />}
      {series.data && (
        <MailFigures points={points} recent={recent.data} before={before?.sent ? before : undefined} when={words.before[period]} />
      )}
      {series.data && accepted === 0 && (
        <div className="mt-6">
          <NoMail mail={mail} period={period} tenantId={tenantId} onShow={() => change({ mail: 'test' })} />
        </div>
      )}
      {member.tenantId === null && <Health />}
      <div className="flex flex-col">
        {series.data && accepted > 0 && (
          <div className="max-md:order-1">
            <Charts points={points} isHourly={period === 'today'} />
          </div>
        )}
        {recent.data && <FailingDomains recent={recent.data} />}
      </div>
    </>
  )
}

const dayMs = 86_400_000
const dayOf = zonedFormat({ month: 'short', day: 'numeric' })

/** The verdict first: the last days on which complaints were over the limit, with the way to the causes. */
function OverLimit({ points }: { points: readonly ShownPoint[] }) {
  const { most } = limits.complaints
  const days = points.filter(({ complained, sent }) => complained > 0 && complained * 100 >= most * sent)
  if (days.length === 0) return null
  const total = sumOf(points, 'complained') * 100
  const named = days
    .slice(-maxDays)
    .map(({ timestamp }) => (Date.now() - Date.parse(timestamp) < dayMs ? texts.chart.today.toLowerCase() : dayOf(new Date(timestamp))))
  return (
    <Warning tone={total >= most * sumOf(points, 'sent') ? 'bad' : 'wait'}>
      {words.overLimit(`${most}%`, named.join(', '))}{' '}
      <Link to="/reputation" search={{}} className="underline underline-offset-2">
        {words.toReputation}
      </Link>
    </Warning>
  )
}
const maxDays = 5

interface FigureProps {
  points: readonly ShownPoint[]
  recent: RecentResponse | undefined
  /** Undefined: unknown, or without mail. */
  before: BeforeResponse['counts'] | undefined
  /** The period before, in words. */
  when: string
}

/** Of little mail before, the number says more than a share. */
const maxShare = 200

/** "+4%", or "was 60". */
function comparedWith(before: number, now: number): string {
  const share = Math.round((now / before - 1) * 100)
  return share > maxShare ? words.was(before.toLocaleString()) : `${share > 0 ? '+' : ''}${share.toLocaleString()}%`
}

/** The first row has the news, with the period before; the second the state of this moment, in smaller letters. */
function MailFigures({ points, recent, before, when }: FigureProps) {
  const { data } = useQuery({ queryKey: ['limits'], queryFn: () => get<Limits>('/v1/limits'), refetchInterval: everyMs })
  const accepted = sumOf(points, 'sent')
  const lost = sumOf(points, 'bounced') + sumOf(points, 'hard_failed')
  const limit = data?.sendLimit
  const was = (share: (part: number, whole: number) => string, part: (counts: BeforeResponse['counts']) => number) =>
    before && words.was(share(part(before), before.sent))
  return (
    <div className="flex flex-col gap-3">
      <Figures>
        <Figure
          name={texts.counts.sent}
          value={accepted.toLocaleString()}
          before={before && comparedWith(before.sent, accepted)}
          note={before ? words.thanBefore(when) : words.acceptedHelp}
        />
        <Figure
          name={texts.counts.delivered}
          value={tablePercent(sumOf(points, 'delivered'), accepted)}
          before={was(tablePercent, (counts) => counts.delivered)}
          note={words.deliveredHelp}
        />
        <RateFigure
          name={texts.counts.lost}
          before={was(tablePercent, (counts) => counts.bounced + counts.hard_failed)}
          part={lost}
          whole={accepted}
          limits={limits.bounces}
        />
        <RateFigure
          name={texts.chart.complaintRate}
          before={was(percent, (counts) => counts.complained)}
          part={sumOf(points, 'complained')}
          whole={accepted}
          limits={limits.complaints}
        />
      </Figures>
      <Figures columns={3}>
        <Figure isSmall name={words.half} value={seconds(recent?.delivered.p50Ms)} note={words.tookHelp} />
        <Figure isSmall name={words.nearlyAll} value={seconds(recent?.delivered.p99Ms)} note={words.tookHelp} />
        <Figure
          isSmall
          name={words.thisHour}
          value={limit ? ofLimit(limit) : '–'}
          note={limit?.limit == null ? words.noLimitHelp : words.limitHelp}
        />
      </Figures>
    </div>
  )
}

const Charts = ({ points, isHourly }: { points: readonly ShownPoint[]; isHourly: boolean }) => (
  <>
    <Section title={words.volume}>
      <VolumeChart points={points} isHourly={isHourly} />
    </Section>
    <div className="grid gap-x-10 md:grid-cols-2 [&>*]:min-w-0">
      <Section title={texts.counts.lost}>
        <RateChart points={points} isHourly={isHourly} of="bounced" limits={limits.bounces} />
      </Section>
      <Section title={words.complaints}>
        <RateChart points={points} isHourly={isHourly} of="complained" limits={limits.complaints} />
      </Section>
    </div>
    <PointsTable points={points} />
  </>
)
