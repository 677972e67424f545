/**
 * Every field of every body, wrong in every way the schema and the contract know. The wrong values are generated from the schema. Each gets
 * a documented 4xx that names the field; no response is a 500.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Endpoint, refusalsOf, routes } from '#http'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'
import { attachment, goodBodies, prepare } from './valid-bodies.ts'

interface Schema {
  type?: string | string[]
  enum?: unknown[]
  minLength?: number
  maxLength?: number
  maxItems?: number
  minItems?: number
  maxProperties?: number
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  propertyNames?: Schema
  additionalProperties?: Schema
}

type Path = readonly (string | number)[]

interface Malformed {
  says: string
  /** Position of the wrong value; the value may be `absent`. */
  path: Path
  value: unknown
}

const absent = Symbol('absent')
const textOf = (length: number) => 'x'.repeat(length)

/** Yields every wrong value of a schema, at every depth. */
function* wrongsOf(schema: Schema, path: Path, required: boolean): Generator<Malformed> {
  const types = [schema.type ?? []].flat()
  const isAny = Object.keys(schema).length === 0
  const wrong = (says: string, value: unknown): Malformed => ({ says, path, value })
  if (required) yield wrong('absent', absent)
  if (isAny) return
  const samples: Record<string, unknown> = { null: null, string: 'text', integer: 7, boolean: true, object: { a: 1 }, array: ['text'] }
  for (const [type, value] of Object.entries(samples))
    if (!types.includes(type) && !(type === 'integer' && types.includes('number'))) yield wrong(`${type} instead`, value)
  if (types.includes('string')) {
    if (schema.minLength) yield wrong('empty', '')
    if (schema.maxLength) yield wrong('too long', textOf(schema.maxLength + 1))
    yield wrong('with a NUL', 'a\0b')
    yield wrong('with half a surrogate pair', 'a\ud800b')
  }
  if (types.includes('array') && schema.items) {
    if (schema.minItems) yield wrong('with no element', [])
    if (schema.maxItems) yield wrong('with too many elements', Array(schema.maxItems + 1).fill(sampleOf(schema.items)))
    yield* wrongsOf(schema.items, [...path, 0], false)
  }
  if (schema.properties)
    for (const [name, one] of Object.entries(schema.properties))
      yield* wrongsOf(one, [...path, name], schema.required?.includes(name) ?? false)
  if (schema.additionalProperties) {
    yield* wrongsOf(schema.additionalProperties, [...path, 'aKey'], false)
    if (schema.maxProperties)
      yield wrong('with too many keys', Object.fromEntries(Array.from({ length: schema.maxProperties + 1 }, (_, n) => [`key${n}`, 'v'])))
    if (schema.propertyNames?.maxLength)
      yield { says: 'named too long', path: [...path, textOf(schema.propertyNames.maxLength + 1)], value: 'v' }
    // Values of any kind are not stored under their names.
    if (Object.keys(schema.additionalProperties).length === 0) return
    yield { says: 'named with a space', path: [...path, 'a key'], value: 'v' }
    yield { says: 'named with a NUL', path: [...path, 'a\0'], value: 'v' }
  }
}

function sampleOf(schema: Schema): unknown {
  const type = [schema.type ?? []].flat()[0]
  if (type === 'string') return 'someone@simulator.test'
  if (type === 'array') return [sampleOf(schema.items ?? {})]
  if (type === 'object') return Object.fromEntries((schema.required ?? []).map((name) => [name, sampleOf(schema.properties?.[name] ?? {})]))
  return type === 'boolean'
}

function changed(whole: unknown, [step, ...rest]: Path, value: unknown): unknown {
  if (step === undefined) return value
  const copy: Record<string | number, unknown> = Array.isArray(whole) ? ([...whole] as never) : { ...(whole as object) }
  const inner = changed(copy[step] ?? (typeof rest[0] === 'number' ? [] : {}), rest, value)
  if (inner === absent) delete copy[step]
  else copy[step] = inner
  return copy
}

const named = (path: Path) => path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('')

const withBody = routes.filter((one) => one.body !== undefined)
const cases = withBody.flatMap((endpoint) =>
  [...wrongsOf((endpoint.documentedBody ?? endpoint.body) as Schema, [], false)]
    .filter((one) => one.path.length > 0)
    .filter((one) => !(goodBodies[endpoint.name]?.anyKeys && one.says === 'named with a space'))
    .filter((one) => !(goodBodies[endpoint.name]?.countsAddresses && one.path.at(-1) === 'address' && typeof one.value === 'string'))
    .map((one) => ({ endpoint, ...one })),
)

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
  await prepare(service)
})
afterAll(() => service.stop())

let bodies = 0
const good = (name: string): Record<string, unknown> => {
  const found = goodBodies[name]
  if (!found) throw new Error(`valid-bodies.ts has no body for ${name}`)
  return found.body(++bodies)
}
const send = async (endpoint: Endpoint, body: string | Buffer, headers: Record<string, string> = {}) =>
  service.call(endpoint.method, (await goodBodies[endpoint.name]?.path?.(service)) ?? endpoint.path, {
    key: service.testKey,
    raw: body,
    headers,
  })

test('there are at least two hundred ways to get a body wrong', () => {
  expect(cases.length).toBeGreaterThan(200)
})

