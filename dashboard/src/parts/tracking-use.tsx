/** The share of the last week's emails that people opened, and of those with a click. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get } from '../api-client.ts'
import type { OverTimeResponse, TrackingUseResponse } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Figure, percentIn, sumOf } from './chart.tsx'

const words = texts.tracking.figures
const useEveryMs = 60_000
const weekMs = 604_800_000
const wholePercent = percentIn(0)
const dayOf = (atMs: number) => new Date(atMs).toISOString().slice(0, 10)

/** The emails accepted in the same week, live and test, as the service counts those who read them; true to an hour. */
function useSentInWeek(): number | undefined {
  const { scoped } = useHere()
  const nowMs = Date.now()
  const period = `${dayOf(nowMs - weekMs)}..${dayOf(nowMs)}`
  const path = scoped('/dashboard/api/over-time', { period, granularity: 'hour' })
  const { data } = useQuery({
    queryKey: ['over-time', path],
    queryFn: () => get<OverTimeResponse>(path),
    refetchInterval: useEveryMs,
  })
  return (
    data &&
    sumOf(
      data.points.filter(({ timestamp }) => Date.parse(timestamp) >= nowMs - weekMs),
      'sent',
    )
  )
}

/** The mail of the last week whose readers left a trace. */
export function TrackingUse() {
  const { scoped } = useHere()
  const path = scoped('/dashboard/api/use/tracking')
  const { data } = useQuery({
    queryKey: ['use of tracking', path],
    queryFn: () => get<TrackingUseResponse>(path),
    refetchInterval: useEveryMs,
  })
  const sent = useSentInWeek()
  // A rate only of a whole count; the count of readers has a limit.
  const rateOf = (count: number) => (sent && data?.isComplete ? wholePercent(Math.min(count, sent), sent) : undefined)
  const figure = (event: 'opened' | 'clicked') => {
    const count = data?.[event]
    if (count === undefined) return { value: '–' }
    const rate = rateOf(count)
    const shown = data?.isComplete ? count.toLocaleString() : words.atLeast(count.toLocaleString())
    return rate === undefined ? { value: shown } : { value: rate, before: words.emails(shown) }
  }
  return (
    <dl className="mb-6 grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-paper *:outline *:outline-line">
      {(['opened', 'clicked'] as const).map((event) => (
        <Figure key={event} name={words[event]} {...figure(event)} note={<Emails event={event} />} />
      ))}
    </dl>
  )
}

const Emails = ({ event }: { event: 'opened' | 'clicked' }) => (
  <>
    {words.period} ·{' '}
    <Link to="/emails" search={{ event, within: 'week' }} className="link">
      {words.toOpened}
    </Link>
  </>
)
