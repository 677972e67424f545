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

interface TrieNode {
  name: string | undefined
  next: Map<number, TrieNode>
}

/** A name found costs as much as this many characters: its place in the list of pieces. */
const costOfName = 64

const newNode = (): TrieNode => ({ name: undefined, next: new Map() })

function trieOf(names: readonly string[]): TrieNode {
  const root = newNode()
  for (const name of names) {
    let node = root
    for (let at = 0; at < name.length; at++) {
      const code = name.charCodeAt(at)
      const next = node.next.get(code) ?? newNode()
      node.next.set(code, next)
      node = next
    }
    node.name = name
  }
  return root
}

/** A text cut at names: literal pieces, with the name after each but the last. */
interface CutText {
  literals: string[]
  names: string[]
}

function cutAt(text: string, root: TrieNode, budget: WorkBudget): CutText {
  const cut: CutText = { literals: [], names: [] }
  let start = 0
  for (let at = 0; at < text.length; ) {
    let name: string | undefined
    let end = at
    for (let node = root.next.get(text.charCodeAt(at)); node; node = node.next.get(text.charCodeAt(end))) {
      end++
      name = node.name ?? name
    }
    budget.take(end - at + 1)
    if (name === undefined) at++
    else {
      budget.take(costOfName)
      cut.literals.push(text.slice(start, at))
      cut.names.push(name)
      at += name.length
      start = at
    }
  }
  cut.literals.push(text.slice(start))
  return cut
}

/** Cuts each text once for personalizations with the same names, which usually are all of them. */
export class Substituter {
  readonly #budget: WorkBudget
  #names = ''
  #root = newNode()
  #cuts = new Map<string, CutText>()

  constructor(budget: WorkBudget) {
    this.#budget = budget
  }

  /** Throws the refusal of a budget that is used up. */
  applied(text: string, substitutions: Readonly<Record<string, string>>): string {
    const names = Object.keys(substitutions)
    if (names.length === 0) {
      this.#budget.take(text.length)
      return text
    }
    const key = JSON.stringify(names)
    if (key !== this.#names) {
      this.#names = key
      this.#root = trieOf(names)
      this.#cuts = new Map()
    }
    const cut = this.#cuts.get(text) ?? cutAt(text, this.#root, this.#budget)
    this.#cuts.set(text, cut)
    const values = cut.names.map((name) => substitutions[name] ?? '')
    const length = [...cut.literals, ...values].reduce((sum, piece) => sum + piece.length, 0)
    this.#budget.take(length + values.length * costOfName)
    return cut.literals.map((literal, index) => literal + (values[index] ?? '')).join('')
  }
}
