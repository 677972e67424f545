import fc from 'fast-check'
import fastify from 'fastify'
import Type from 'typebox'
import { describe, expect, test } from 'vitest'
import { optional } from './common-schemas.ts'
import { compileSchema, refusalOf } from './validate.ts'

const schema = Type.Object({
  from: Type.String({ minLength: 1, maxLength: 5 }),
  to: Type.Array(Type.String({ minLength: 1, maxLength: 3 }), { minItems: 1, maxItems: 3 }),
  kind: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: ['a', 'b'] })),
  count: optional(Type.Integer({ minimum: 1, maximum: 9 })),
  flag: optional(Type.Boolean()),
  parts: optional(Type.Array(Type.Object({ name: Type.String({ maxLength: 2 }) }), { maxItems: 2 })),
  metadata: optional(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      maxProperties: 2,
      propertyNames: { type: 'string', pattern: '^[a-z]+$', maxLength: 11 },
      additionalProperties: { type: 'string', minLength: 1, maxLength: 4 },
    }),
  ),
})
const problemsOf = compileSchema(schema)

describe('a shape', () => {
  test('is fitted by every value that the schema allows, unknown keys included', () => {
    expect(problemsOf({ from: 'a', to: ['b'], count: null, unknown: [1], metadata: { constructor: 'x' } })).toEqual([])
  })

  test('coerces nothing', () => {
    const fields = problemsOf({ from: 5, to: 'a', count: '3', flag: 'true', parts: {} }).map((one) => one.field)
    expect(fields).toEqual(['from', 'to', 'count', 'flag', 'parts'])
  })

  test('names every problem by its path, in the order of the schema', () => {
    expect(problemsOf({ to: ['a', 'long', 7], kind: 'c', parts: [{ name: 'x' }, {}], metadata: { A: 'x', b: '' } })).toEqual([
      { field: 'from', message: 'is required' },
      { field: 'to[1]', message: 'must have at most 3 characters' },
      { field: 'to[2]', message: 'must be a string' },
      { field: 'kind', message: 'must be one of a, b' },
      { field: 'parts[1].name', message: 'is required' },
      { field: 'metadata.A', message: 'must match ^[a-z]+$' },
      { field: 'metadata.b', message: 'must not be empty' },
    ])
  })

  test('counts characters as Unicode code points', () => {
    expect(problemsOf({ from: '\u{1f600}'.repeat(5), to: ['x'] })).toEqual([])
    expect(problemsOf({ from: '\u{1f600}'.repeat(6), to: ['x'] })).toHaveLength(1)
  })

  test('lists twenty problems of a million, and does not look at the elements of a list that is too long', () => {
    const many = compileSchema(Type.Array(Type.String()))
    expect(many(Array(1_000_000).fill(1), 'to')).toHaveLength(20)
    expect(problemsOf({ from: 'a', to: Array(1_000_000).fill(1) })).toEqual([{ field: 'to', message: 'must have at most 3 elements' }])
  })

  test('of a schema with a keyword it does not check is refused when it is made', () => {
    expect(() => compileSchema(Type.Unsafe({ type: 'string', not: { const: 'x' } }))).toThrow('not is not supported')
  })

  test('does not take inherited names for fields', () => {
    expect(compileSchema(Type.Object({ constructor: Type.String() }))({})).toEqual([{ field: 'constructor', message: 'is required' }])
  })
})

test('a refusal has the first problem as its message and lists all', () => {
  const refusal = refusalOf([
    { field: 'subject', message: 'is required' },
    { field: 'to', message: 'must be an array' },
  ])
  expect(refusal).toMatchObject({ code: 'validation_error', status: 400, message: 'subject is required', field: 'subject' })
  expect(refusal.details).toHaveLength(2)
})

describe('always', () => {
  const value = fc.oneof(
    fc.string({ maxLength: 6, unit: 'grapheme' }),
    fc.integer({ min: -2, max: 12 }),
    fc.boolean(),
    fc.constant(null),
    fc.double(),
    fc.constant({}),
    fc.constant([]),
  )
  const body = fc.record(
    {
      from: fc.oneof({ weight: 3, arbitrary: fc.string({ maxLength: 6, unit: 'grapheme' }) }, value),
      to: fc.oneof(
        {
          weight: 3,
          arbitrary: fc.array(fc.oneof({ weight: 5, arbitrary: fc.string({ minLength: 1, maxLength: 4 }) }, value), { maxLength: 4 }),
        },
        value,
      ),
      kind: fc.oneof(fc.constantFrom('a', 'b', 'c'), value),
      count: value,
      flag: value,
      parts: fc.oneof(fc.array(fc.oneof(fc.record({ name: fc.string({ maxLength: 3 }) }), value), { maxLength: 3 }), value),
      metadata: fc.oneof(
        fc.dictionary(fc.stringMatching(/^[a-cA]{1,3}$/), fc.oneof(fc.string({ maxLength: 5 }), value), { maxKeys: 3 }),
        value,
      ),
    },
    { requiredKeys: [] },
  )

  test('agrees with Ajv on the values that fit', async () => {
    const app = fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, strictTypes: false } } })
    app.post('/', { schema: { body: schema } }, () => 'fits')
    await fc.assert(
      fc.asyncProperty(fc.oneof({ weight: 9, arbitrary: body }, value), async (given) => {
        const sent = JSON.stringify(given)
        const answer = await app.inject({ method: 'POST', url: '/', headers: { 'content-type': 'application/json' }, payload: sent })
        expect(problemsOf(JSON.parse(sent)).length === 0).toBe(answer.statusCode === 200)
      }),
      { numRuns: 1500 },
    )
    await app.close()
  })
})
