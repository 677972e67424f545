/**
 * The work budget for reading one message, for any content: parts, nested messages and nested quotes all draw on it. When it is used up,
 * the whole message counts as unread.
 */

/** Characters of header and text searched for words: some 20 ms of work. The longest known report has a quarter of it. */
const maxReadCharacters = 400_000
/** Octets that are only searched for a boundary, or decoded: the largest message, once at each of a few depths. */
const maxScannedCharacters = 104_857_600
/** Nested messages, attached or quoted, that are tried as a forwarded report. */
const maxOtherReports = 4

export interface Work {
  read(characters: number): void
  scan(octets: number): void
  /** Counts one more; false when the limit is reached. */
  mayReadAnother(): boolean
}

export class TooMuchWork extends Error {}

export function openWork(): Work {
  let left = { read: maxReadCharacters, scanned: maxScannedCharacters, others: maxOtherReports }
  const spend = (what: 'read' | 'scanned', amount: number) => {
    left = { ...left, [what]: left[what] - amount }
    if (left[what] < 0) throw new TooMuchWork(`the message exceeds the limit for data ${what}`)
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
