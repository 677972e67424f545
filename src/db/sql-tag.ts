/**
 * The tag for all SQL: statements are constants created at import time, so that one test can prepare each of them against the schema.
 * Parameters are positional ($1). Only text made by this tag can be interpolated, never a value.
 */
import { hash } from 'node:crypto'

/** A statement and the type of its rows. Prepared once on each connection, under a name derived from its text. */
export interface Sql<Row> {
  readonly text: string
  /** Empty for a fragment. */
  readonly name: string
  /** Phantom: carries the type, never a value. */
  readonly row?: Row
}

type Tag = <Row = never>(strings: TemplateStringsArray, ...fragments: Sql<unknown>[]) => Sql<Row>

const statements = new Map<string, Sql<unknown>>()
const made = new WeakSet<object>()

function compose(strings: readonly string[], fragments: readonly Sql<unknown>[]): string {
  let text = strings[0] ?? ''
  fragments.forEach((fragment, index) => {
    if (typeof fragment !== 'object' || fragment === null || !made.has(fragment)) {
      throw new TypeError('SQL text accepts only fragments of the sql tag: pass values as parameters')
    }
    text += fragment.text + (strings[index + 1] ?? '')
  })
  return text.trim()
}

const whole: Tag = (strings, ...fragments) => {
  const text = compose(strings, fragments)
  const known = statements.get(text)
  if (known) return known as Sql<never>
  const statement = { text, name: `s_${hash('sha256', text).slice(0, 16)}` }
  made.add(statement)
  statements.set(text, statement)
  return statement
}

function fragmentOf(text: string): Sql<never> {
  const fragment = { text, name: '' }
  made.add(fragment)
  return fragment
}

const part: Tag = (strings, ...fragments) => fragmentOf(compose(strings, fragments))

/**
 * sql<{ id: string }>`select id from tenants where id = $1`; interpolates only other fragments. `sql.part` makes a fragment, which is not
 * registered as a statement. `sql.repeated` makes one from pieces that differ only in their number.
 */
export const sql: Tag & {
  readonly part: Tag
  /** Joins the results of `piece` for 0 to `count` - 1. They consist of numbers and constants, never of values. */
  repeated(count: number, separator: ', ' | ' + ', piece: (nth: number) => string): Sql<never>
} = Object.assign(whole, {
  part,
  repeated: (count: number, separator: string, piece: (nth: number) => string) =>
    fragmentOf(Array.from({ length: count }, (_, nth) => piece(nth)).join(separator)),
})

/** Every complete statement created so far in this process. */
export const allStatements = (): readonly Sql<unknown>[] => [...statements.values()]
