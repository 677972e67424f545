/** Decides whether a request is retried, and after which delay. */

/** The caller decides about longer delays. */
const maxWaitMs = 60_000
const firstPauseMs = 500
const maxPauseMs = 8000
/** Of a proxy: the request came too late (408) or too early (425). */
const passing: ReadonlySet<number> = new Set([408, 425])

/** The delay requested by the response, in milliseconds; undefined if absent. */
export function waitAsked(headers: Headers, nowMs: number): number | undefined {
  const milliseconds = Number.parseFloat(headers.get('retry-after-ms') ?? '')
  if (milliseconds >= 0) return milliseconds
  const text = headers.get('retry-after')
  if (text === null) return undefined
  if (/^\s*\d+(\.\d+)?\s*$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}

/**
 * Milliseconds until the retry, or undefined for no retry. `isRepeatable`: repeating the request has no further effect. A request refused
 * for its rate (429) was not carried out. Another one may have been, also after `X-Should-Retry: true` or a proxy's 503.
 */
export function pauseAfter(
  answer: { status: number; headers: Headers } | undefined,
  { tries, isRepeatable, nowMs, random }: { tries: number; isRepeatable: boolean; nowMs: number; random: () => number },
): number | undefined {
  const wish = answer?.headers.get('x-should-retry')
  const mayHelp = answer === undefined || answer.status >= 500 || passing.has(answer.status) || wish === 'true'
  if (wish === 'false' || !(answer?.status === 429 || (isRepeatable && mayHelp))) return undefined
  const requestedMs = answer && waitAsked(answer.headers, nowMs)
  if (requestedMs !== undefined) return requestedMs > maxWaitMs ? undefined : requestedMs
  return Math.min(maxPauseMs, firstPauseMs * 2 ** tries) * (0.5 + random() / 2)
}
