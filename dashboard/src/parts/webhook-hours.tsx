/** The requests of a webhook by hour, delivered and failed, which shows since when it fails. */
import type { WebhookUseResponse } from '../api-types.ts'
import { texts } from '../texts.ts'

const words = texts.webhook
type Use = WebhookUseResponse['webhooks'][string]

/** Nothing for more requests than are counted: the earlier hours would look empty. */
export function RequestsByHour({ of: { requests, delivered, requestsByHour, deliveredByHour, isComplete } }: { of: Use }) {
  if (!isComplete) return null
  const most = Math.max(1, ...requestsByHour)
  const part = (count: number) => ({ height: `${(count / most) * 100}%` })
  const last = requestsByHour.length - 1
  return (
    <figure className="mt-4">
      <figcaption className="mb-1.5 flex justify-between text-xs text-soft">
        <span>{words.hoursAgo(requestsByHour.length)}</span>
        <span>{words.byHour}</span>
        <span>{words.now}</span>
      </figcaption>
      <div
        role="img"
        aria-label={words.byHourIs(delivered.toLocaleString(), requests.toLocaleString())}
        className="flex h-12 items-end gap-0.5 border-b border-edge/60"
      >
        {requestsByHour.map((count, hour) => {
          const taken = deliveredByHour[hour] ?? 0
          return (
            <span
              // biome-ignore lint/suspicious/noArrayIndexKey: an hour is its place
              key={hour}
              data-tip={words.hourIs(last - hour, taken.toLocaleString(), count.toLocaleString())}
              className="flex h-full flex-1 flex-col-reverse hover:bg-sheet"
            >
              <span
                className={`bg-chart-good/30 shadow-[inset_0_0_0_1px_var(--color-chart-good)] ${taken > 0 ? 'min-h-0.5' : 'hidden'}`}
                style={part(taken)}
              />
              <span className={`bg-chart-bad ${count > taken ? 'min-h-0.5' : 'hidden'}`} style={part(count - taken)} />
            </span>
          )
        })}
      </div>
    </figure>
  )
}
