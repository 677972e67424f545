/** The choice of the source address for mail, through real sockets on several addresses of this machine. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openIds, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { startBlackHole } from '../support/black-hole.ts'
import { type FakeMx, type MxAnswer, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const domainByName = sql<{ id: number }>`
  select id
  from domains
  where name = $1`

let mx: FakeMx
let ipv6: FakeMx
let dns: TestDns
let service: Service
/** The refusal for connections from each address. */
const refusals = new Map<string, string>()

beforeAll(async () => {
  const script = ({ stage, argument }: { stage: string; argument: string }): MxAnswer => {
    const reply = stage === 'connect' ? refusals.get(argument) : undefined
    return reply === undefined ? undefined : { reply, close: true }
  }
  mx = await startFakeMx({ script })
  ipv6 = await startFakeMx({ host: '::1', port: mx.port })
  dns = await startTestDns({ 'mx.four.test': { A: ['127.0.0.1'] }, 'mx.both.test': { A: ['127.0.0.1'], AAAA: ['::1'] } })
  for (const name of ['four', 'both', 'hole', 'warm', 'slow', 'own']) dns.set(`${name}.test`, 'MX', [`10 mx.${name}.test`])
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: {
      POSTRIDER_DNS: dns.address,
      POSTRIDER_MX_PORT: String(mx.port),
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
    },
  })
  await service.addDomain(service.tenantId, 'shop.example')
})
afterAll(async () => {
  await service?.stop()
  for (const one of [mx, ipv6, dns]) await one?.close()
})

/** Returns the output as the command line prints it; rejects with its error message. */
async function command(...words: string[]): Promise<Record<string, unknown>> {
  let printed = ''
  const config = readConfig({ POSTRIDER_HOSTNAME: 'house.test', POSTRIDER_DNS: dns.address })
  const shared = { config, clock: systemClock, ids: openIds(systemRandom), random: systemRandom, version: 'test' }
  const code = await runHere([...words, '--json'], {
    withInstallation: (work) => work({ ...shared, db: service.db, secrets: openSecrets('a secret for tests only', systemRandom) }),
    print: (text) => {
      printed = text
    },
  })
  if (code !== 0) throw new Error(`exit ${code}`)
  return JSON.parse(printed) as Record<string, unknown>
}

/** Adds egress sources for one test; resolves when they are in force. */
async function sources(...added: string[][]) {
  for (const one of added) await command('source', 'add', ...one)
  await service.wait(1000)
  onTestFinished(async () => {
    for (const { tenantId, tag } of await assignments()) await command('pool', 'unassign', '--tenant', tenantId, '--tag', tag)
    const { sources: all } = (await command('source', 'list')) as { sources: { address: string }[] }
    for (const { address } of all) await command('source', 'remove', address)
    await service.wait(1000)
  })
}
const assignments = async () =>
  ((await command('pool', 'list')) as { pools: { assigned: { tenantId: string; tag: string }[] }[] }).pools.flatMap((one) => one.assigned)