describe.each(withBody.map((endpoint) => [endpoint.name, endpoint] as const))('%s', (name, endpoint) => {
  test('accepts a body with every field', async () => {
    const answer = await send(endpoint, JSON.stringify(good(name)))
    expect(answer.body).toMatchObject({ success: true })
  })

  test.each(cases.filter((one) => one.endpoint === endpoint).map((one) => [named(one.path).slice(0, 60), one.says, one] as const))(
    'names %s when it is %s',
    async (_, __, { path, value }) => {
      const answer = await send(endpoint, JSON.stringify(changed(good(name), path, value)))
      const error = errorIn(answer, name, path)
      expect(refusalsOf(endpoint)).toContain(error?.code)
      expect(error?.suggestion).not.toBe('')
      expect(fieldFits(error?.field, path), `${error?.field}: ${error?.message}`).toBe(true)
    },
  )

  test.each<[string, string | Buffer, Record<string, string>, string]>([
    ['cut short', '{"from":"a@', {}, 'invalid_json'],
    ['not JSON', 'from=a', {}, 'invalid_json'],
    ['only space', '   ', {}, 'invalid_json'],
    ['a list', '[]', {}, 'validation_error'],
    ['null', 'null', {}, 'validation_error'],
    ['a text', '"text"', {}, 'validation_error'],
    ['a number too large for JSON numbers', '1e999', {}, 'validation_error'],
    ['absent', '', {}, 'validation_error'],
    ['with a byte order mark', '\ufeff{}', {}, 'invalid_json'],
    ['not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), {}, 'invalid_json'],
    ['200,000 levels deep', `{"from":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, {}, 'invalid_json'],
    ['33 levels deep', `{"x":${'['.repeat(32)}${']'.repeat(32)}}`, {}, 'invalid_json'],
    ['of another media type', '{}', { 'content-type': 'text/plain' }, 'invalid_content_type'],
    ['of a nameless media type', '{}', { 'content-type': 'json' }, 'invalid_content_type'],
    ['a form', 'from=a', { 'content-type': 'application/x-www-form-urlencoded' }, 'invalid_content_type'],
    ['compressed', '{}', { 'content-encoding': 'gzip' }, 'invalid_content_type'],
    [
      'fifty thousand keys',
      JSON.stringify(Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n}`, n]))),
      {},
      'validation_error',
    ],
    ['a digit run of a megabyte', `{"from":${'9'.repeat(1_000_000)}}`, {}, 'validation_error'],
    ['polluting a prototype', '{"__proto__":{"from":"a@simulator.test"},"constructor":{"prototype":{"to":[]}}}', {}, 'validation_error'],
  ])('refuses a body that is %s', async (_, body, headers, code) => {
    const answer = await send(endpoint, body, headers)
    // Unknown keys are ignored, so where every field is optional, this body counts as empty.
    if (goodBodies[name]?.mayBeEmpty && code === 'validation_error' && answer.status === 200) return
    expect(answer).toMatchObject({ status: 400, body: { success: false, error: { code } } })
    expect(({} as { from?: unknown }).from).toBe(undefined)
  })

  test('refuses a body over 64 MiB, and lets the client finish sending it', async () => {
    const answer = await send(endpoint, Buffer.alloc(64 * 1_048_576 + 1, 0x20))
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'payload_too_large' } } })
    expect(answer.headers.get('connection')).not.toBe('close')
  })
})

test('25 MB of html is refused by its name', async () => {
  const answer = await service.call('POST', '/emails', { key: service.testKey, body: { ...good('emails.send'), html: textOf(25_000_000) } })
  expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation_error', field: 'html' } } })
})

test('an attachment of 25 MB is refused by its name', async () => {
  const body = { ...good('emails.send'), attachments: [{ ...attachment, content: Buffer.alloc(25_000_000).toString('base64') }] }
  const answer = await service.call('POST', '/emails', { key: service.testKey, body })
  expect(answer).toMatchObject({ status: 400, body: { error: { code: 'payload_too_large', field: 'attachments[0].content' } } })
})

test('every problem of a body is listed, up to twenty', async () => {
  const few = await service.call('POST', '/emails', { key: service.testKey, body: { from: 5, to: 'x', subject: '' } })
  expect(few.body.error?.details?.map((one) => one.field)).toEqual(['from', 'to', 'subject'])
  const many = await service.call('POST', '/emails', {
    key: service.testKey,
    body: { from: 'a@simulator.test', subject: 'x', to: Array(50).fill(1) },
  })
  expect(many.body.error?.details).toHaveLength(20)
})

test('metadata may have keys that objects inherit', async () => {
  const metadata = { constructor: 'a', toString: 'b', hasOwnProperty: 'c' }
  const sent = await service.call('POST', '/emails', { key: service.testKey, body: { ...good('emails.send'), metadata } })
  expect(sent.status).toBe(200)
  const read = await service.call('GET', `/emails/${(sent.body.data as { id: string }).id}`, { key: service.testKey })
  expect(read.body.data).toMatchObject({ metadata })
})

/** The error of the request, or of one element of a batch if only that element is wrong. */
function errorIn(answer: Answer, name: string, path: Path) {
  const ofElement = name === 'emails.sendBatch' && path[0] === 'emails' && path.length > 2
  if (!ofElement) {
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
    return answer.body.error
  }
  expect(answer).toMatchObject({ status: 200, body: { data: { total: 1, accepted: 0, failed: 1 } } })
  return (answer.body.data as { results: { error: Answer['body']['error'] }[] }).results[0]?.error
}

/** The error names the field itself; for the older spelling of tenantId it names the present one. */
function fieldFits(field: string | undefined, path: Path): boolean {
  const expected = named(path)
  return (
    field === expected ||
    (expected === 'tenant_id' && field === 'tenantId') ||
    (field !== undefined && field.length > 60 && expected.startsWith(field))
  )
}
