/**
 * What reading one message may cost, whatever stands in it and however often it stands there: parts, messages in messages and quotes of
 * quotes all draw on the same account. When it is empty the whole message stays unread.
 */

/** Characters of header and text that words are looked for in, one by one. The longest report known to us has a tenth of it. */
const mostRead = 1_000_000
/** Octets that are only searched for a boundary, or decoded: the largest message, once at each of a few depths. */
const mostScanned = 104_857_600
/** Messages inside the message, attached or quoted, that are tried as the report that somebody passed on. */
const mostOthers = 4

export interface Work {
  read(characters: number): void
  scan(octets: number): void
  /** Counts one more; false when there have been enough. */
  mayReadAnother(): boolean
}

export class TooMuchWork extends Error {}

export function openWork(): Work {
  let left = { read: mostRead, scanned: mostScanned, others: mostOthers }
  const spend = (what: 'read' | 'scanned', amount: number) => {
    left = { ...left, [what]: left[what] - amount }
    if (left[what] < 0) throw new TooMuchWork(`more than can be ${what} of one message`)
  }
  return {
    read: (characters) => spend('read', characters),
    scan: (octets) => spend('scanned', octets),
    mayReadAnother() {
      left = { ...left, others: left.others - 1 }
      return left.others >= 0
    },
  }
}
