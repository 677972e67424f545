/** Delay reasons of unclaimed mail toward providers that accept no more. */
import { expect, onTestFinished, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { openProviders, TrafficShaper } from '#delivery'
import { type Service, startService } from '../support/in-process-service.ts'
import { startTestDns } from '../support/test-dns.ts'

interface Explanation {
  now: string
  next: string
  nextAt: string
  blockedBy: string | null
}

async function world() {
  const dns = await startTestDns({
    'a.test': { MX: ['10 mx.google.com'] },
    'b.test': { MX: ['10 mx.b.test'] },
    '*.test': { A: ['192.0.2.1'] },
  })
  dns.set('mx.google.com', 'A', ['192.0.2.1'])
  // No delivery runs, so no mail is claimed.
  const service = await startService({ rateLimit: null, settings: { POSTRIDER_DNS: dns.address } })
  await service.addDomain(service.tenantId, 'shop.test')
  const providers = openProviders(undefined)
  const shaper = new TrafficShaper({ db: service.db, clock: systemClock, log: silentLog, processId: 'another', providers })
  onTestFinished(async () => {
    await shaper.stop()
    await service.stop()
    await dns.close()
  })
  return { service, toward: (name: string) => shaper.limiterFor('', providers.of(name, name)) }
}

async function explanationsOf(service: Service, ...to: string[]): Promise<() => Promise<Explanation[]>> {
  const ids: string[] = []
  for (const one of to) {
    const content = { from: 'hi@shop.test', to: [one], subject: 'Hello', text: 'Hello' }
    const { body } = await service.call('POST', '/emails', { key: service.liveKey, body: content })
    ids.push((body.data as { id: string }).id)
  }
  const read = async (id: string) =>
    (await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data as { explanation: Explanation }
  return () => Promise.all(ids.map(async (id) => (await read(id)).explanation))
}

test('mail that waits for a resting provider shows the reason, the end and the reply, but not its recipient; other mail does not', async () => {
  const { service, toward } = await world()
  const explanations = await explanationsOf(service, 'ann@a.test', 'bob@b.test')
  expect((await explanations()).map(({ now }) => now)).toEqual(['a', 'b'].map((one) => `Due, waiting for a connection to ${one}.test.`))
  const gmail = toward('google.com')
  expect(await gmail.connect()).toBeDefined()
  gmail.blocked('421 4.7.28 unusual rate of mail for <somebody@gmail.com>')
  await expect.poll(async () => (await explanations())[0]?.blockedBy, { timeout: 10_000 }).toBe('source_limit')
  const [first, second] = await explanations()
  expect(first?.now).toBe(`Due, but delayed: backing off from gmail until ${first?.nextAt} (its reply: 421 4.7.28).`)
  // The provider's reply was to another tenant's mail.
  expect(first?.now).not.toContain('somebody')
  expect(first?.next).toBe('Attempt 1 after that time; waiting uses no attempt.')
  expect(second?.now).toBe('Due, waiting for a connection to b.test.')
})

test('mail that waits for one of few connections shows so', async () => {
  const { service, toward } = await world()
  const explanations = await explanationsOf(service, 'ann@a.test')
  const gmail = toward('google.com')
  await Promise.all(Array.from({ length: 20 }, () => gmail.connect()))
  await expect
    .poll(async () => (await explanations())[0]?.now, { timeout: 10_000 })
    .toBe('Due, but delayed: all 20 connections allowed to gmail are in use.')
})
