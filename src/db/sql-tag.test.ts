import { describe, expect, test } from 'vitest'
import { allStatements, type Sql, sql } from './sql-tag.ts'

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