interface Details {
  status: string
  explanation: { now: string; blockedBy: string | null }
}
const details = async (id: string) => (await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data as Details

/** Sends one email to each address; resolves with their ids. */
async function send(to: string[], more: { from?: string; tag?: string; key?: string } = {}): Promise<string[]> {
  const { key = service.liveKey, from = 'a@shop.example', tag } = more
  const emails = to.map((one) => ({ to: [one], subject: 's', text: 't', ...(tag === undefined ? {} : { tag }) }))
  const { body } = await service.call('POST', '/emails/batch', { key, body: { from, emails } })
  return (body.data as { results: { id: string }[] }).results.map(({ id }) => id)
}
let named = 0
const recipients = (count: number, domain: string) => Array.from({ length: count }, () => `r${++named}@${domain}`)
const arrivals = (to: string[]) => [...mx.messages, ...ipv6.messages].filter((one) => to.includes(one.recipients[0] ?? ''))
const arrived = async (to: string[]) => {
  await expect.poll(() => arrivals(to).length, { timeout: 40_000, interval: 20 }).toBe(to.length)
  return arrivals(to)
}

describe('without sources', () => {
  test('the system chooses the address, and the attempts do not name it', async () => {
    const to = recipients(1, 'four.test')
    const [id = ''] = await send(to)
    expect(await arrived(to)).toMatchObject([{ source: '127.0.0.1', ehloName: 'house.test' }])
    await expect.poll(async () => (await details(id)).status).toBe('sent')
    const { body } = await service.call('GET', `/emails/${id}/deliveries`, { key: service.liveKey })
    expect(JSON.stringify(body.data)).not.toContain('sourceAddress')
  })
})

describe('several sources', () => {
  test('take turns, send their own names, reuse connections, and are recorded with each attempt', async () => {
    await sources(['127.0.0.2', '--name', 'out2.house.test'], ['127.0.0.3', '--name', 'out3.house.test'])
    const before = mx.connections
    const to = recipients(80, 'four.test')
    const ids = await send(to)
    const messages = await arrived(to)
    const from = (source: string) => messages.filter((one) => one.source === source)
    expect(from('127.0.0.2')).toHaveLength(40)
    expect(from('127.0.0.3')).toHaveLength(40)
    expect(new Set(from('127.0.0.3').map((one) => one.ehloName))).toEqual(new Set(['out3.house.test']))
    expect(mx.connections - before).toBeLessThan(20)
    await expect.poll(async () => (await details(ids[0] ?? '')).status).toBe('sent')
    const { body } = await service.call('GET', `/emails/${ids[0]}/deliveries`, { key: service.liveKey })
    expect(JSON.stringify(body.data)).toMatch(/"sourceAddress":"127\.0\.0\.[23]"/)
  })

  test('one that a provider refuses is passed over, and its mail goes from the other', async () => {
    await sources(['127.0.0.6'], ['127.0.0.7'])
    refusals.set('127.0.0.6', '421 4.7.0 Too many messages from your address, try again later')
    onTestFinished(() => refusals.clear())
    const to = recipients(60, 'slow.test')
    dns.set('mx.slow.test', 'A', ['127.0.0.1'])
    await send(to)
    // One or two get the refusal and wait for their next attempt.
    await expect.poll(() => arrivals(to).length, { timeout: 40_000, interval: 20 }).toBeGreaterThanOrEqual(50)
    expect(new Set(arrivals(to).map((one) => one.source))).toEqual(new Set(['127.0.0.7']))
  })
})

describe('a pool', () => {
  test('sends the mail of its tenant or tag, no other mail, and that mail from nowhere else', async () => {
    await sources(['127.0.0.2'], ['127.0.0.4', '--pool', 'own'], ['127.0.0.5', '--pool', 'news'])
    const tenantId = await service.makeTenant('Own')
    await service.addDomain(tenantId, 'own.example')
    await command('pool', 'assign', 'own', '--tenant', tenantId)
    await command('pool', 'assign', 'news', '--tag', 'newsletter')
    await service.wait(1000)
    const own = { from: 'a@own.example', tenantId }
    const key = await liveKeyOf(tenantId)
    const [plain, tagged, ofTenant] = [recipients(5, 'four.test'), recipients(5, 'four.test'), recipients(5, 'four.test')]
    await Promise.all([
      send(plain, { tag: 'other' }),
      send(tagged, { tag: 'newsletter' }),
      send(ofTenant, { from: own.from, key, tag: 'newsletter' }),
    ])
    const from = async (to: string[]) => [...new Set((await arrived(to)).map((one) => one.source))]
    expect(await from(plain)).toEqual(['127.0.0.2'])
    expect(await from(tagged)).toEqual(['127.0.0.5'])
    expect(await from(ofTenant)).toEqual(['127.0.0.4'])
    await expect(command('source', 'remove', '127.0.0.4')).rejects.toThrow('exit 2')
    await expect(command('pool', 'assign', 'nobody', '--tag', 'x')).rejects.toThrow('exit 2')
  })

  test('none of whose addresses this machine has keeps its mail, without an attempt, and shows why', async () => {
    await sources(['192.0.2.9', '--pool', 'elsewhere'], ['127.0.0.7'])
    await command('pool', 'assign', 'elsewhere', '--tag', 'far')
    const { sources: listed } = (await command('source', 'list')) as { sources: { address: string; isHere: boolean; advice: string }[] }
    expect(Object.fromEntries(listed.map(({ address, isHere }) => [address, isHere]))).toEqual({ '127.0.0.7': true, '192.0.2.9': false })
    expect(listed.find(({ isHere }) => !isHere)?.advice).toContain('assign the address to this machine')
    await service.wait(1000)
    const [id = ''] = await send(recipients(1, 'four.test'), { tag: 'far' })
    await expect.poll(async () => (await details(id)).explanation, { timeout: 10_000 }).toMatchObject({ blockedBy: 'source_limit' })
    expect((await details(id)).explanation.now).toContain('no address of pool elsewhere')
    const { body } = await service.call('GET', `/emails/${id}/deliveries`, { key: service.liveKey })
    expect(body.data).toMatchObject({ status: 'pending', deliveries: [] })
  })
})

describe('address families', () => {
  test('IPv6 goes first; a pool without an IPv6 address uses IPv4', async () => {
    await sources(['127.0.0.2'], ['::1', '--pool', 'both'], ['127.0.0.3', '--pool', 'both'])
    await command('pool', 'assign', 'both', '--tag', 'both')
    await service.wait(1000)
    const [ipv4, both] = [recipients(2, 'both.test'), recipients(2, 'both.test')]
    await Promise.all([send(ipv4), send(both, { tag: 'both' })])
    expect((await arrived(ipv4)).map((one) => one.source)).toEqual(['127.0.0.2', '127.0.0.2'])
    expect((await arrived(both)).map((one) => one.source)).toEqual(['::1', '::1'])
  })

  test('an IPv6 black hole delays a message by a quarter of a second', async () => {
    await ipv6.close()
    await using _hole = await startBlackHole('::1', mx.port)
    dns.set('mx.hole.test', 'A', ['127.0.0.1'])
    dns.set('mx.hole.test', 'AAAA', ['::1'])
    const to = recipients(1, 'hole.test')
    const beganMs = performance.now()
    const [id = ''] = await send(to)
    await arrived(to)
    // Without the next address it would take thirty seconds.
    expect(performance.now() - beganMs).toBeLessThan(5000)
    await expect.poll(async () => (await details(id)).status).toBe('sent')
  })
})

describe('a new address in its warm-up', () => {
  test('sends 50 messages on its first day; further mail waits without an attempt, is explained, and goes when it may', async () => {
    await sources(['127.0.0.8', '--warm-up'])
    dns.set('mx.warm.test', 'A', ['127.0.0.1'])
    const to = recipients(60, 'warm.test')
    const ids = await send(to)
    const statuses = async () => (await Promise.all(ids.map(details))).map((one) => one.status)
    await expect.poll(async () => (await statuses()).filter((one) => one === 'sent').length, { timeout: 40_000 }).toBe(50)
    await expect
      .poll(async () => (await Promise.all(ids.map(details))).filter((one) => one.explanation.blockedBy === 'source_limit').length)
      .toBe(10)
    expect(arrivals(to)).toHaveLength(50)
    expect((await statuses()).filter((one) => one === 'pending')).toHaveLength(10)
    const queue = await command('queue')
    expect(queue['warmUps']).toEqual([{ source: '127.0.0.8', provider: 'others', day: 1, taken: 50, ceiling: 50 }])
    expect(JSON.stringify(queue['recipientDomains'])).toContain('the warm-up of 127.0.0.8 allows 50 messages to others on day 1')

    await command('source', 'add', '127.0.0.8')
    await service.wait(1000)
    await command('queue', 'flush', '--destination', 'warm.test')
    expect(await arrived(to)).toHaveLength(60)
  })

  test('counts each recipient once where every message of a job is its own', async () => {
    await trackClicks('shop.example')
    await sources(['127.0.0.9', '--warm-up'])
    dns.set('mx.own.test', 'A', ['127.0.0.1'])
    const [one, two] = [recipients(25, 'own.test'), recipients(25, 'own.test')]
    const emails = [one, two].map((to) => ({ to, subject: 's', html: '<a href="https://a.example/">A</a>' }))
    const { status } = await service.call('POST', '/emails/batch', { key: service.liveKey, body: { from: 'a@shop.example', emails } })
    expect(status).toBe(200)
    const messages = await arrived([...one, ...two])
    expect(messages.every(({ recipients, source }) => recipients.length === 1 && source === '127.0.0.9')).toBe(true)
    expect(new Set(messages.map(({ octets }) => octets.toString('latin1'))).size).toBe(50)
    expect((await command('queue'))['warmUps']).toEqual([{ source: '127.0.0.9', provider: 'others', day: 1, taken: 50, ceiling: 50 }])
  })
})

async function trackClicks(domain: string) {
  const call = (path: string, body?: object) => service.call('POST', path, { key: service.liveKey, ...(body ? { body } : {}) })
  dns.set(`click.${domain}`, 'CNAME', ['track.house.test'])
  const made = await call('/tracking', { domainId: (await service.db.first(domainByName, [domain]))?.id, name: 'click' })
  const { id } = made.body.data as { id: string }
  expect((await call(`/tracking/${id}/verify`)).body.data).toMatchObject({ dnsOk: true })
}

async function liveKeyOf(tenantId: string): Promise<string> {
  const { createKey } = await import('#credentials')
  const wanted = { mode: 'live' as const, name: 'live', tenantId, permissions: null }
  const facts = { nowMs: systemClock.nowMs(), ids: openIds(systemRandom) }
  return (await service.db.transaction((tx) => createKey(tx, wanted, facts))).key
}
