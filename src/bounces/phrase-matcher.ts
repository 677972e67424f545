/**
 * Searches a text for many phrases in one pass. A separate search for each phrase would read the text once for each, and some lists have
 * three hundred.
 */

/** Phrases that share this many first characters are compared one by one; shorter phrases are searched separately. */
const startLength = 4
const slots = 65_536

export const says = (words: string, phrases: readonly string[]): boolean => {
  const known = finders.get(phrases) ?? finderOf(phrases)
  finders.set(phrases, known)
  return known(words)
}

type Finder = (words: string) => boolean

const finders = new WeakMap<readonly string[], Finder>()

function finderOf(phrases: readonly string[]): Finder {
  const short = phrases.filter((phrase) => phrase.length < startLength)
  const isStart = new Uint8Array(slots)
  // Most places of a text are passed by their first two characters.
  const isPair = new Uint8Array(slots)
  const byStart = new Map<number, string[]>()
  for (const phrase of phrases.filter((one) => one.length >= startLength)) {
    const start = startAt(phrase, 0)
    isStart[start] = 1
    isPair[pairOf(phrase.charCodeAt(0), phrase.charCodeAt(1))] = 1
    byStart.set(start, [...(byStart.get(start) ?? []), phrase])
  }
  return (words) => {
    if (short.some((phrase) => words.includes(phrase))) return true
    let second = words.charCodeAt(0)
    for (let at = 0; at <= words.length - startLength; at++) {
      const first = second
      second = words.charCodeAt(at + 1)
      if (isPair[pairOf(first, second)] === 0) continue
      const start = startAt(words, at)
      if (isStart[start] === 1 && byStart.get(start)?.some((phrase) => words.startsWith(phrase, at))) return true
    }
    return false
  }
}

/** A hash of two characters. */
const pairOf = (first: number, second: number): number => ((first << 8) ^ second) & (slots - 1)

/** A hash of the characters from here on. */
const startAt = (text: string, at: number): number =>
  (text.charCodeAt(at) + 31 * text.charCodeAt(at + 1) + 961 * text.charCodeAt(at + 2) + 29_791 * text.charCodeAt(at + 3)) % slots
