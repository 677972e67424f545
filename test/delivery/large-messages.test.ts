/**
 * Large messages: a tenant whose recipients' servers keep them for hours does not take all of the memory for them, and no other mail waits while
 * one is rebuilt.
 */
import { createPrivateKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { nextTurn, openSecrets, silentLog, systemClock, systemRandom, TookTooLong } from '#base'
import type { Db } from '#db'
import { makeRsaKey } from '#dkim'
import type { Domains } from '#domains'
import { type Content, encodeContent } from '#emails'
import type { Claimed } from '#spool'
import type { Tenants } from '#tenants'
import { jobsOf } from '../../src/delivery/job.ts'
import { MessagePreparer, type MessagePreparerDeps } from '../../src/delivery/prepare-messages.ts'
import { threadUnitMs, unitMs } from '../support/cpu-time.ts'
import { type HandMoved, handMoved } from '../support/test-clock.ts'

const megabyte = 1_048_576
/** Without contents: a job that gets memory is cancelled, and keeps its memory until it is released. */
const emptyDb = { first: async () => undefined, rows: async () => [] } as unknown as Db

const tenants = { find: async () => ({ status: 'active', pauseReason: null }) } as unknown as Tenants

function openPreparer(given: Partial<MessagePreparerDeps> = {}) {
  const secrets = openSecrets('a secret for tests only', systemRandom)
  const domains = {} as Domains
  return new MessagePreparer({
    db: emptyDb,
    clock: systemClock,
    log: silentLog,
    secrets,
    domains,
    tenants,
    pauses: async () => [],
    ...given,
  })
}

let nth = 0
function jobOf(tenantId: string, recipientDomain: string, sizeOctets: number) {
  const id = `email-${nth++}`
  const claimed: Claimed = {
    tenantId,
    emailId: id,
    contentId: id,
    shard: 0,
    epoch: 1,
    recipient: `ann@${recipientDomain}`,
    recipientDomain,
    attempts: 0,
    manualRetry: false,
    test: false,
    sizeOctets,
    holdReason: null,
    clockOffsetMs: 0,
    scheduledAt: null,
  }
  const [job] = jobsOf([claimed])
  if (!job) throw new Error('no job')
  return job
}

test('a tenant gets three quarters of the memory; its other large messages are postponed, and those of others are prepared', async () => {
  const messages = openPreparer()
  const held = [0, 1, 2].map((index) => jobOf('one', `slow-${index}.test`, 14 * megabyte))
  for (const job of held) expect((await messages.prepare(job)).kind).toBe('cancelled')
  const further = () => messages.prepare(jobOf('one', 'other.test', 14 * megabyte))
  expect(await further()).toMatchObject({ kind: 'postpone', forMs: 5000 })
  expect((await messages.prepare(jobOf('other', 'slow-0.test', 14 * megabyte))).kind).toBe('cancelled')
  const waiting = further()
  for (const job of held) messages.release(job)
  expect((await waiting).kind).toBe('cancelled')
})

/**
 * The most processor time that this thread spends in one turn of its event loop until `work` ends, in units. The thread that reads the message
 * slows this one down, so a unit is measured beside it too.
 */
async function longestTurn(work: Promise<unknown>): Promise<number> {
  let isOver = false
  void work.finally(() => {
    isOver = true
  })
  const spentMs = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  let longestMs = 0
  let unitBesideMs = 0
  for (let turn = 0; !isOver; turn++) {
    // Between two turns, early in the work of the other thread.
    if (turn === 20) unitBesideMs = threadUnitMs()
    const before = spentMs()
    await nextTurn()
    longestMs = Math.max(longestMs, spentMs() - before)
  }
  return longestMs / Math.max(unitBesideMs, unitMs())
}

/**
 * Moves the clock until the time limit of the thread has passed; it begins when the thread has the task. Each step is as long as that limit:
 * with shorter ones the thread could be faster than this one on a busy machine.
 */
async function rejection(work: Promise<unknown>, clock: HandMoved): Promise<unknown> {
  let error: unknown
  let isOver = false
  const settled = work.then(
    () => (isOver = true),
    (reason: unknown) => {
      error = reason
      isOver = true
    },
  )
  while (!isOver) {
    clock.moveMs(20_000)
    await nextTurn()
  }
  await settled
  return error
}

test('a message whose thread takes too long is tried again; so is its form for servers without 8BITMIME', async () => {
  const clock = handMoved()
  const raw = Buffer.from(`From: shop@house.test\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${'é hello\r\n'.repeat(40_000)}`)
  const body = encodeContent({
    message: { kind: 'raw', raw: raw.toString('base64') },
    messageId: '<id@house.test>',
    acceptedAtMs: 0,
    returnPathDomain: null,
    signing: null,
  })
  const db = { first: async () => ({ body }), rows: async () => [] } as unknown as Db
  const messages = openPreparer({ db, clock })
  const job = () => jobOf('one', 'example.com', megabyte)
  let prepared: unknown
  expect(
    await rejection(
      messages.prepare(job()).then((result) => (prepared = result)),
      clock,
    ),
  ).toBeUndefined()
  expect(prepared).toMatchObject({ kind: 'retry', attemptResult: { kind: 'temporary' } })
  const ready = await messages.prepare(job())
  const sevenBit = ready.kind === 'ready' ? ready.message.sevenBit : undefined
  if (!sevenBit) throw new Error('the message has no 7-bit form')
  expect(await rejection(sevenBit(), clock)).toBeInstanceOf(TookTooLong)
  expect((await sevenBit()).data.toString('latin1')).toMatch(/^[\x00-\x7f]*$/)
}, 60_000)

test('while the largest message is rebuilt and hashed for its signature, the event loop has turns for other mail', async () => {
  const content: Content = {
    message: {
      kind: 'parts',
      from: 'shop@house.test',
      to: ['ann@example.com'],
      cc: [],
      subject: 's',
      html: '<p>"hello" é</p>\n'.repeat(10_000),
      headers: [],
      attachments: [7, 6.5].map((mib) => ({
        filename: 'a.bin',
        contentType: 'application/octet-stream',
        content: randomBytes(mib * megabyte).toString('base64'),
      })),
    },
    messageId: 'id@house.test',
    acceptedAtMs: systemClock.nowMs(),
    returnPathDomain: null,
    signing: { platform: 'house.test' },
  }
  const body = encodeContent(content)
  const privateKey = createPrivateKey((await makeRsaKey()).privateKey)
  const keys = [{ domain: 'house.test', selector: 's', algorithm: 'rsa', privateKey }]
  const db = { first: async () => ({ body }), rows: async () => [] } as unknown as Db
  const messages = openPreparer({ db, domains: { platformKeys: async () => keys } as unknown as Domains })
  const turns: number[] = []
  // The best of four rounds counts, because a collection of garbage may fall into any of them.
  for (let round = 0; round < 4; round++) {
    const job = jobOf('one', 'example.com', 14 * megabyte)
    const preparing = messages.prepare(job)
    turns.push(await longestTurn(preparing))
    const prepared = await preparing
    expect(prepared).toMatchObject({ kind: 'ready', message: { signed: { signatures: expect.stringContaining('d=house.test') } } })
    if (prepared.kind === 'ready') expect(prepared.message.signed.data.length).toBeGreaterThan(18_000_000)
    messages.release(job)
  }
  expect(Math.min(...turns), JSON.stringify(turns)).toBeLessThan(200)
}, 120_000)
