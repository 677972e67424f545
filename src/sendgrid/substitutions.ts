/**
 * Replaces the substitution names of a personalization in a text: once, from left to right, the longest name at each place first. All work for
 * one request comes out of one budget, because a short request can ask for much: many personalizations of a long text.
 */
import { SendGridRefusal } from './errors.ts'

/** Characters that one request may have searched and written. */
export class WorkBudget {
  #left: number
  readonly #most: number

  constructor(most: number) {
    this.#left = most
    this.#most = most
  }

  take(characters: number): void {
    this.#left -= characters
    if (this.#left < 0)
      throw new SendGridRefusal(
        413,
        `the messages of all personalizations are larger than ${this.#most / 1_048_576} MiB together`,
        'personalizations',
        'Send fewer personalizations in one request',
      )
  }
}

/** The names of a personalization, by their first UTF-16 unit, the longest first. */
interface Names {
  byFirst: ReadonlyMap<number, readonly string[]>
  /** Finds the places where a name may begin. */
  firsts: RegExp
  cuts: Map<string, CutText>
}

/** A text cut at names: literal pieces, with the name after each but the last. */
interface CutText {
  literals: readonly string[]
  names: readonly string[]
  /** Of the literals together. */
  length: number
}

/** Costs in characters, so that the whole budget is used up in less than half a second: of a comparison, a name found, and its value. */
const costOfComparison = 32
const costOfLength = 4
const costOfName = 128
const costOfValue = 8

function namesOf(list: readonly string[]): Names {
  const sorted = [...list].sort((one, other) => other.length - one.length)
  const byFirst = Map.groupBy(sorted, (name) => name.charCodeAt(0))
  const escaped = [...byFirst.keys()].map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
  return { byFirst, firsts: new RegExp(`[${escaped.join('')}]`, 'g'), cuts: new Map() }
}

function cutAt(text: string, { byFirst, firsts }: Names, budget: WorkBudget): CutText {
  budget.take(text.length)
  const literals: string[] = []
  const names: string[] = []
  let start = 0
  let length = 0
  firsts.lastIndex = 0
  while (firsts.test(text)) {
    const at = firsts.lastIndex - 1
    const name = byFirst.get(text.charCodeAt(at))?.find((one) => {
      budget.take(costOfComparison + one.length * costOfLength)
      return text.startsWith(one, at)
    })
    if (name === undefined) continue
    budget.take(costOfName)
    literals.push(text.slice(start, at))
    names.push(name)
    length += at - start
    start = at + name.length
    firsts.lastIndex = start
  }
  literals.push(text.slice(start))
  return { literals, names, length: length + text.length - start }
}

/** Replaces the names of one personalization in a text. Throws the refusal of a budget that is used up. */
type Applied = (text: string) => string

/** Cuts each text once for all personalizations with the same names. */
export class Substituter {
  readonly #budget: WorkBudget
  readonly #known = new Map<string, Names>()

  constructor(budget: WorkBudget) {
    this.#budget = budget
  }

  /** Finds the names of a personalization once for all its texts. */
  of(substitutions: Readonly<Record<string, string>>): Applied {
    const list = Object.keys(substitutions)
    if (list.length === 0)
      return (text) => {
        this.#budget.take(text.length)
        return text
      }
    const names = this.#namesOf(list)
    const values = new Map(Object.entries(substitutions))
    return (text) => {
      const cut = this.#cutOf(text, names)
      const length = cut.names.reduce((sum, name) => sum + (values.get(name)?.length ?? 0), cut.length)
      this.#budget.take(length + cut.names.length * costOfValue)
      return cut.literals.map((literal, index) => literal + (values.get(cut.names[index] ?? '') ?? '')).join('')
    }
  }

  #namesOf(list: readonly string[]): Names {
    this.#budget.take(list.reduce((sum, name) => sum + name.length + costOfComparison, 0))
    const key = JSON.stringify([...list].sort())
    const names = this.#known.get(key) ?? namesOf(list)
    this.#known.set(key, names)
    return names
  }

  #cutOf(text: string, names: Names): CutText {
    const cut = names.cuts.get(text) ?? cutAt(text, names, this.#budget)
    names.cuts.set(text, cut)
    return cut
  }
}
