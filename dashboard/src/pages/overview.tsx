/** Overview of the mail: volume, outcomes, delivery time, failing domains, use of the send limit, and system health. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get, withQuery } from '../api-client.ts'
import type { HealthResponse, Limits, RecentResponse, ShownPoint, Tenant } from '../api-types.ts'
import { Badge, Empty, Heading, Problem, Section, Table, Time } from '../parts/basic-components.tsx'
import {
  Chart,
  ChooseMail,
  ChoosePeriod,
  Figure,
  NoMail,
  ofLimit,
  PointsTable,
  percent,
  periodOf,
  sumOf,
  useOverTime,
} from '../parts/chart.tsx'
import { FirstSteps } from '../parts/first-steps.tsx'
import { mailOf, testOf, useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const everyMs = 15_000
const words = texts.overview
const volume = ['sent', 'delivered', 'hard_failed'] as const
const delivery = ['delivered'] as const
const harm = ['bounced', 'complained'] as const

const seconds = (ms: number | null) =>
  ms === null ? '–' : words.seconds((ms / 1000).toLocaleString(undefined, { maximumFractionDigits: 2 }))

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
        <div key={id} role="alert" className="mb-3 rounded-md bg-bad-back p-3 text-sm text-bad">
          <p className="font-semibold">{words.paused(name, reason)}</p>
          <p>{words.resume}</p>
        </div>
      ))}
      {series.data && accepted === 0 && mayChange && member.tenantId === null && tenantId === undefined && <FirstSteps />}
      {series.data && <Figures points={points} recent={recent.data} />}
      {series.data && accepted === 0 && (
        <div className="mt-6">
          <NoMail mail={mail} period={period} tenantId={tenantId} onShow={() => change({ mail: 'test' })} />
        </div>
      )}
      {series.data && accepted > 0 && <Charts points={points} />}
      {recent.data && <FailingTable recent={recent.data} />}
      {member.tenantId === null && <HealthTable />}
    </>
  )
}

function Figures({ points, recent }: { points: readonly ShownPoint[]; recent: RecentResponse | undefined }) {
  const limits = useQuery({
    queryKey: ['limits'],
    queryFn: () => get<Limits>('/v1/limits'),
    refetchInterval: everyMs,
  })
  const accepted = sumOf(points, 'sent')
  const share = (key: 'delivered' | 'bounced' | 'complained') => percent(sumOf(points, key), accepted)
  return (
    <dl className="grid grid-cols-2 gap-3 md:grid-cols-4">
      <Figure name={texts.counts.sent} value={accepted.toLocaleString()} />
      <Figure name={texts.counts.delivered} value={share('delivered')} />
      <Figure name={texts.counts.bounced} value={share('bounced')} />
      <Figure name={texts.counts.complained} value={share('complained')} />
      <Figure name={words.half} value={seconds(recent?.delivered.p50Ms ?? null)} note={words.tookHelp} />
      <Figure name={words.nearlyAll} value={seconds(recent?.delivered.p99Ms ?? null)} note={words.tookHelp} />
      {limits.data?.sendLimit && (
        <Figure
          name={words.thisHour}
          value={ofLimit(limits.data.sendLimit)}
          note={limits.data.sendLimit.limit === null ? words.noLimitHelp : words.limitHelp}
        />
      )}
    </dl>
  )
}

const Charts = ({ points }: { points: readonly ShownPoint[] }) => (
  <>
    <Section title={words.volume}>
      <Chart points={points} of={volume} />
    </Section>
    <div className="grid gap-x-6 md:grid-cols-2 [&>*]:min-w-0">
      <Section title={words.delivery}>
        <Chart points={points} of={delivery} share />
      </Section>
      <Section title={words.harm}>
        <Chart points={points} of={harm} share />
      </Section>
    </div>
    <PointsTable points={points} />
  </>
)

const FailingTable = ({ recent }: { recent: RecentResponse }) => (
  <Section title={words.failing}>
    {recent.failing.length === 0 ? (
      <Empty>{words.noneFails}</Empty>
    ) : (
      <Table label={words.failing} columns={words.failingColumns}>
        {recent.failing.map((one) => (
          <tr key={one.recipientDomain}>
            <td className="min-w-36 font-medium [overflow-wrap:anywhere]">{one.recipientDomain}</td>
            <td>{one.deferred}</td>
            <td>{one.failed}</td>
            <td>{one.bounced}</td>
            <td className="min-w-60">
              {one.classification && <Badge tone="none">{one.classification.replaceAll('_', ' ')}</Badge>}
              <span className="mt-1 block text-soft [overflow-wrap:anywhere]">{one.lastReply.slice(0, 200)}</span>
            </td>
            <td>
              <Time at={one.lastAt} />
            </td>
          </tr>
        ))}
      </Table>
    )}
  </Section>
)

const lateMs = 300_000

function HealthTable() {
  const { member } = useHere()
  const { data, error } = useQuery({
    queryKey: ['health'],
    queryFn: () => get<HealthResponse>('/dashboard/api/health'),
    refetchInterval: everyMs,
  })
  if (!data) return <Problem error={error} />
  const waiting = Object.values(data.queue).reduce((sum, count) => sum + count, 0)
  const findings: [name: string, isWell: boolean, said: string][] = [
    [words.queue, data.overdueMs < lateMs, words.queueSaid(waiting, Math.round(data.overdueMs / 1000))],
    [words.shards, data.shardsUnowned === 0, data.shardsUnowned === 0 ? words.shardsOwned : words.shardsUnowned(data.shardsUnowned)],
    [words.restore, !data.restoreWaiting, data.restoreWaiting ? words.restoreWaits : words.restoreNone],
  ]
  return (
    <Section title={words.health}>
      <Table label={words.health} columns={words.healthColumns}>
        {findings.map(([name, isHealthy, said]) => (
          <tr key={name}>
            <td className="font-medium">{name}</td>
            <td>
              <Badge tone={isHealthy ? 'good' : 'bad'}>{isHealthy ? words.healthy : words.degraded}</Badge>
            </td>
            <td>{said}</td>
          </tr>
        ))}
      </Table>
      {member.role === 'owner' && (
        <p className="mt-2 text-sm">
          <Link to="/queue" search={{}} className="text-accent underline">
            {words.toQueue}
          </Link>
        </p>
      )}
    </Section>
  )
}
