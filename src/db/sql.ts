/**
 * The one way to write SQL: whole statements as constants, made by this tag at import time, so that one test can prepare every one of
 * them against the schema. Parameters are positional ($1); what is interpolated is text of this tag's own making, never a value.
 */
import { hash } from 'node:crypto'

/** A statement and the type of its rows. Prepared once on each connection, under a name made from its text. */
export interface Sql<Row> {
  readonly text: string
  /** Empty for a part of a statement. */
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
      throw new TypeError('only fragments made by the sql tag go into SQL text: pass values as parameters')
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
 * sql<{ id: string }>`select id from tenants where id = $1`; interpolates other fragments only. `sql.part` makes a fragment, which is
 * no statement of its own and is not registered; `sql.repeated` one of pieces that differ in their number alone.
 */
export const sql: Tag & {
  readonly part: Tag
  /** What `piece` says of 0, 1, … to `count` - 1, joined. Of numbers and constants, never of a value. */
  repeated(count: number, separator: ', ' | ' + ', piece: (nth: number) => string): Sql<never>
} = Object.assign(whole, {
  part,
  repeated: (count: number, separator: string, piece: (nth: number) => string) =>
    fragmentOf(Array.from({ length: count }, (_, nth) => piece(nth)).join(separator)),
})

/** Every whole statement made so far in this process. */
export const allStatements = (): readonly Sql<unknown>[] => [...statements.values()]
