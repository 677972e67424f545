/**
 * Word patterns, matched all at once. Only patterns whose first word occurs are tried, and each looks a limited number of words ahead in a
 * limited number of ways, so that no text is slow. The patterns are not compiled to regular expressions, which took a fifth of a second.
 */
import { fold } from './normalise-reply.ts'

/** A word, or its beginning and end. */
type Word = string | { begins: string; ends: string }
/** `ways`: the places at which the element can end, for one place at which it begins. */
type Element = ({ kind: 'one of'; phrases: Phrases; mayLack: boolean } | { kind: 'gap'; maxWords: number }) & { ways: number }
export type Pattern = readonly Element[]
export type Synonyms = ReadonlyMap<string, Element>
/** By first word; patterns that begin with `word*` by its first letters and the star. */
type Phrases = ReadonlyMap<string, readonly (readonly Word[])[]>

const starLetters = 2
const nearWords = 2
const farWords = 6
/** Ways to place one pattern from one word. It limits the time for any text. */
const maxWays = 64

export interface Patterns {
  /** The indexes of the lists given to `patternsOf` that have a pattern in these words. */
  foundIn(words: readonly string[]): ReadonlySet<number>
}

/** One list of patterns for each rule. */
export function patternsOf(lists: readonly (readonly Pattern[])[]): Patterns {
  const byFirst = new Map<string, { list: number; pattern: Pattern }[]>()
  for (const [list, patterns] of lists.entries()) {
    for (const pattern of patterns) {
      const [first] = pattern
      if (first?.kind !== 'one of') continue
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

const elements = /\([^()[\]{}]*\)|\[[^()[\]{}]*\]|\{[^()[\]{}|]*\}|[^\s()[\]{}|]+/g

/**
 * In a pattern, a word matches itself; `word*` every word that begins so; `{name}` one of the words of that name; `(a|b c)` one of these;
 * `[a|b]` one of these or an empty text; `~` at most two words, `..` at most six, within a sentence. Throws if the pattern is invalid.
 */
export function parsePattern(text: string, synonyms: Synonyms): Pattern {
  if (text.replace(elements, '').trim() !== '') throw new Error('brackets or bars do not match')
  const pattern = (text.match(elements) ?? []).map((token): Element => {
    const inside = token.slice(1, -1)
    if (token === '..') return { kind: 'gap', maxWords: farWords, ways: farWords + 1 }
    if (token === '~') return { kind: 'gap', maxWords: nearWords, ways: nearWords + 1 }
    if (token.startsWith('(')) return oneOf(inside, false)
    if (token.startsWith('[')) return oneOf(inside, true)
    if (!token.startsWith('{')) return oneOf(token, false)
    const words = synonyms.get(inside)
    if (words === undefined) throw new Error(`no synonyms are named ${token}`)
    return words
  })
  const [first] = pattern
  if (first?.kind !== 'one of' || first.mayLack) throw new Error('a pattern begins with a word that must be present')
  const ways = pattern.reduce((product, element) => product * element.ways, 1)
  if (ways > maxWays) throw new Error(`${ways} ways to match from one word, at most ${maxWays}: use fewer "..", "~" and "[…]"`)
  return pattern
}

/** Alternatives separated by bars. Throws if one is invalid. */
export const parseSynonyms = (alternatives: string): Element => oneOf(alternatives, false)

function oneOf(alternatives: string, mayLack: boolean): Element {
  const phrases = new Map<string, (readonly Word[])[]>()
  for (const alternative of alternatives.split('|')) {
    const phrase = fold(alternative).trim().split(/\s+/).map(wordOf)
    const [first] = phrase
    if (first === '') throw new Error('a choice is empty')
    const key = typeof first === 'object' ? starred(first.begins) : (first ?? '')
    if (typeof first === 'object' && first.begins.length < starLetters)
      throw new Error(`fewer than ${starLetters} letters before the star: ${alternative.trim()}`)
    phrases.set(key, [...(phrases.get(key) ?? []), phrase])
  }
  return { kind: 'one of', phrases, mayLack, ways: waysOf(phrases, alternatives.includes('*')) + Number(mayLack) }
}

function wordOf(word: string): Word {
  const star = word.indexOf('*')
  return star < 0 ? word : { begins: word.slice(0, star), ends: word.slice(star + 1) }
}

/** The most phrases that can begin at the same word. */
function waysOf(phrases: Phrases, hasStars: boolean): number {
  let most = 1
  for (const [key, some] of phrases) {
    const stars = hasStars && !key.endsWith('*') ? (phrases.get(starred(key)) ?? []) : []
    if (some.length + stars.length > 1) most = Math.max(most, mostTogether([...some, ...stars]))
  }
  return most
}

const mostTogether = (phrases: readonly (readonly Word[])[]) =>
  Math.max(...phrases.map((long) => phrases.filter((short) => isBeginning(short, long)).length))

const isBeginning = (short: readonly Word[], long: readonly Word[]) =>
  short.length <= long.length && short.every((word, at) => mayBeEqual(word, long[at] as Word))

/** Whether one word can match both. */
const mayBeEqual = (one: Word, other: Word) => one === other || isCovered(one, other) || isCovered(other, one)

const isCovered = (one: Word, by: Word) => typeof by === 'object' && (typeof one === 'string' ? one : one.begins).startsWith(by.begins)
