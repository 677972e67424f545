/**
 * Word patterns, one on each line, matched all at once. Only patterns whose first word occurs are tried, and each looks a limited number
 * of words ahead, so that no text is slow. The patterns are not compiled to regular expressions, which took a fifth of a second.
 */
import { fold } from './normalise-reply.ts'

/** A word, or its beginning and end. */
type Word = string | { begins: string; ends: string }
type Element = { kind: 'one of'; phrases: Phrases; mayLack: boolean } | { kind: 'gap'; maxWords: number }
type Pattern = readonly Element[]
/** By first word; patterns that begin with `word*` by its first letters and the star. */
type Phrases = ReadonlyMap<string, readonly (readonly Word[])[]>

const starLetters = 2
const nearWords = 2
const farWords = 6

export interface Patterns {
  /** The indexes of the lists given to `patternsOf` that have a pattern in these words. */
  foundIn(words: readonly string[]): ReadonlySet<number>
}

/**
 * `lists` contains patterns, one on each line. In a pattern, a word matches itself; `word*` every word that begins so; `{name}` one of the
 * words of that name; `(a|b c)` one of these; `[a|b]` one of these or an empty text; `~` at most two words, `..` at most six, within a
 * sentence.
 */
export function patternsOf(lists: readonly (string | undefined)[], names: Readonly<Record<string, string>>): Patterns {
  const byFirst = new Map<string, { list: number; pattern: Pattern }[]>()
  for (const [list, lines] of lists.entries()) {
    for (const line of (lines ?? '').split('\n').filter((one) => one.trim() !== '')) {
      const pattern = patternOf(line, names)
      const [first] = pattern
      if (first?.kind !== 'one of' || first.mayLack) throw new Error(`a pattern begins with a word that must be there: ${line.trim()}`)
      for (const key of first.phrases.keys()) byFirst.set(key, [...(byFirst.get(key) ?? []), { list, pattern }])
    }
  }
  return {
    foundIn(words) {
      const found = new Set<number>()
      for (const [at, word] of words.entries()) {
        for (const key of [word, starred(word)]) {
          for (const { list, pattern } of byFirst.get(key) ?? []) {
            if (!found.has(list) && isAt(pattern, 0, words, at)) found.add(list)
          }
        }
      }
      return found
    },
  }
}

function isAt(pattern: Pattern, index: number, words: readonly string[], at: number): boolean {
  const element = pattern[index]
  if (element === undefined) return true
  if (element.kind === 'gap') {
    for (let passed = 0; passed <= element.maxWords; passed++) {
      if (isAt(pattern, index + 1, words, at + passed)) return true
      const word = words[at + passed]
      if (word === undefined || word === '.') return false
    }
    return false
  }
  const word = words[at]
  if (word !== undefined) {
    for (const key of [word, starred(word)]) {
      for (const phrase of element.phrases.get(key) ?? []) {
        if (isPhrase(phrase, words, at) && isAt(pattern, index + 1, words, at + phrase.length)) return true
      }
    }
  }
  return element.mayLack && isAt(pattern, index + 1, words, at)
}

const starred = (word: string) => `${word.slice(0, starLetters)}*`

const isPhrase = (phrase: readonly Word[], words: readonly string[], at: number) =>
  phrase.every((one, offset) => {
    const word = words[at + offset]
    if (typeof one === 'string') return one === word
    return word?.startsWith(one.begins) === true && word.endsWith(one.ends) && word.length >= one.begins.length + one.ends.length
  })

const patternOf = (line: string, names: Readonly<Record<string, string>>): Pattern =>
  (line.match(/\([^)]*\)|\[[^\]]*\]|\{[^}]*\}|[^\s([{]+/g) ?? []).map((token): Element => {
    const inside = token.slice(1, -1)
    if (token === '..') return { kind: 'gap', maxWords: farWords }
    if (token === '~') return { kind: 'gap', maxWords: nearWords }
    if (token.startsWith('(')) return oneOf(inside, false)
    if (token.startsWith('[')) return oneOf(inside, true)
    if (!token.startsWith('{')) return oneOf(token, false)
    const words = names[inside]
    if (words === undefined) throw new Error(`no words are named ${token}`)
    return oneOf(words, false)
  })

function oneOf(alternatives: string, mayLack: boolean): Element {
  const phrases = new Map<string, (readonly Word[])[]>()
  for (const alternative of alternatives.split('|')) {
    const phrase = fold(alternative).trim().split(/\s+/).map(wordOf)
    const [first] = phrase
    const key = typeof first === 'object' ? starred(first.begins) : (first ?? '')
    if (typeof first === 'object' && first.begins.length < starLetters) throw new Error(`too short to look for: ${alternative}`)
    phrases.set(key, [...(phrases.get(key) ?? []), phrase])
  }
  return { kind: 'one of', phrases, mayLack }
}

function wordOf(word: string): Word {
  const star = word.indexOf('*')
  return star < 0 ? word : { begins: word.slice(0, star), ends: word.slice(star + 1) }
}
