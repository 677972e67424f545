/**
 * Requests that stand for many messages: a short one can become gigabytes, so that a large one waits for its turn, and every one lets other
 * requests take theirs.
 */
import type { BatchResult, Submission } from '#accept'
import { nextTurn, openSemaphore } from '#base'

/** Only one large request at a time is in memory. */
const largeRequests = openSemaphore(1)
const largeCharacters = 4_194_304
/** The event loop takes other turns after this many characters. */
const charactersInTurn = 262_144

export const lengthOf = ({ html, text, attachments }: Pick<Submission, 'html' | 'text' | 'attachments'>): number =>
  (html?.length ?? 0) + (text?.length ?? 0) + (attachments ?? []).reduce((sum, one) => sum + one.content.length, 0)

/** `characters`: of all messages together. */
export const whenRoom = <Result>(characters: number, work: () => Promise<Result>): Promise<Result> =>
  characters > largeCharacters ? largeRequests.run(work) : work()

/** The submissions that are made one after the other. */
export async function inTurns(submissions: Iterable<Submission>): Promise<Submission[]> {
  const made: Submission[] = []
  let characters = 0
  for (const one of submissions) {
    made.push(one)
    characters += lengthOf(one)
    if (characters > charactersInTurn) {
      await nextTurn()
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
