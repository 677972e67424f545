/** The opened and clicked emails of the last week, and the track domains that are found in DNS. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { get } from '../api-client.ts'
import type { TrackDomain, TrackingUseResponse } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Figure, Figures, ofLimit } from './chart.tsx'

const words = texts.tracking.figures
const useEveryMs = 60_000

/** The mail of the last week whose readers left a trace. */
export function TrackingUse({ of: tracks }: { of: readonly TrackDomain[] }) {
  const { scoped } = useHere()
  const path = scoped('/dashboard/api/use/tracking')
  const { data } = useQuery({
    queryKey: ['use of tracking', path],
    queryFn: () => get<TrackingUseResponse>(path),
    refetchInterval: useEveryMs,
  })
  const shown = (count: number | undefined) => {
    if (count === undefined) return '–'
    return data?.isComplete ? count.toLocaleString() : words.atLeast(count.toLocaleString())
  }
  const found = tracks.filter(({ dnsStatus }) => dnsStatus === 'ok').length
  return (
    <div className="mb-6">
      <Figures columns={3}>
        <Figure name={words.opened} value={shown(data?.opened)} note={<Emails event="opened" />} />
        <Figure name={words.clicked} value={shown(data?.clicked)} note={<Emails event="clicked" />} />
        <Figure
          name={words.ready}
          value={ofLimit({ used: found, limit: tracks.length })}
          {...(found < tracks.length ? { tone: 'wait', note: words.readyHelp } : {})}
        />
      </Figures>
    </div>
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
