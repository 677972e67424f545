/**
 * The bounds of one rendering: processor time, items made, memory, and the size of every value. Filters refuse before they do work that the
 * length of their input does not show, such as the text of a list whose items are one long list many times.
 */
import { toValueSync } from 'liquidjs'

/** Processor time of all parts of one message. One step more may follow, which takes a few milliseconds. */
const budgetUs = 35_000
/** Of a value on the way, such as the input of a filter. */
export const maxValueLength = 100_000
const maxItems = 10_000
const maxResultLength = 1_000_000
/** The engine's filters refuse a longer text themselves, after they made it. */
const maxTextLength = maxResultLength / 5
/** Of a list with the lists in it: items and keys, and their characters. */
const maxNestedValues = 400_000
const maxNestedLength = 4_000_000
/** Of the path that a filter follows in each item. */
const maxPathLength = 200
/** Items of ranges and characters of values, together. */
const maxWork = 8_000_000
/** Of filters' results and of ranges, whether they are still used or not. The heap has several times as much. */
const maxMadeOctets = 48_000_000

export type LiquidFilter = (this: { context: { memoryLimit: Budget } }, value: unknown, ...given: unknown[]) => unknown

export const refuseTemplate = (message: string): never => {
  throw new Error(message)
}

interface Size {
  /** Characters of the value as text, in which an object has a few. */
  text: number
  /** Characters with all in the value's objects. */
  length: number
  /** Items, keys and values within the value, and itself. */
  values: number
}

const objectText = '[object Object]'.length

function sizeOfPlain(value: unknown): Size {
  const length =
    typeof value === 'string' ? value.length : typeof value === 'number' || typeof value === 'boolean' ? String(value).length : 0
  return { text: length, length, values: 1 }
}

/** Counts the processor time of this thread and all that a template makes. The engine calls it before each step. */
export class Budget {
  readonly #since = process.threadCpuUsage()
  readonly #sizes = new WeakMap<object, Size>()
  #work = 0
  #madeOctets = 0
  #isInFilter = false

  spentUs(): number {
    const { user, system } = process.threadCpuUsage(this.#since)
    return user + system
  }

  check(): void {
    if (this.spentUs() > budgetUs) refuseTemplate('it takes too long')
  }

  use(count: number): void {
    this.check()
    if (!(count > 0)) return
    this.#work += count
    if (count > maxTextLength || this.#work > maxWork) refuseTemplate('it makes too much')
    // Outside of filters the engine counts only ranges.
    if (!this.#isInFilter) this.make(8 * count)
  }

  make(octets: number): void {
    this.#madeOctets += octets
    if (this.#madeOctets > maxMadeOctets) refuseTemplate('it makes too much')
  }

  /** Each list and object is measured once, so that its aliases cost no time. Values never change. */
  sizeOf(value: unknown): Size {
    if (typeof value !== 'object' || value === null) return sizeOfPlain(value)
    const known = this.#sizes.get(value)
    if (known) return known
    const isList = Array.isArray(value)
    const size = { text: isList ? 0 : objectText, length: 0, values: 1 }
    for (const key in value) {
      const item = this.sizeOf((value as Record<string, unknown>)[key])
      if (isList) size.text += item.text
      size.length += item.length + (isList ? 1 : key.length)
      size.values += item.values
    }
    this.#sizes.set(value, size)
    return size
  }

  /** Refuses a list that would take too long to compare, to sort or to print. */
  measured(value: unknown): Size {
    const size = this.sizeOf(value)
    if (size.values > maxNestedValues || size.length > maxNestedLength) refuseTemplate('a list is too large with the lists in it')
    return size
  }

  /** Runs a filter to its end. */
  inFilter(run: () => unknown): unknown {
    const before = this.#isInFilter
    this.#isInFilter = true
    try {
      return toValueSync(run())
    } finally {
      this.#isInFilter = before
    }
  }
}

/** Filters that take lists as they are. The others make one text of a list first. */
const ofLists = new Set('compact concat default first last map reverse size slice sort sort_natural sum uniq where json'.split(' '))
/** Filters that follow a path in each item. */
const withPath = new Set(['map', 'sort', 'sort_natural', 'sum', 'where'])

/** How many times an argument can occur in the result. */
function repeats(name: string, value: unknown, text: number): number {
  if (name.startsWith('replace')) return text + 1
  return name === 'join' || name === 'json' ? ((value as { length?: number } | null)?.length ?? 0) + 1 : 1
}

function refuseLarge(value: unknown): void {
  if (typeof value === 'string' && value.length > maxValueLength) refuseTemplate(`a value has more than ${maxValueLength} characters`)
  if (Array.isArray(value) && value.length > maxItems) refuseTemplate(`a list has more than ${maxItems} items`)
}

function refuseSlow(name: string, budget: Budget, value: unknown, given: unknown[]): void {
  const text = Array.isArray(value) ? budget.measured(value).text : typeof value === 'string' ? value.length : 0
  const lengths = given.map((one) => (Array.isArray(one) ? budget.measured(one).text : typeof one === 'string' ? one.length : 0))
  const length = Math.max(0, ...lengths)
  if (!ofLists.has(name) && Math.max(text, length) > maxTextLength)
    refuseTemplate(`the text of a list has more than ${maxTextLength} characters`)
  if (length * repeats(name, value, text) > maxResultLength || (name === 'date' && length > 100))
    refuseTemplate(`the result of ${name} would be too long`)
  if (name === 'json' && budget.sizeOf(value).length > maxResultLength) refuseTemplate('the result of json would be too long')
  if (withPath.has(name) && (lengths[0] ?? 0) > maxPathLength)
    refuseTemplate(`the property of ${name} has more than ${maxPathLength} characters`)
  // Each item is compared with it.
  const expected = name === 'where' && Array.isArray(given[1]) ? budget.sizeOf(given[1]).values : 0
  if (Array.isArray(value) && expected * value.length > maxNestedValues) refuseTemplate('where compares too much')
}

/** A list has a pointer for each item; `split` also has a text for each. */
const octetsOf = (name: string, result: unknown) =>
  typeof result === 'string' ? 2 * result.length : Array.isArray(result) ? result.length * (name === 'split' ? 40 : 8) : 0

export function bounded(name: string, filter: LiquidFilter): LiquidFilter {
  return function (value, ...given) {
    const budget = this.context.memoryLimit
    budget.check()
    for (const one of [value, ...given]) refuseLarge(one)
    refuseSlow(name, budget, value, given)
    const result = budget.inFilter(() => filter.call(this, value, ...given))
    if (typeof result === 'string' && result.length > maxResultLength) refuseTemplate(`the result of ${name} is too long`)
    if (Array.isArray(result)) budget.measured(result)
    if (result !== value) budget.make(octetsOf(name, result))
    return result
  }
}

/** The escaping of an output, whose value may be longer than that of a filter. */
export function boundedEscape(escape: LiquidFilter): LiquidFilter {
  return function (value) {
    const budget = this.context.memoryLimit
    if (Array.isArray(value) && budget.sizeOf(value).text > maxTextLength)
      refuseTemplate(`the text of a list has more than ${maxTextLength} characters`)
    const result = budget.inFilter(() => escape.call(this, value))
    budget.make(octetsOf('escape', result))
    return result
  }
}
