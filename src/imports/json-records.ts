/**
 * Finds the records of a JSON export while its octets arrive: each element of a list, each object of a JSON Lines file, or both in several
 * documents one after the other. Keeps at most one record, and costs the same for each octet.
 */
import { Refusal } from '#base'

/** `text` is undefined for a record that is too long. */
export interface JsonPiece {
  /** Of its first octet, from 1. */
  line: number
  text: string | undefined
  /** An object without the records in it, and not always JSON: `{"List":[],"NextToken":"x"}`. */
  isAround: boolean
}

const [lineFeed, quote, backslash, openList, closeList, openObject, closeObject] = [10, 34, 92, 91, 93, 123, 125]
const blanks = new Set([9, 10, 13, 32, 44])

/** The octets of one record, as far as they have arrived. */
class Collected {
  readonly line: number
  /** The record ends where the nesting returns to this depth. */
  readonly depth: number
  readonly #maxOctets: number
  #parts: Uint8Array[] = []
  #octets = 0

  constructor(line: number, depth: number, maxOctets: number) {
    this.line = line
    this.depth = depth
    this.#maxOctets = maxOctets
  }

  /** Copies the octets: the caller may use its buffer again, and a view would keep all of it. */
  add(part: Uint8Array): void {
    this.#octets += part.length
    if (this.#octets <= this.#maxOctets) this.#parts.push(new Uint8Array(part))
    else this.#parts = []
  }

  piece(): Omit<JsonPiece, 'isAround'> {
    return { line: this.line, text: this.#octets > this.#maxOctets ? undefined : Buffer.concat(this.#parts).toString('utf8') }
  }
}

/** A record is an object or a string in a list of the top level, an object in a list directly in an object, or an object without such lists. */
export class JsonSplitter {
  readonly #maxOctets: number
  #line = 1
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** The octets that opened the first two levels. */
  #first = 0
  #second = 0
  /** An object of the top level, without the records in it. */
  #outer: Collected | undefined
  #hasRecords = false
  #inner: Collected | undefined
  #outerFrom = 0
  #innerFrom = 0

  constructor(maxOctets: number) {
    this.#maxOctets = maxOctets
  }

  /** The records that end in these octets. Refuses octets that cannot be JSON. */
  *push(chunk: Uint8Array): Generator<JsonPiece> {
    this.#outerFrom = 0
    this.#innerFrom = 0
    for (let at = 0; at < chunk.length; at++) {
      const octet = chunk[at] as number
      if (octet === lineFeed) this.#line++
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (octet === backslash) this.#isEscaped = true
        else if (octet === quote) {
          this.#isInString = false
          if (this.#inner?.depth === this.#depth) yield this.#taken('inner', chunk, at)
        }
      } else if (octet === quote) this.#openString(at)
      else if (octet === openObject || octet === openList) this.#open(octet, chunk, at)
      else if (octet === closeObject || octet === closeList) yield* this.#close(chunk, at)
      else if (this.#depth === 0 && !blanks.has(octet)) this.#fail()
    }
    if (this.#inner) this.#inner.add(chunk.subarray(this.#innerFrom))
    else this.#addToOuter(chunk.subarray(this.#outerFrom))
  }

  /** The line of a record that the input cuts off, if there is one. */
  end(): number | undefined {
    return this.#isInString || this.#depth > 0 ? (this.#inner?.line ?? this.#outer?.line ?? this.#line) : undefined
  }

  #fail(): never {
    throw new Refusal('validation_error', {
      message: `line ${this.#line} is not JSON`,
      suggestion: 'Give the file as the service exports it',
    })
  }

  #openString(at: number): void {
    this.#isInString = true
    if (this.#depth === 0) this.#fail()
    if (this.#depth === 1 && this.#first === openList) this.#startInner(at)
  }

  #startInnerOfObject(chunk: Uint8Array, at: number): void {
    this.#addToOuter(chunk.subarray(this.#outerFrom, at))
    this.#hasRecords = true
    this.#startInner(at)
  }

  /** Leaves out commas and blanks between records, so that a page of any length is within the bound. */
  #addToOuter(part: Uint8Array): void {
    if (!this.#hasRecords || part.some((octet) => !blanks.has(octet))) this.#outer?.add(part)
  }

  #startInner(at: number): void {
    this.#inner = new Collected(this.#line, this.#depth, this.#maxOctets)
    this.#innerFrom = at
  }

  #open(octet: number, chunk: Uint8Array, at: number): void {
    const isObject = octet === openObject
    if (this.#depth === 0) {
      this.#first = octet
      this.#outer = isObject ? new Collected(this.#line, 0, this.#maxOctets) : undefined
      this.#outerFrom = at
      this.#hasRecords = false
    } else if (this.#depth === 1) {
      this.#second = octet
      if (isObject && this.#first === openList) this.#startInner(at)
    } else if (this.#depth === 2 && isObject && this.#first === openObject && this.#second === openList) {
      this.#startInnerOfObject(chunk, at)
    }
    this.#depth++
  }

  *#close(chunk: Uint8Array, at: number): Generator<JsonPiece> {
    if (this.#depth === 0) this.#fail()
    this.#depth--
    if (this.#inner?.depth === this.#depth) yield this.#taken('inner', chunk, at)
    if (this.#depth === 0 && this.#outer) yield this.#taken('outer', chunk, at)
  }

  #taken(which: 'inner' | 'outer', chunk: Uint8Array, at: number): JsonPiece {
    const isInner = which === 'inner'
    const collected = (isInner ? this.#inner : this.#outer) as Collected
    collected.add(chunk.subarray(isInner ? this.#innerFrom : this.#outerFrom, at + 1))
    if (isInner) this.#inner = undefined
    else this.#outer = undefined
    this.#outerFrom = at + 1
    return { ...collected.piece(), isAround: !isInner && this.#hasRecords }
  }
}
