import Type from 'typebox'
import { describe, expect, test } from 'vitest'
import type { Refusal } from '#base'
import { pageFields } from './common-schemas.ts'
import { query, queryReader } from './query-parameters.ts'

const read = queryReader(
  query({
    ...pageFields,
    reveal: Type.Boolean({ default: false }),
    status: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: ['sent', 'held'] })),
    tag: Type.Optional(Type.String()),
    tenantId: Type.Optional(Type.String()),
    period: Type.String(),
  }),
)
const given = (text: string) => Object.fromEntries(new URLSearchParams(text))
const refusal = (values: Record<string, unknown>): Refusal => {
  try {
    read(values)
  } catch (error) {
    return error as Refusal
  }
  throw new Error('it was not refused')
}

describe('a query', () => {
  test('turns text into numbers and booleans, and fills in defaults', () => {
    expect(read(given('period=x'))).toEqual({ page: 1, perPage: 30, reveal: false, period: 'x' })
    expect(read(given('period=x&page=7&perPage=100&reveal=1&tag=a'))).toEqual({
      page: 7,
      perPage: 100,
      reveal: true,
      period: 'x',
      tag: 'a',
    })
  })

  test.each([
    ['true', true],
    ['TRUE', true],
    ['1', true],
    ['false', false],
    ['False', false],
    ['0', false],
    ['', false],
  ])('reads the boolean %o', (text, value) => {
    expect(read({ period: 'x', reveal: text }).reveal).toBe(value)
  })

  test('takes an empty value as not given', () => {
    expect(read(given('period=x&page=&status=&tag='))).toEqual({ page: 1, perPage: 30, reveal: false, period: 'x' })
  })

  test.each([
    ['page', '0'],
    ['page', '1.5'],
    ['page', 'two'],
    ['page', '1e3'],
    ['page', '99999999999999999999'],
    ['page', '-1'],
    ['perPage', '101'],
    ['perPage', '0'],
    ['reveal', 'yes'],
    ['status', 'lost'],
    ['period', ''],
    ['tag', 'a\0b'],
  ])('refuses %s=%o by its name', (name, text) => {
    expect(refusal({ period: 'x', [name]: text })).toMatchObject({ code: 'validation_error', field: name })
  })

  test('refuses a parameter given twice', () => {
    expect(refusal({ period: 'x', page: ['1', '2'] }).message).toBe('page is given more than once')
  })

  test('takes the older spelling tenant_id, and ignores unknown parameters', () => {
    expect(read(given('period=x&tenant_id=abc&colour=red'))).toMatchObject({ tenantId: 'abc' })
    expect(read(given('period=x&colour=red'))).not.toHaveProperty('colour')
  })
})
