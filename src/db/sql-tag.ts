/**
 * The tag for all SQL: statements are constants created at import time, so that one test can prepare each of them against the schema.
 * Parameters are positional ($1) or, in a long statement, named. Only text made by this tag can be interpolated, never a value.
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

/** The SQL types of named parameters and of the columns of a recordset, with their values. */
interface SqlTypes {
  text: string
  boolean: boolean
  smallint: number
  integer: number
  bigint: number
  timestamptz: Date
  uuid: string
  interval: string
  /** As a parameter it is the text, in a recordset the object. */
  json: string | object
  jsonb: object
  'smallint[]': readonly number[]
  'integer[]': readonly number[]
  'bigint[]': readonly number[]
  'text[]': readonly string[]
}

type SqlType = keyof SqlTypes

/** A fragment that stands for one parameter with its type: `$1::text[]`. */
interface SqlParameter<Type extends SqlType> extends Sql<never> {
  /** Phantom: carries the type, never a value. */
  readonly type?: Type
}

type SqlParameters<Types> = { readonly [Name in keyof Types]: Types[Name] extends SqlType ? SqlParameter<Types[Name]> : never }
type ValuesOf<Types> = { readonly [Name in keyof Types]: Types[Name] extends SqlType ? SqlTypes[Types[Name]] : never }

/** The SQL types that can hold the fields of a row. A missing or misnamed column is an error of the compiler. */
export type ColumnTypes<Row> = { readonly [Name in keyof Row]: SqlTypeOf<NonNullable<Row[Name]>> }
type SqlTypeOf<Value> = { [Type in SqlType]: Value extends SqlTypes[Type] ? Type : never }[SqlType]

function columnsOf(types: Readonly<Record<string, SqlType>>): Sql<never> {
  const columns = Object.entries(types).map(([name, type]) => {
    if (!/^\w+$/.test(name)) throw new TypeError(`"${name}" is not a column name`)
    return `"${name}" ${type}`
  })
  return fragmentOf(columns.join(', '))
}

/**
 * sql<{ id: string }>`select id from tenants where id = $1`; interpolates only other fragments. `sql.part` makes a fragment, which is not
 * registered as a statement. `sql.repeated` makes one from pieces that differ only in their number.
 */
export const sql: Tag & {
  readonly part: Tag
  /** Joins the results of `piece` for 0 to `count` - 1. They consist of numbers and constants, never of values. */
  repeated(count: number, separator: ', ' | ' + ', piece: (nth: number) => string): Sql<never>
  /** A fragment for each parameter, numbered in this order: `{ ids: 'text[]' }` makes `ids` stand for `$1::text[]`. */
  parameters<const Types extends Readonly<Record<string, SqlType>>>(types: Types): SqlParameters<Types>
  /** The values of a call, in the order of the parameters. */
  values<Types>(parameters: SqlParameters<Types>, values: ValuesOf<NoInfer<Types>>): unknown[]
  /** The column list of a recordset: `{ id: 'text' }` makes `"id" text`. */
  columns(types: Readonly<Record<string, SqlType>>): Sql<never>
} = Object.assign(whole, {
  part,
  repeated: (count: number, separator: string, piece: (nth: number) => string) =>
    fragmentOf(Array.from({ length: count }, (_, nth) => piece(nth)).join(separator)),
  parameters: <Types extends Readonly<Record<string, SqlType>>>(types: Types) =>
    Object.fromEntries(
      Object.entries(types).map(([name, type], index) => [name, fragmentOf(`$${index + 1}::${type}`)]),
    ) as SqlParameters<Types>,
  values: (parameters: object, values: object) =>
    Object.keys(parameters).map((name) => (values as Readonly<Record<string, unknown>>)[name]),
  columns: columnsOf,
})

/** Every complete statement created so far in this process. */
export const allStatements = (): readonly Sql<unknown>[] => [...statements.values()]
