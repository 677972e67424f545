/**
 * Requests that stand for many messages: a short one can become gigabytes, so that a large one waits for its turn, and every one lets other
 * requests take theirs.
 */
import type { BatchResult, Submission } from '#accept'
import { nextTurn } from '#base'
import { callerGone, openTenantTurns } from './v1/tenant-turns.ts'
import type { VendorCall } from './vendor-api.ts'

/** The largest takes a few seconds, and a request is answered within 32. */
const maxWaiting = 8
/** Only one large request at a time is in memory. */
const largeRequests = openTenantTurns({ atOnce: 1, atOnceOfTenant: 1, maxWaiting })
const largeCharacters = 4_194_304
/** The event loop takes other turns after this many characters, and after this many messages, which may be short and have many addresses. */
const charactersInTurn = 262_144
const messagesInTurn = 8

export const lengthOf = ({ html, text, attachments }: Pick<Submission, 'html' | 'text' | 'attachments'>): number =>
  (html?.length ?? 0) + (text?.length ?? 0) + (attachments ?? []).reduce((sum, one) => sum + one.content.length, 0)

/**
 * `characters`: of all messages together. The work of a large request gets the signal that ends it: a client repeats a request that was
 * answered with a failure, and would send twice.
 */
export function whenRoom<Result>(
  { credential, connection }: Pick<VendorCall, 'credential' | 'connection'>,
  characters: number,
  work: (gone?: AbortSignal) => Promise<Result>,
): Promise<Result> {
  if (characters <= largeCharacters) return work()
  const { gone } = connection
  return largeRequests.run({ tenantId: credential.tenantId, gone }, () => work(gone))
}

/** The submissions that are made one after the other. Throws `callerGone()` once `gone` aborts. */
export async function inTurns(submissions: Iterable<Submission>, gone?: AbortSignal): Promise<Submission[]> {
  const made: Submission[] = []
  let characters = 0
  for (const one of submissions) {
    made.push(one)
    characters += lengthOf(one)
    if (characters > charactersInTurn || made.length % messagesInTurn === 0) {
      await nextTurn()
      if (gone?.aborted) throw callerGone()
      characters = 0
    }
  }
  return made
}

/** Refuses the whole request for its first wrong message. */
export function refuseIncomplete(results: readonly BatchResult[]): void {
  const [first] = results.flatMap((one) => ('refused' in one ? [one.refused] : []))
  if (first) throw first
}
