/** Test and live mail are distinguished in lists, in the overview's counts, and by tenant. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ask, signedIn } from '../dashboard/signed-in-browser.ts'
import { type Service, startService } from '../support/in-process-service.ts'

interface Listed {
  id: string
  test: boolean
}
type Counts = Record<'sent' | 'delivered' | 'hard_failed' | 'complained' | 'test', number>

let service: Service
let cookie: Record<string, string>
const live: string[] = []
const rehearsed: string[] = []
beforeAll(async () => {
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' },
  })
  await service.addDomain(service.tenantId, 'shop.example')
  cookie = await signedIn(service, 'owner@house.test', 'owner')
  const send = async (key: string, from: string, to: string) => {
    const answer = await service.call('POST', '/emails', { key, body: { from, to: [to], subject: 's', text: 't' } })
    return (answer.body.data as { id: string }).id
  }
  // Live mail to the simulator does not leave the machine either, and is still live.
  for (const to of ['delivered', 'delivered+2', 'hardfail'])
    live.push(await send(service.liveKey, 'a@shop.example', `${to}@simulator.test`))
  for (const to of ['delivered+3', 'hardfail+2', 'complaint', 'delivered+4', 'delivered+5'])
    rehearsed.push(await send(service.testKey, 'a@simulator.test', `${to}@simulator.test`))
  await service.call('POST', '/test/advance', { key: service.testKey, body: { seconds: 5 } })
  const pending = async () => (await service.call('GET', '/emails?status=pending', { key: service.testKey })).body.total
  await vi.waitFor(async () => expect(await pending()).toBe(0), { timeout: 10_000, interval: 100 })
})
afterAll(() => service.stop())

const list = async (query: string) => {
  const { body } = await service.call('GET', `/emails?${query}`, { key: service.liveKey })
  return { total: body.total, emails: body.data as Listed[] }
}
const newestFirst = (ids: readonly string[]) => ids.toSorted().reverse()

describe('the list of emails', () => {
  test('marks each that is a test', async () => {
    const { emails, total } = await list('')
    expect(total).toBe(8)
    for (const { id, test: isTest } of emails) expect(isTest).toBe(rehearsed.includes(id))
  })

  test.each([
    ['test=false', () => live],
    ['test=true', () => rehearsed],
    ['test=0&tenantId=TENANT', () => live],
    ['test=true&to=complaint@simulator.test', () => rehearsed.slice(2, 3)],
    ['test=false&status=hardfail', () => live.slice(2)],
    ['test=true&status=hardfail', () => rehearsed.slice(1, 2)],
    ['test=false&from=a@shop.example', () => live],
    ['test=true&from=a@shop.example', () => []],
  ])('%s has those, counts them, and leaves the others out', async (query, wanted) => {
    const found = await list(query.replace('TENANT', service.tenantId))
    expect(found.emails.map(({ id }) => id)).toEqual(newestFirst(wanted()))
    expect(found.total).toBe(wanted().length)
  })

  test('keeps its pages where live and test mail take turns', async () => {
    const pages = await Promise.all([1, 2, 3, 4].map((page) => list(`test=true&perPage=2&page=${page}`)))
    expect(pages.flatMap(({ emails }) => emails.map(({ id }) => id))).toEqual(newestFirst(rehearsed))
  })
})

describe('the mail that the overview counts', () => {
  const sum = async (query: string): Promise<Counts> => {
    const { data } = await ask(service, 'GET', `/dashboard/api/over-time?period=last_7_days&${query}`, cookie)
    const { points } = data as { points: Counts[] }
    const names = ['sent', 'delivered', 'hard_failed', 'complained', 'test'] as const
    return Object.fromEntries(names.map((name) => [name, points.reduce((total, point) => total + point[name], 0)])) as Counts
  }

  test.each(['', '&tenantId=TENANT'])('is live mail alone, test mail alone, or both%s', async (scope) => {
    const of = (query: string) => sum(query + scope.replace('TENANT', service.tenantId))
    expect(await of('test=false')).toEqual({ sent: 3, delivered: 2, hard_failed: 1, complained: 0, test: 0 })
    expect(await of('test=true')).toEqual({ sent: 5, delivered: 4, hard_failed: 1, complained: 1, test: 5 })
    expect(await of('')).toEqual({ sent: 8, delivered: 6, hard_failed: 2, complained: 1, test: 5 })
  })

  test('is by tenant the same, and the contract’s answer without a word about it stays as it was', async () => {
    const of = async (query: string) =>
      ((await service.call('GET', `/usage/tenants?minSent=1&${query}`, { key: service.liveKey })).body.data as { emails: Counts }[])[0]
        ?.emails
    expect(await of('test=false')).toMatchObject({ sent: 3, delivered: 2, hard_failed: 1, test: 0 })
    expect(await of('test=true')).toMatchObject({ sent: 5, delivered: 4, hard_failed: 1, test: 5 })
    expect(await of('')).toMatchObject({ sent: 8, delivered: 6, hard_failed: 2, test: 5 })
  })
})
