/** A rate against the limits of the mailbox providers, in words and colour. */
import { texts } from '../texts.ts'
import { Before, percent, tablePercent } from './chart.tsx'

interface RateLimits {
  /** Percent from which the rate is high. */
  high: number
  /** Percent that providers do not accept. */
  most: number
  /** One decimal, where a limit has whole percents; otherwise two. */
  shownAs: (part: number, whole: number) => string
}

/**
 * Complaints: Gmail's sender guidelines ask for less than 0.1% and never 0.3%; Yahoo's for less than 0.3%. Bounces: Amazon SES asks for less
 * than 2% and reviews senders from 5%.
 */
export const limits = {
  complaints: { high: 0.1, most: 0.3, shownAs: percent },
  bounces: { high: 2, most: 5, shownAs: tablePercent },
} as const satisfies Record<string, RateLimits>

const words = texts.rate
const looks = { none: 'text-soft', good: 'text-good', high: 'text-wait', over: 'text-bad' } as const

/** `before`: the rate of the period before, in words. */
export function RateFigure(props: { name: string; before?: string | undefined; part: number; whole: number; limits: RateLimits }) {
  const { high, most } = props.limits
  const rate = props.whole === 0 ? 0 : (props.part / props.whole) * 100
  const state = props.whole === 0 ? 'none' : rate >= most ? 'over' : rate >= high ? 'high' : 'good'
  const shown = {
    none: words.none,
    good: words.good(`${high}%`),
    high: words.high(`${high}%`, `${most}%`),
    over: words.over(`${most}%`),
  }[state]
  return (
    <div className="min-w-0 bg-paper px-4 py-3">
      <dt className="text-xs text-soft">{props.name}</dt>
      <dd className="mt-0.5 text-xl font-semibold tracking-tight tabular-nums">
        {props.limits.shownAs(props.part, props.whole)}
        {props.before && <Before>{props.before}</Before>}
      </dd>
      <dd className={`text-xs ${looks[state]}`}>{shown}</dd>
    </div>
  )
}
