/**
 * Decides the next step of a domain's DKIM rotation from its keys and the records that DNS returns. Pure: the caller reads the clock, asks
 * the resolvers and saves the result. A key signs only after every resolver asked has returned its record for a day, and its record is
 * never replaced while mail that it signed may still be verified.
 */
import type { RecordStatus } from './dns-records.ts'

const hourMs = 3_600_000

/**
 * The record is published for this time before its key signs. It is longer than the times to live that Postrider writes, and than the delay
 * of usual secondary name servers.
 */
export const settleMs = 24 * hourMs
/** The records of the next keys are prepared so long before the date of the rotation. */
const aheadMs = settleMs + hourMs
/** Relays and receivers retry for four or five days (RFC 5321 section 4.5.4.1), and this program for the time of its schedule. */
export const keyRetentionMs = (retriesMs: number) => Math.max(5 * 24 * hourMs, retriesMs + 24 * hourMs)
/** Between two checks of records that were not seen. */
const unseenEveryMs = hourMs / 2
/** Between two checks of records that were seen. */
const settlingEveryMs = settleMs / 4
/** Between two looks at a domain without pending work: its CNAME records may have been published. */
const idleEveryMs = 6 * hourMs

/** The answer of all resolvers: `unknown` if one of them failed and the others agree with the record. */
export type Sight = 'yes' | 'no' | 'unknown'

export interface NextKeyState {
  seenSinceMs: number | null
  ed25519SeenSinceMs: number | null
}

export interface RotatedState {
  selector: string
  ownKey: boolean
  verified: boolean
  dkimStatus: RecordStatus | null
  /** The selectors are CNAMEs below the platform's name. */
  delegated: boolean
  /** Since when the present keys sign. */
  keySinceMs: number
}

export interface Schedule {
  /** Null: only on request. */
  everyMs: number | null
  /** Also domains whose TXT records their owner publishes. */
  alsoTxt: boolean
}

const second = '-2'

/** The two selectors of a domain whose DNS has CNAMEs; the customer publishes them once. */
export function selectorPair(selector: string): [string, string] {
  const first = selector.endsWith(second) ? selector.slice(0, -second.length) : selector
  return [first, first + second]
}

/** The selector of the next keys. With CNAMEs it is the other one of the pair, or undefined while a retired key occupies it. */
export function nextSelector(
  { selector, delegated, ownKey }: RotatedState,
  taken: readonly string[],
  newLabel: () => string,
): string | undefined {
  if (!delegated || ownKey) return `pr-${newLabel()}`
  const other = selectorPair(selector).find((one) => one !== selector) as string
  return taken.includes(other) ? undefined : other
}

/** When the next keys of this domain are prepared by the schedule; undefined: only on request. */
export function preparedAtMs(domain: RotatedState, { everyMs, alsoTxt }: Schedule): number | undefined {
  const { ownKey, verified, dkimStatus, delegated, keySinceMs } = domain
  // A key that the operator brought along stays until the operator replaces it, and a domain without its record has other needs first.
  if (everyMs === null || ownKey || !verified || dkimStatus !== 'OK') return undefined
  return delegated || alsoTxt ? keySinceMs + everyMs - aheadMs : undefined
}

const since = (before: number | null, seen: Sight, nowMs: number) => (seen === 'no' ? null : seen === 'yes' ? (before ?? nowMs) : before)

/** A failed lookup neither begins nor ends the time for which a record was seen. */
export const stateAfterCheck = (key: NextKeyState, seen: { rsa: Sight; ed25519: Sight }, nowMs: number): NextKeyState => ({
  seenSinceMs: since(key.seenSinceMs, seen.rsa, nowMs),
  ed25519SeenSinceMs: since(key.ed25519SeenSinceMs, seen.ed25519, nowMs),
})

const isSettled = (sinceMs: number | null, seen: Sight, nowMs: number) => sinceMs !== null && seen === 'yes' && nowMs - sinceMs >= settleMs

/**
 * Which of the next keys may sign now, after this check. The RSA key decides, and waits only for an Ed25519 record that is on its way: that
 * record is optional.
 */
export function usableKeys(key: NextKeyState, seen: { rsa: Sight; ed25519: Sight }, nowMs: number): { rsa: boolean; ed25519: boolean } {
  const ed25519 = isSettled(key.ed25519SeenSinceMs, seen.ed25519, nowMs)
  return { rsa: isSettled(key.seenSinceMs, seen.rsa, nowMs) && (ed25519 || key.ed25519SeenSinceMs === null), ed25519 }
}

/** The next look at a domain: `next` are its next keys, `keptUntilMs` the end of its retired keys. */
export function nextLookMs(
  { next, keptUntilMs, dueMs }: { next: NextKeyState | undefined; keptUntilMs: readonly number[]; dueMs: number | undefined },
  nowMs: number,
): number {
  const idleMs = nowMs + idleEveryMs
  if (!next) return Math.max(nowMs + unseenEveryMs, Math.min(idleMs, ...keptUntilMs, dueMs ?? idleMs))
  if (next.seenSinceMs === null) return nowMs + unseenEveryMs
  return Math.min(nowMs + settlingEveryMs, Math.max(next.seenSinceMs + settleMs, nowMs + unseenEveryMs / 6))
}
