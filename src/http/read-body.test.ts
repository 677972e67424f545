import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CommitUnknown, DatabaseUnreachable, NotDurable } from '#db'
import { boundsOf } from './body-limits.ts'
import { parseJson } from './parse-json.ts'
import { shownParameters } from './read-body.ts'
import { toRefusal } from './to-refusal.ts'
import { ClientLeft, claimedBy, openBodyMemory } from './v1/body-memory.ts'
import { routes } from './v1/endpoints.ts'

const endpointOf = (name: string) => routes.find((one) => one.name === name)
const parse = (text: string | Buffer, endpoint?: string) =>
  parseJson(Buffer.from(text), boundsOf(endpoint === undefined ? undefined : endpointOf(endpoint)))
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
            parsed = parse(octets)
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

describe('the bounds of a body', () => {
  const bigMessage = {
    to: Array(50).fill('a@b.test'),
    cc: Array(50).fill('a@b.test'),
    bcc: Array(50).fill('a@b.test'),
    subject: 's',
    replyTo: 'a@b.test',
    html: '',
    text: '',
    tag: '',
    unsubscribe: true,
    headers: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`X-${n}${'x'.repeat(72)}`, 'y'])),
    metadata: Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`k${n}${'x'.repeat(38)}`, 'y'])),
    attachments: Array(100).fill({ content: '', contentType: 'a/b', filename: 'c', contentId: 'd' }),
  }
  const unknownKeys = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`unknown${n}`, n]))

  test.each([
    ['emails.send', { from: 'a@b.test', ...bigMessage, ...unknownKeys }],
    ['emails.sendBatch', { from: 'a@b.test', emails: Array(100).fill({ ...bigMessage, cc: [], bcc: [] }), ...unknownKeys }],
    ['emails.sendRaw', { from: 'a@b.test', to: Array(50).fill('a@b.test'), rawMessage: '', bounce: true, ...unknownKeys }],
    ['suppressions.bulkCreate', { suppressions: Array(1000).fill({ address: 'a@b.test', reason: 'x' }), ...unknownKeys }],
    [
      'suppressions.import',
      { suppressions: Array(1000).fill({ address: 'a@b.test', reason: 'x', createdAt: '0', source: 'manual' }), ...unknownKeys },
    ],
  ])('let the fullest legal body of %s pass, with unknown keys', (name, body) => {
    const text = JSON.stringify(body)
    expect(parse(text, name)).toEqual(body)
    // With as many escapes as possible.
    const escaped = text.replace(/[a-z]/gi, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)
    if (!/\b(true|false|null)\b/.test(text)) expect(parse(escaped, name)).toEqual(body)
  })

  test.each(routes.filter((one) => one.method !== 'GET').map((one) => one.name))(
    'refuse 100,000 keys or 200,000 values at %s before they are built',
    (name) => {
      const tooMuch = (kind: string) => expect.objectContaining({ code: 'validation_error', message: expect.stringMatching(kind) })
      expect(() => parse(`{${'"a":1,'.repeat(100_000)}"b":1}`, name)).toThrow(tooMuch('more than [\\d,]+ (keys|values)$'))
      expect(() => parse(`{"to":[${'1,'.repeat(200_000)}1]}`, name)).toThrow(tooMuch('more than [\\d,]+ values$'))
      expect(() => parse(`{"${'k'.repeat(2000)}":1}`, name)).toThrow(tooMuch('a key of more than 1,024 bytes$'))
    },
  )

  test('are those of docs/limits.md', () => {
    const shown = (name: string) => boundsOf(endpointOf(name))
    const number = (count: number) => count.toLocaleString('en-US')
    const [one, batch] = [shown('emails.send'), shown('emails.sendBatch')]
    expect(readFileSync('docs/limits.md', 'utf8')).toContain(
      `for \`/v1/emails\` ${number(one.keys)} keys and ${number(one.values)} values, for \`/batch\` ${number(batch.keys)} and ${number(batch.values)}`,
    )
  })

  test('are known of every endpoint that takes a body', () => {
    for (const endpoint of routes) expect(boundsOf(endpoint).keys).toBeGreaterThanOrEqual(1000)
    expect(boundsOf(endpointOf('emails.send')).keys).toBeLessThan(2000)
  })
})

