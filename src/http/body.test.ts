import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CommitUnknown, DatabaseUnreachable, NotDurable } from '#db'
import { ClientLeft, openBodyRoom, parseJson } from './body.ts'
import { refusedWith } from './refused.ts'

const parse = (text: string | Buffer) => parseJson(Buffer.from(text))
const invalid = expect.objectContaining({ code: 'invalid_json', status: 400 })

describe('a body', () => {
  test.each([
    ['broken syntax', '{"a":'],
    ['a trailing comma', '{"a":1,}'],
    ['a comment', '{}//'],
    ['a byte order mark', '\ufeff{}'],
    ['octets that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['UTF-16', Buffer.from('{}', 'utf16le')],
    ['200,000 levels', `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
    ['33 levels', `${'['.repeat(33)}${']'.repeat(33)}`],
    ['nothing but space', '  '],
  ])('with %s is refused as invalid JSON', (_, text) => {
    expect(() => parse(text)).toThrow(invalid)
  })

  test('of 32 levels is read', () => {
    expect(parse(`${'['.repeat(32)}${']'.repeat(32)}`)).toBeInstanceOf(Array)
  })

  test('with a key given twice has the last', () => {
    expect(parse('{"a":1,"a":2}')).toEqual({ a: 2 })
  })

  test('with __proto__ and constructor changes no prototype', () => {
    const body = parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')
    expect(Object.getPrototypeOf(body)).toBe(Object.prototype)
    expect(({} as { polluted?: number }).polluted).toBe(undefined)
  })

  test('of any octets is parsed as JSON.parse does, or refused', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json().map((text) => Buffer.from(text)),
          fc.uint8Array({ maxLength: 40 }).map((octets) => Buffer.from(octets)),
        ),
        (octets) => {
          let parsed: unknown
          try {
            parsed = parseJson(octets)
          } catch (error) {
            expect(error).toEqual(invalid)
            return
          }
          expect(parsed).toEqual(JSON.parse(octets.toString()))
        },
      ),
    )
  })
})

describe('room for large bodies', () => {
  const here = () => new AbortController().signal

  test('lets in what fits, and the next when one has left', async () => {
    const room = openBodyRoom(100)
    const leave = await room.enter(60, here())
    const order: string[] = []
    const second = room.enter(60, here()).then((go) => (order.push('second'), go))
    const third = room.enter(10, here()).then((go) => (order.push('third'), go))
    await Promise.resolve()
    expect(order).toEqual([])
    leave()
    leave()
    await Promise.all([second, third])
    expect(order).toEqual(['second', 'third'])
  })

  test('lets in a body larger than all of it when nothing else is there', async () => {
    const room = openBodyRoom(100)
    const leave = await room.enter(500, here())
    leave()
    await room.enter(100, here())
  })

  test('is not kept for a caller that left the queue', async () => {
    const room = openBodyRoom(100)
    const leave = await room.enter(100, here())
    const gone = new AbortController()
    const left = room.enter(100, gone.signal)
    const waiting = room.enter(100, here())
    gone.abort()
    await expect(left).rejects.toBeInstanceOf(ClientLeft)
    leave()
    await waiting
  })
})

describe('what went wrong', () => {
  test('in the framework is told by the documented codes', () => {
    const told = (code: string, statusCode: number) => refusedWith(Object.assign(new Error('x'), { code, statusCode })).code
    expect(told('FST_ERR_CTP_BODY_TOO_LARGE', 413)).toBe('payload_too_large')
    expect(told('FST_ERR_CTP_INVALID_MEDIA_TYPE', 415)).toBe('invalid_content_type')
    expect(told('FST_ERR_BAD_URL', 400)).toBe('not_found')
    expect(told('FST_ERR_SOMETHING_NEW', 422)).toBe('validation_error')
  })

  test('unexpectedly is internal, without details and without advice to repeat', () => {
    const refusal = refusedWith(new Error('select secret from table'))
    expect(refusal).toMatchObject({ code: 'internal_error', status: 500, shouldRetry: undefined })
    expect(refusal.message).not.toContain('secret')
  })

  test('with the database away is internal and worth repeating', () => {
    for (const error of [
      new DatabaseUnreachable('x', undefined),
      new CommitUnknown(new Error('socket')),
      new NotDurable(),
      new Error('Connection terminated unexpectedly'),
      Object.assign(new Error('x'), { code: 'ECONNRESET' }),
    ]) {
      expect(refusedWith(error)).toMatchObject({ code: 'internal_error', status: 500, shouldRetry: true })
    }
  })
})
