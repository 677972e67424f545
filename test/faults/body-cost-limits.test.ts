/** Charges for large bodies: a key pays for a body whether or not its length is announced. Refusals come before the body is parsed. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

const limit = 10
const mebibyte = 1_048_576

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: limit, sendLimit: null })
})
afterAll(() => service.stop())

const letter = { from: 'shop@simulator.test', to: ['ann@simulator.test'], subject: 'x' }
/** A valid body of `mib` MiB, most of it whitespace. */
const bodyOf = (mib: number) => {
  const body = JSON.stringify(letter)
  return Buffer.from(`{${' '.repeat(Math.round(mib * mebibyte) - body.length)}${body.slice(1)}`)
}
const remaining = ({ headers }: { headers: Headers }) => Number(headers.get('x-ratelimit-remaining'))
const send = (key: string, raw: Buffer) => service.call('POST', '/emails', { key, raw })

test.each([
  [0.01, 1],
  [4, 1],
  [4.01, 2],
  [10, 3],
  [38, 10],
  [60, 10],
])('a body of %d MiB counts as %d of the requests of its key', async (mib, units) => {
  const key = await service.makeKey({})
  const answer = await send(key, bodyOf(mib))
  expect([answer.status, remaining(answer)]).toEqual([200, limit - units])
})

test('a body whose length is not announced counts as much', async () => {
  const key = await service.makeKey({})
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const whole = bodyOf(13.5)
      for (let at = 0; at < whole.length; at += 65_536) controller.enqueue(whole.subarray(at, at + 65_536))
      controller.close()
    },
  })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const url = `http://127.0.0.1:${service.port}/v1/emails`
  const answer = await fetch(url, { method: 'POST', headers, body, duplex: 'half' } as RequestInit)
  expect([answer.status, remaining(answer)]).toEqual([200, limit - 4])
})

test('the largest body is always possible, and requests after it wait for a second at most', async () => {
  const key = await service.makeKey({})
  for (let n = 1; n < limit; n++) await service.call('GET', '/limits', { key })
  const largest = await send(key, bodyOf(64))
  expect([largest.status, remaining(largest)]).toEqual([200, 0])
})

test('an Idempotency-Key distinguishes a large body from another, and recognises it again', async () => {
  const key = await service.makeKey({})
  const sendOnce = (raw: Buffer) => service.call('POST', '/emails', { key, raw, headers: { 'idempotency-key': 'large' } })
  const body = { ...letter, html: 'x'.repeat(500_000) }
  const first = await sendOnce(Buffer.from(JSON.stringify(body)))
  const { from, to, subject, html } = body
  const again = await sendOnce(Buffer.from(JSON.stringify({ html, subject, to, from }, null, 2)))
  const other = await sendOnce(Buffer.from(JSON.stringify({ ...body, html: `${html}y` })))
  expect([first.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([200, first.text, 'true'])
  expect(other).toMatchObject({ status: 400, body: { error: { code: 'idempotency_key_reused' } } })
})

test('more keys than any legal body has are refused by their number', async () => {
  const key = await service.makeKey({})
  for (const count of [10_000, 100_000]) {
    const unknown = Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 1]))
    const answer = await service.call('POST', '/emails', { key, body: { ...letter, ...unknown } })
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { code: 'validation_error', message: 'the body has more than 1,850 keys' } },
    })
    expect(answer.body.error?.suggestion).not.toBe('')
  }
  const few = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, 1]))
  expect(await service.call('POST', '/emails', { key, body: { ...letter, ...few } })).toMatchObject({ status: 200 })
})

test('the log keeps the same of a large body as of a small one', async () => {
  const key = await service.makeKey({})
  const content = Buffer.alloc(300_000, 'x').toString('base64')
  const sent = await service.call('POST', '/emails', {
    key,
    body: { ...letter, attachments: [{ content, contentType: 'text/plain', filename: 'a.txt' }], tag: 'after the attachment' },
  })
  const logged = await vi.waitFor(
    async () => {
      const answer = await service.call('GET', `/logs/${sent.body.meta.requestId}`, { key })
      expect(answer.status).toBe(200)
      return answer
    },
    { timeout: 10_000, interval: 500 },
  )
  const { request } = logged.body.data as { request: { body: { attachments: { content: string }[]; tag: string }; bodySize: number } }
  expect(request.body.attachments[0]?.content).toBe('[redacted]')
  expect(request.body.tag).toBe('after the attachment')
  expect(request.bodySize).toBeGreaterThan(400_000)
})
