/** The figures above the list of queues, of all queues although the list has only the longest. */
import type { QueueResponse } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Figure, Figures } from './chart.tsx'
import { Age, Time } from './time-and-copy.tsx'

const words = texts.queue
const dayMs = 86_400_000
const isLate = (at: string) => Date.now() - Date.parse(at) >= dayMs

type States = Pick<QueueResponse['totals'], 'ready' | 'overLimit' | 'sending' | 'deferred' | 'held'>
const sizeOf = ({ ready, overLimit, sending, deferred, held }: States) => ready + overLimit + sending + deferred + held

/** Such as "36 deferred, 3 held". */
const statesIn = ({ ready, overLimit, sending, deferred, held }: States) =>
  (
    [
      [words.names.waiting, ready + overLimit],
      [words.names.sending, sending],
      [words.names.deferred, deferred],
      [words.names.held, held],
    ] as const
  )
    .filter(([, sum]) => sum > 0)
    .map(([name, sum]) => `${sum.toLocaleString()} ${name.toLowerCase()}`)
    .join(', ')

/** How much waits, since when, and until when. Mail of a day or more is late. */
export function QueueSummary({ of: { totals, recipientDomains, isCut } }: { of: QueueResponse }) {
  const { oldestAt, nextDueAt } = totals
  const [longest] = recipientDomains.toSorted((a, b) => sizeOf(b) - sizeOf(a))
  return (
    <div className="mb-4">
      <Figures>
        <Figure name={words.figures.emails} value={sizeOf(totals).toLocaleString()} note={statesIn(totals)} />
        <Figure
          name={words.figures.domains}
          value={totals.recipientDomains.toLocaleString()}
          note={longest && words.longest(longest.recipientDomain, sizeOf(longest))}
        />
        <Figure
          name={words.figures.oldest}
          value={oldestAt === null ? '–' : <Age at={oldestAt} />}
          {...(oldestAt !== null && isLate(oldestAt) ? { tone: 'wait' as const } : {})}
          note={recipientDomains.find((one) => one.oldestAt === oldestAt)?.recipientDomain}
        />
        <Figure
          name={words.figures.next}
          value={nextDueAt === null ? '–' : <DueTime at={nextDueAt} />}
          note={nextDueAt !== null && recipientDomains.find((one) => one.nextDueAt === nextDueAt)?.recipientDomain}
        />
      </Figures>
      {isCut && <p className="mt-2 text-xs text-soft">{words.cut(recipientDomains.length, totals.recipientDomains)}</p>}
    </div>
  )
}

/** A time that has passed is due. */
export const DueTime = ({ at }: { at: string }) => (Date.parse(at) <= Date.now() ? words.now : <Time at={at} />)
