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
  const byStart = new Map<number, string[]>()
  for (const phrase of phrases.filter((one) => one.length >= startLength)) {
    const start = startAt(phrase, 0)
    isStart[start] = 1
    byStart.set(start, [...(byStart.get(start) ?? []), phrase])
  }
  return (words) => {
    if (short.some((phrase) => words.includes(phrase))) return true
    for (let at = 0; at <= words.length - startLength; at++) {
      const start = startAt(words, at)
      if (isStart[start] === 1 && byStart.get(start)?.some((phrase) => words.startsWith(phrase, at))) return true
    }
    return false
  }
}

/** A hash of the characters from here on. */
const startAt = (text: string, at: number): number =>
  (text.charCodeAt(at) + 31 * text.charCodeAt(at + 1) + 961 * text.charCodeAt(at + 2) + 29_791 * text.charCodeAt(at + 3)) % slots