describe('the parameters of a form in the log', () => {
  test('are the first 65,536 characters of all texts together', () => {
    const many = Object.fromEntries(Array.from({ length: 10 }, (_, nth) => [`name${nth}`, '\u0001'.repeat(1_000_000)]))
    const shown = JSON.parse(shownParameters({ first: 'as it was', ...many })) as Record<string, string>
    expect(shown.first).toBe('as it was')
    expect(Object.values(shown).join('')).toHaveLength(65_536)
    expect(Object.keys(shown)).toHaveLength(11)
  })

  test('are without raw messages', () => {
    expect(shownParameters({ RawMessage: { Data: 'secret' }, 'RawMessage.Data': 'short' })).not.toContain('secret')
  })
})

describe('memory for large bodies', () => {
  const here = () => new AbortController().signal

  test('admits bodies that fit, and the next when one has left', async () => {
    const memory = openBodyMemory(100)
    const release = await memory.reserve('a', 60, here())
    const order: string[] = []
    const second = memory.reserve('b', 60, here()).then((go) => (order.push('second'), go))
    const third = memory.reserve('c', 10, here()).then((go) => (order.push('third'), go))
    await Promise.resolve()
    expect(order).toEqual([])
    release()
    release()
    await Promise.all([second, third])
    expect(order).toEqual(['second', 'third'])
  })

  test('lets in a body larger than all of it when nothing else is there', async () => {
    const memory = openBodyMemory(100)
    const release = await memory.reserve('a', 500, here())
    release()
    await memory.reserve('a', 100, here())
  })

  test('is never more than half for one tenant, whose other bodies wait while those of other tenants pass', async () => {
    const memory = openBodyMemory(100)
    const release = await memory.reserve('a', 40, here())
    let isSecondReserved = false
    const second = memory.reserve('a', 20, here()).then((releaseSecond) => {
      isSecondReserved = true
      return releaseSecond
    })
    const others = await Promise.all([memory.reserve('b', 20, here()), memory.reserve('c', 40, here())])
    expect(isSecondReserved).toBe(false)
    release()
    for (const one of [await second, ...others]) one()
    await memory.reserve('a', 100, here())
  })

  test('is never more than a quarter for all requests with unchecked signatures, in the order of their arrival', async () => {
    const memory = openBodyMemory(80)
    const release = await memory.reserve('a', 40, here())
    const releaseClaimed = await memory.reserve(claimedBy('a'), 8, here())
    const admitted: string[] = []
    const reserve = (whose: string, octets: number) =>
      memory.reserve(whose, octets, here()).then((releaseOne) => {
        admitted.push(`${whose} ${octets}`)
        return releaseOne
      })
    const waiting = [reserve(claimedBy('a'), 4), reserve(claimedBy('b'), 20), reserve(claimedBy('c'), 4)]
    const others = await Promise.all([reserve('b', 12), reserve('c', 20)])
    expect(admitted).toEqual(['b 12', 'c 20'])
    for (const one of [releaseClaimed, release, ...others]) one()
    for (const one of waiting) (await one)()
    expect(admitted.slice(2)).toEqual(['claimed a 4', 'claimed b 20', 'claimed c 4'])
  })

  test('is not kept for a caller that left the queue', async () => {
    const memory = openBodyMemory(100)
    const release = await memory.reserve('a', 100, here())
    const gone = new AbortController()
    const left = memory.reserve('a', 100, gone.signal)
    const waiting = memory.reserve('a', 100, here())
    gone.abort()
    await expect(left).rejects.toBeInstanceOf(ClientLeft)
    release()
    await waiting
  })
})

describe('a fault', () => {
  test('in the framework has one of the documented codes', () => {
    const told = (code: string, statusCode: number) => toRefusal(Object.assign(new Error('x'), { code, statusCode })).code
    expect(told('FST_ERR_CTP_BODY_TOO_LARGE', 413)).toBe('payload_too_large')
    expect(told('FST_ERR_CTP_INVALID_MEDIA_TYPE', 415)).toBe('invalid_content_type')
    expect(told('FST_ERR_BAD_URL', 400)).toBe('not_found')
    expect(told('FST_ERR_SOMETHING_NEW', 422)).toBe('validation_error')
  })

  test('that is not expected is internal, without details and without advice to repeat', () => {
    const refusal = toRefusal(new Error('select secret from table'))
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
      expect(toRefusal(error)).toMatchObject({ code: 'internal_error', status: 500, shouldRetry: true })
    }
  })
})
