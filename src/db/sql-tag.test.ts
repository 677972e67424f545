import { describe, expect, test } from 'vitest'
import { allStatements, type ColumnTypes, type Sql, sql } from './sql-tag.ts'

describe('a statement', () => {
  test('is its whole text, under a name that follows from the text', () => {
    const one = sql`
      select 1`
    expect(one.text).toBe('select 1')
    expect(one.name).toMatch(/^s_[0-9a-f]{16}$/)
    expect(sql`select 1`).toBe(one)
    expect(sql`select 2`.name).not.toBe(one.name)
    expect(allStatements()).toContain(one)
  })

  test('repeats a piece by its number', () => {
    expect(sql`values ${sql.repeated(3, ', ', (nth) => `(${nth}, $${nth + 1})`)}`.text).toBe('values (0, $1), (1, $2), (2, $3)')
  })

  test('names its parameters, whose values follow the declared order', () => {
    const p = sql.parameters({ ids: 'text[]', most: 'bigint', due: 'timestamptz' })
    expect(sql`select ${p.most} from x where id = any(${p.ids}) and at < ${p.due} limit ${p.most}`.text).toBe(
      'select $2::bigint from x where id = any($1::text[]) and at < $3::timestamptz limit $2::bigint',
    )
    const due = new Date(0)
    expect(sql.values(p, { due, most: 3, ids: ['a'] })).toEqual([['a'], 3, due])
    // @ts-expect-error a value of another type
    sql.values(p, { due, most: '3', ids: [] })
    // @ts-expect-error a missing value
    sql.values(p, { due, most: 3 })
    // @ts-expect-error a value without a parameter
    sql.values(p, { due, most: 3, ids: [], other: 1 })
  })

  test('lists the typed columns of a recordset', () => {
    expect(sql.part`as given (${sql.columns({ n: 'integer', emailId: 'text' })})`.text).toBe('as given ("n" integer, "emailId" text)')
    expect(() => sql.columns({ 'a" text); drop table emails': 'text' })).toThrow('is not a column name')
    const types = { n: 'integer', at: 'timestamptz' } satisfies ColumnTypes<{ n: number | null; at: Date }>
    expect(sql.columns(types).text).toBe('"n" integer, "at" timestamptz')
    // @ts-expect-error a misnamed column
    void ({ m: 'integer' } satisfies ColumnTypes<{ n: number }>)
    // @ts-expect-error a type that does not hold the value
    void ({ n: 'text' } satisfies ColumnTypes<{ n: number }>)
  })

  test('takes in fragments, which are not statements themselves', () => {
    const columns = sql.part`id, name`
    const whole = sql`select ${columns} from tenants where ${sql.part`id = $1`}`
    expect(whole.text).toBe('select id, name from tenants where id = $1')
    expect(allStatements()).not.toContain(columns)
  })

  test('refuses values, also those in the form of a fragment', () => {
    for (const value of ["'; drop table emails", 1, null, { text: 'x', name: '' }]) {
      expect(() => sql`select ${value as Sql<unknown>}`).toThrow('pass values as parameters')
    }
  })
})
