/** The health of the installation in three states: one line while all of it is healthy, otherwise each part with its reason. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get } from '../api-client.ts'
import type { HealthResponse } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Badge, Coded, Problem } from './basic-components.tsx'

const words = texts.health
const everyMs = 15_000
const lateMs = 300_000
const veryLateMs = 3_600_000
const minuteMs = 60_000
const shards = 64

type State = keyof typeof words.states
const tones = { healthy: 'good', degraded: 'wait', failing: 'bad' } as const

function resultsOf({ queue, overdueMs, shardsUnowned, restoreWaiting }: HealthResponse): [name: string, state: State, details: string][] {
  const waiting = Object.values(queue).reduce((sum, count) => sum + count, 0)
  const queueSaid =
    waiting === 0
      ? words.queueEmpty
      : overdueMs < minuteMs
        ? words.queueOnTime(waiting)
        : words.queueLate(waiting, Math.round(overdueMs / minuteMs))
  return [
    [words.queue, overdueMs < lateMs ? 'healthy' : overdueMs < veryLateMs ? 'degraded' : 'failing', queueSaid],
    [
      words.shards,
      shardsUnowned === 0 ? 'healthy' : shardsUnowned < shards ? 'degraded' : 'failing',
      shardsUnowned === 0 ? words.shardsOwned : words.shardsUnowned(shardsUnowned),
    ],
    [words.restore, restoreWaiting ? 'degraded' : 'healthy', restoreWaiting ? words.restoreWaits : words.restoreNone],
  ]
}

export function Health() {
  const { member } = useHere()
  const { data, error } = useQuery({
    queryKey: ['health'],
    queryFn: () => get<HealthResponse>('/dashboard/api/health'),
    refetchInterval: everyMs,
  })
  if (!data) return <Problem error={error} />
  const results = resultsOf(data)
  // The parts are news only if one of them is not healthy.
  const shown = results.every(([, state]) => state === 'healthy') ? results.slice(0, 1) : results
  return (
    <div className="mt-3 flex flex-wrap items-center justify-between gap-x-8 gap-y-2 rounded-lg border border-line px-4 py-2.5 text-sm">
      <ul aria-label={words.title} className="flex flex-wrap gap-x-8 gap-y-2">
        {shown.map(([name, state, details]) => (
          <li key={name} className="flex flex-wrap items-center gap-x-2">
            <Badge tone={tones[state]}>{words.states[state]}</Badge> {shown.length > 1 && <span className="font-medium">{name}</span>}
            <span className="text-xs text-soft">
              <Coded>{details}</Coded>
            </span>
          </li>
        ))}
      </ul>
      {member.role === 'owner' && (
        <Link to="/queue" search={{}} className="link text-xs">
          {texts.overview.toQueue}
        </Link>
      )}
    </div>
  )
}
