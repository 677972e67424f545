/**
 * Times of orders: the renewal at two thirds of a certificate's lifetime, and the retry after a failure within the rate limits of
 * certificate authorities. Pure functions.
 */

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** Let's Encrypt allows five failed validations of a name in an hour. These waits place at most four orders in any hour. */
const retryDelaysMs = [2 * minuteMs, 10 * minuteMs, 30 * minuteMs, hourMs, 2 * hourMs, 6 * hourMs, 12 * hourMs, dayMs] as const
const retryJitter = 0.2

/** Part of the lifetime after which a certificate is renewed, and the width of the jitter around it. */
const renewPart = 2 / 3
const renewJitter = 0.02

/** A CA that asks for a longer wait is asked again after this time, because its clock may be wrong. */
const maxAskedMs = 7 * dayMs

/** An order that takes longer has failed, and another process may place the next one. */
export const orderWithinMs = 100_000

/** The challenges of RFC 8555 section 8.3 and RFC 8737. */
export type ChallengeKind = 'http-01' | 'tls-alpn-01'

/** Wait in milliseconds from the order that failed to the next one. `failures`: at least 1; `random` in [0, 1). */
export function orderRetryMs(failures: number, random: number): number {
  const stepMs = retryDelaysMs[Math.min(Math.max(failures, 1), retryDelaysMs.length) - 1] ?? dayMs
  return Math.round(stepMs * (1 + retryJitter * random))
}

/** Time of the retry if the CA asked for a wait of `askedMs` (Retry-After): the later one, at most a week away. */
export const laterAsAsked = (retryMs: number, askedMs: number): number => Math.max(retryMs, Math.min(askedMs, maxAskedMs))

/**
 * Time of the renewal of a certificate that is valid from `fromMs` to `toMs`, at least an hour or half its lifetime after `nowMs`: with a
 * clock that is ahead, it would be due at once, again and again. `random` in [0, 1).
 */
export function renewalMs(fromMs: number, toMs: number, random: number, nowMs: number): number {
  const lifeMs = toMs - fromMs
  const leastMs = Math.min(hourMs, lifeMs / 2)
  return Math.round(Math.max(nowMs + leastMs, fromMs + lifeMs * (renewPart + renewJitter * (2 * random - 1))))
}

/**
 * The challenge of the next order: the one that succeeded last, or the first available one. After each failure the other one, because a
 * firewall or proxy may block one port only.
 */
export function challengeFor(available: readonly ChallengeKind[], last: ChallengeKind | null, failures: number): ChallengeKind {
  const ordered = last !== null && available.includes(last) ? [last, ...available.filter((one) => one !== last)] : available
  return ordered[failures % ordered.length] ?? 'http-01'
}
