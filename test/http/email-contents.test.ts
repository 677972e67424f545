/** Large contents are bounded in memory: those of one tenant wait for each other, and not those of another. */
import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { openDomains } from '#domains'
import { findEmail } from '#emails'
import { AnswerMemory } from '../../src/http/v1/answer-memory.ts'
import type { CallerConnection } from '../../src/http/v1/caller-connection.ts'
import { EmailContents, type HeldContent } from '../../src/http/v1/email-contents.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { type HandMoved, handMoved } from '../support/test-clock.ts'

let service: Service
let own: { id: string; tenantId: string; contentId: string }
let others: typeof own
let small: typeof own

beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
  const other = await service.makeTenant('other')
  await service.addDomain(other, 'other.test')
  // They count as 37 MB: three of them fit into the half of the memory that one tenant may have.
  const attachments = [7, 2].map((mib) => ({
    filename: 'a',
    contentType: 'application/octet-stream',
    content: randomBytes(mib * 1_048_576).toString('base64'),
  }))
  const send = async (tenantId: string, from: string, more: object) => {
    const body = { from, to: ['delivered@simulator.test'], subject: 's', text: 't', tenantId, ...more }
    const answer = await service.call('POST', '/emails', { key: service.testKey, body })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    const email = await findEmail(service.db, (answer.body.data as { id: string }).id, null)
    return email as NonNullable<typeof email>
  }
  own = await send(service.tenantId, 'shop@simulator.test', { attachments })
  others = await send(other, 'shop@other.test', { attachments })
  small = await send(service.tenantId, 'shop@simulator.test', {})
  return () => service.stop()
})

function openContents(clock: HandMoved): EmailContents {
  const { db, secrets } = service
  return new EmailContents({ db, clock, secrets, domains: openDomains({ db, clock, secrets }), answerMemory: new AnswerMemory(clock) })
}

const waiting = (request = new AbortController()): CallerConnection => ({ gone: request.signal, close() {} })

const length = async (held: HeldContent) => (await held.read(new Set(['raw']))).raw?.length

test('a fourth answer of one tenant waits until an earlier one is sent; another tenant and small contents do not', async () => {
  const contents = openContents(handMoved())
  const requests = Array.from({ length: 5 }, () => new AbortController())
  const read = (nth: number, email = own) => contents.use(email, waiting(requests[nth]), length)
  for (const nth of [0, 1, 2]) expect(await read(nth)).toBeGreaterThan(12_000_000)
  let isRead = false
  const fourth = read(3).then((octets) => {
    isRead = true
    return octets
  })
  expect(await read(4, others)).toBeGreaterThan(12_000_000)
  expect(await read(4, small)).toBeGreaterThan(100)
  expect(isRead).toBe(false)
  requests[1]?.abort()
  expect(await fourth).toBeGreaterThan(12_000_000)
}, 60_000)

test('an answer that waits for too long is refused, with the advice to repeat it', async () => {
  const clock = handMoved()
  const contents = openContents(clock)
  const open = new AbortController()
  for (const _ of [0, 1, 2]) await contents.use(own, waiting(open), length)
  let refusal: unknown
  void contents.use(own, waiting(), length).catch((error: unknown) => {
    refusal = error
  })
  // It begins to wait after the database has returned the size.
  await expect
    .poll(() => {
      clock.moveMs(20_000)
      return refusal
    })
    .toMatchObject({ code: 'rate_limit_exceeded', retryAfterSeconds: 5 })
}, 60_000)

test('for a caller that leaves during the work no answer is made', async () => {
  const contents = openContents(handMoved())
  const request = new AbortController()
  const read = contents.use(own, waiting(request), async () => request.abort())
  await expect(read).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
}, 60_000)

test('a caller that is gone gets no memory, and one without a connection returns it after its work', async () => {
  const contents = openContents(handMoved())
  await expect(contents.use(own, { gone: AbortSignal.abort(), close() {} }, length)).rejects.toMatchObject({ code: 'rate_limit_exceeded' })
  for (let nth = 0; nth < 5; nth++) expect(await contents.use(own, undefined, length)).toBeGreaterThan(12_000_000)
}, 60_000)

test('the connection of an answer that is not sent in time is closed, and that of one that is sent is not', async () => {
  const clock = handMoved()
  const contents = openContents(clock)
  const closed: string[] = []
  const connection = (name: string, request = new AbortController()): CallerConnection => ({
    ...waiting(request),
    close: () => void closed.push(name),
  })
  const sent = new AbortController()
  await contents.use(own, connection('quick', sent), length)
  await contents.use(own, connection('slow'), length)
  await contents.rewrite(own, connection('rewriting'), async () => undefined)
  sent.abort()
  clock.moveMs(60_000)
  expect(closed).toEqual([])
  clock.moveMs(120_000)
  expect(closed).toEqual(['slow'])
}, 60_000)
