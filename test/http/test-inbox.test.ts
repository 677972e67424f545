/** The test inbox under load: the cost of a page is bounded, however large the messages are, and that of waiting, however many wait. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nextTurn } from '#base'
import { contentsWithin } from '../../src/http/v1/inbox-contents.ts'
import { openInboxWaits } from '../../src/http/v1/inbox-waits.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { handMoved } from '../support/test-clock.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'] })
})
afterAll(() => service.stop())

const get = (path: string) => service.call('GET', `/test/inbox${path}`, { key: service.testKey })

async function send(subject: string, more: object): Promise<void> {
  const body = { from: 'shop@simulator.test', subject, ...more }
  expect((await service.call('POST', '/emails', { key: service.testKey, body })).status).toBe(200)
}

test('the contents of a page are whole until they reach the bound, and are not read after that', async () => {
  const reads: number[] = []
  const contents = await contentsWithin(100, [40, 60, 70, 1], async (length) => {
    reads.push(length)
    return { html: 'h'.repeat(length), text: 't', links: [] }
  })
  expect(contents.map((one) => one?.html?.length)).toEqual([40, 60, undefined, undefined])
  expect(reads).toEqual([40, 60])
})

test('other requests have a turn between two emails of a page', async () => {
  const order: string[] = []
  setImmediate(() => order.push('other'))
  await contentsWithin(100, [1, 2], async () => {
    order.push('read')
    return { html: null, text: 't', links: [] }
  })
  expect(order).toEqual(['read', 'other', 'read'])
})

test('an email beyond the bound is in the page without its contents, and a smaller page has them', async () => {
  const html = `<a href="https://shop.example/">${'x'.repeat(5_000_000)}</a>`
  const to = [1, 2, 3, 4, 5].map((n) => `delivered+large${n}@simulator.test`)
  await send('large', { html, text: 'large', to })
  await expect.poll(async () => (await get('?search=large&perPage=1')).body.total, { timeout: 20_000 }).toBe(5)
  const items = (await get('?search=large&perPage=100')).body.data as { html: string | null }[]
  expect(items.map((one) => one.html?.includes('x'.repeat(100)))).toEqual([true, true, true, true, undefined])
  expect(items.map((one) => Object.hasOwn(one, 'truncated'))).toEqual([false, false, false, false, true])
  expect(items[4]).toMatchObject({ subject: 'large', html: null, text: '', links: [], truncated: true })
  const [last] = (await get('?search=large&perPage=1&page=5')).body.data as { html: string; links: string[] }[]
  expect([last?.html.length, last?.links]).toEqual([html.length, ['https://shop.example/']])
}, 60_000)

test('an ordinary email has the fields that it always had', async () => {
  await send('small', { html: '<p>Hi</p>', text: 'Hi', to: ['delivered+small@simulator.test'] })
  await expect.poll(async () => (await get('?search=small')).body.total).toBe(1)
  const answer = await get('?search=small')
  const [item] = answer.body.data as object[]
  expect(Object.keys(item ?? {})).toEqual(['id', 'emailId', 'to', 'from', 'subject', 'html', 'text', 'links', 'receivedAt'])
  expect(item).toMatchObject({ html: '<p>Hi</p>', text: 'Hi', links: [] })
  expect(answer.body).toMatchObject({ page: 1, total: 1, totalPages: 1 })
})

test('many waiting requests of a tenant look as often together as four, and those of another tenant are not affected', async () => {
  const clock = handMoved()
  const waits = openInboxWaits()
  const looks = { many: 0, one: 0 }
  const wait = (tenantId: keyof typeof looks) =>
    waits.until(
      async () => {
        looks[tenantId]++
        return false
      },
      { tenantId, forMs: 25_000, clock, gone: undefined },
    )
  const all = [...Array.from({ length: 200 }, () => wait('many')), wait('one')]
  for (let passedMs = 0; passedMs < 25_000; passedMs += 100) {
    await nextTurn()
    clock.moveMs(100)
  }
  await Promise.all(all)
  // Every 200 ms, at the begin and at the end.
  expect(looks.one).toBe(126)
  // At the begin, at the end, and 20 a second: each at its own interval would be 25,200.
  expect(looks.many).toBeLessThanOrEqual(200 + 200 + 20 * 25)
})

test('a waiting request ends with the mail, or when its caller leaves', async () => {
  const clock = handMoved()
  const waits = openInboxWaits()
  const left = new AbortController()
  let isThere = false
  const found = waits.until(async () => isThere, { tenantId: 'a', forMs: 25_000, clock, gone: undefined })
  const dropped = waits.until(async () => false, { tenantId: 'a', forMs: 25_000, clock, gone: left.signal })
  await nextTurn()
  left.abort()
  await dropped
  isThere = true
  clock.moveMs(200)
  await found
})

test('all of many waiting requests get the mail that they wait for', async () => {
  const since = new Date().toISOString()
  const waiting = Array.from({ length: 12 }, () => get(`?to=delivered%2Bwaited@simulator.test&wait=20&since=${since}`))
  await send('waited', { text: 'x', to: ['delivered+waited@simulator.test'] })
  for (const { status, body } of await Promise.all(waiting)) expect([status, body.total]).toEqual([200, 1])
}, 60_000)
