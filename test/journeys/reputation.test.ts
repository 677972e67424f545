/** Reputation through the whole program: mail to the simulator and to a real SMTP server, and the figures by API and command line. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openIds, openSecrets, readConfig, systemRandom } from '#base'
import { addSource } from '#delivery'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'
import { halfPastTwelve } from '../support/test-clock.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

interface Figures {
  name: string
  accepted: number
  secured: number
  deferred: number
  failed: number
  blocked: number
  bounced: number
  complained: number
}
interface Reputation {
  totals: Figures
  groups: Figures[]
  days: unknown[]
  sources: { address: string; pool: string | null; warmUp: unknown; blocklists: unknown[] }[]
  findings: unknown[]
}

let mx: FakeMx
let dns: TestDns
let service: Service
beforeAll(async () => {
  mx = await startFakeMx({
    starttls: true,
    script: ({ stage, argument }) =>
      stage === 'rcpt' && argument.includes('blocked') ? '550 5.7.1 Message rejected as spam by content filter' : undefined,
  })
  dns = await startTestDns({ 'mx.far.test': { A: ['127.0.0.1'] } })
  dns.set('far.test', 'MX', ['10 mx.far.test'])
  service = await startService({
    clock: halfPastTwelve,
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery', 'housekeeping'],
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(mx.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  await service.addDomain(service.tenantId, 'shop.example')
})
afterAll(async () => {
  await service?.stop()
  for (const one of [mx, dns]) await one?.close()
})

const reputation = async (query = '', key = service.liveKey) =>
  (await service.call('GET', `/reputation${query}`, { key })).body.data as Reputation
const send = (key: string, from: string, to: readonly string[]) =>
  service.call('POST', '/emails/batch', { key, body: { from, emails: to.map((one) => ({ to: [one], subject: 's', text: 't' })) } })
const numbers = ({ accepted, deferred, failed, blocked, bounced, complained }: Figures) => ({
  accepted,
  deferred,
  failed,
  blocked,
  bounced,
  complained,
})

describe('mail to the simulator', () => {
  test('is counted apart from live mail, by outcome, with the reports that follow', async () => {
    const to = ['delivered', 'delivered+2', 'softfail', 'hardfail', 'mailbox-full', 'spam-block', 'bounce', 'complaint']
    await send(
      service.testKey,
      'a@simulator.test',
      to.map((one) => `${one}@simulator.test`),
    )
    const expected = { accepted: 4, deferred: 1, failed: 2, blocked: 1, bounced: 1, complained: 1 }
    await expect.poll(async () => numbers((await reputation('?test=true')).totals), { timeout: 40_000, interval: 100 }).toEqual(expected)
    const byProvider = await reputation('?test=true&groupBy=provider')
    expect(byProvider.groups).toMatchObject([{ name: 'simulator', ...expected }])
    expect(byProvider.days).toHaveLength(1)
    expect((await reputation('?test=true')).groups).toMatchObject([{ name: 'simulator.test', ...expected }])
    expect((await reputation()).groups).toEqual([])
  })

  test('is not visible to another tenant', async () => {
    const tenantId = await service.makeTenant('Other')
    const key = await service.makeKey({ tenantId })
    expect(await reputation('?test=true', key)).toMatchObject({ groups: [], sources: [], findings: [], totals: { accepted: 0 } })
    const { status } = await service.call('GET', `/tenants/${service.tenantId}/reputation`, { key })
    expect(status).toBe(403)
    const limited = await service.makeKey({ permissions: ['emails:send'] })
    expect((await service.call('GET', '/reputation', { key: limited })).status).toBe(403)
  })

  test.each(['days=0', 'days=91', 'groupBy=recipient', 'test=maybe', 'domain=a%00b'])('%s is refused', async (query) => {
    expect((await service.call('GET', `/reputation?${query}`, { key: service.liveKey })).status).toBe(400)
  })
})

describe('live mail', () => {
  test('has its source address with the warm-up, its provider, and TLS', async () => {
    await addSource(service.db, { address: '127.0.0.2', ehloName: null, pool: 'default', warmUp: 'from now' }, halfPastTwelve.nowMs())
    await service.wait(2500)
    await send(service.liveKey, 'a@shop.example', ['r1@far.test', 'r2@far.test', 'blocked1@far.test'])
    const expected = { accepted: 2, deferred: 0, failed: 0, blocked: 1, bounced: 0, complained: 0 }
    await expect
      .poll(async () => (await reputation('?groupBy=source')).groups.map((one) => ({ name: one.name, ...numbers(one) })), {
        timeout: 40_000,
        interval: 100,
      })
      .toEqual([{ name: '127.0.0.2', ...expected }])
    const found = await reputation('?groupBy=provider&domain=SHOP.example')
    expect(found.groups).toMatchObject([{ name: 'others', secured: 2, ...expected }])
    expect(found.sources).toEqual([
      { address: '127.0.0.2', pool: 'default', warmUp: { day: 1, messagesPerDay: expect.any(Number) }, blocklists: [] },
    ])
    expect((await reputation('?provider=gmail')).groups).toEqual([])
  })

  test('is shown by the command line, as text and as JSON', async () => {
    const config = readConfig({ POSTRIDER_HOSTNAME: 'house.test', POSTRIDER_DNS: dns.address })
    const shared = { config, clock: halfPastTwelve, ids: openIds(systemRandom), random: systemRandom, version: 'test' }
    const command = async (...words: string[]) => {
      let printed = ''
      const code = await runHere(['reputation', ...words], {
        withInstallation: (work) => work({ ...shared, db: service.db, secrets: openSecrets('a secret for tests only', systemRandom) }),
        print: (text) => {
          printed = text
        },
      })
      expect(code).toBe(0)
      return printed
    }
    expect(JSON.parse(await command('--by', 'source', '--json'))).toMatchObject({
      groups: [{ name: '127.0.0.2', accepted: 2, blocked: 1 }],
    })
    const text = await command()
    expect(text).toMatch(/^shop\.example +3 +66\.67% +0% +0% +33\.33% +0% +100% +-$/m)
    expect(text).toContain('127.0.0.2: pool default; warm-up day 1: ')
    expect(text).toContain('No changes since yesterday')
  })
})
