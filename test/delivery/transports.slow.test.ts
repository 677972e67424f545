/** Transports through real sockets: shares, records, signatures and return paths, logins, and failover when a relay dies or blocks. */
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openIds, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { listTransports } from '#delivery'
import { slotOf } from '../../src/delivery/transports/transport-shares.ts'
import { testCertificate } from '../support/certificate.ts'
import { type FakeMx, type MxAnswer, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const secrets = openSecrets('a secret for tests only', systemRandom)
const storedPasswords = sql<{ password: Buffer | null }>`
  select password
  from transports`

let mx: FakeMx
let dns: TestDns
let service: Service

beforeAll(async () => {
  mx = await startFakeMx()
  dns = await startTestDns({ 'mx.one.test': { A: ['127.0.0.1'] } })
  for (const name of ['one', 'two']) dns.set(`${name}.test`, 'MX', ['10 mx.one.test'])
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    deliveryBounds: { downForMs: 250 },
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(mx.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  await service.addDomain(service.tenantId, 'shop.example')
  await service.addDomain(service.tenantId, 'news.example')
})
afterAll(async () => {
  await service?.stop()
  for (const one of [mx, dns]) await one?.close()
})

/** Returns the output as the command line prints it; rejects with its error message. */
async function command(...words: string[]): Promise<Record<string, unknown>> {
  let printed = ''
  const config = readConfig({ POSTRIDER_HOSTNAME: 'house.test', POSTRIDER_DNS: dns.address })
  const shared = { config, clock: systemClock, ids: openIds(systemRandom), random: systemRandom, version: 'test' }
  const code = await runHere(['transport', ...words, '--json'], {
    withInstallation: (work) => work({ ...shared, db: service.db, secrets }),
    print: (text) => {
      printed = text
    },
  })
  if (code !== 0) throw new Error(`exit ${code}: ${printed}`)
  return JSON.parse(printed) as Record<string, unknown>
}

interface Rule {
  tenantId: string
  domain: string
  tag: string
  shares: { transport: string; percent: number }[]
}

/** Removes all rules and transports after the test. */
const tidy = () =>
  onTestFinished(async () => {
    const { rules, transports } = (await command('list')) as { rules: Rule[]; transports: { name: string }[] }
    for (const { shares, ...scope } of rules)
      for (const { transport } of shares)
        await command(
          'share',
          transport,
          '0',
          ...Object.entries({ tenant: scope.tenantId, domain: scope.domain, tag: scope.tag }).flatMap(([name, value]) =>
            value === '' ? [] : [`--${name}`, value],
          ),
        )
    for (const { name } of transports) await command('remove', name)
    await service.wait(1000)
  })

async function relayed(name: string, script?: (event: { stage: string; argument: string }) => MxAnswer, port?: number) {
  const sink = await startFakeMx({ ...(script ? { script } : {}), ...(port === undefined ? {} : { port }) })
  onTestFinished(() => sink.close())
  await command('add', name, `smtp://127.0.0.1:${sink.port}`)
  return sink
}

async function send(to: string[], more: { from?: string; tag?: string } = {}): Promise<string[]> {
  const { from = 'a@shop.example', tag } = more
  const emails = to.map((one) => ({ to: [one], subject: 's', text: 't', ...(tag === undefined ? {} : { tag }) }))
  const { body } = await service.call('POST', '/emails/batch', { key: service.liveKey, body: { from, emails } })
  return (body.data as { results: { id: string }[] }).results.map(({ id }) => id)
}
let named = 0
const recipients = (count: number, domain = 'one.test') => Array.from({ length: count }, () => `r${++named}@${domain}`)
const arrivedAt = (sink: FakeMx, to: readonly string[]) => sink.messages.filter((one) => to.includes(one.recipients[0] ?? ''))
const allArrive = (sinks: FakeMx[], to: readonly string[]) =>
  expect.poll(() => sinks.reduce((sum, sink) => sum + arrivedAt(sink, to).length, 0), { timeout: 40_000, interval: 20 }).toBe(to.length)

interface Delivery {
  status: string
  transport?: string
  details: string
}
const deliveriesOf = async (id: string) =>
  ((await service.call('GET', `/emails/${id}/deliveries`, { key: service.liveKey })).body.data as { deliveries: Delivery[] }).deliveries
const sentOver = async (id: string) => {
  await expect.poll(async () => (await deliveriesOf(id)).at(-1)?.status, { timeout: 20_000, interval: 30 }).toBe('sent')
  return (await deliveriesOf(id)).at(-1)?.transport
}

test('without rules all mail takes the default, and its attempts name no transport', async () => {
  tidy()
  const sink = await relayed('old')
  const to = recipients(5)
  const ids = await send(to)
  await allArrive([mx], to)
  expect(await sentOver(ids[0] ?? '')).toBeUndefined()
  expect(sink.connections).toBe(0)
})

describe('a share', () => {
  test('of the mail goes by the transport, by the hash of each email, signed and with the same return path; attempts name it', async () => {
    tidy()
    const sink = await relayed('old')
    await command('share', 'old', '40')
    await service.wait(1000)
    const to = recipients(100)
    const ids = await send(to)
    await allArrive([mx, sink], to)
    const expected = ids.map((id) => (slotOf(id) < 40 ? 'old' : 'mx'))
    // One after the other: a busy machine refuses a hundred requests at once.
    for (const [index, id] of ids.entries()) expect(await sentOver(id)).toBe(expected[index])
    expect(arrivedAt(sink, to)).toHaveLength(expected.filter((one) => one === 'old').length)
    for (const one of [...arrivedAt(sink, to).slice(0, 2), ...arrivedAt(mx, to).slice(0, 2)]) {
      expect(one.octets.toString()).toMatch(/DKIM-Signature:[^]*d=shop\.example/)
      expect(one.from).toMatch(/^b[a-z2-7]{51}@rp\./)
    }
  })

  test('of one message to many recipients is met too', async () => {
    tidy()
    const sink = await relayed('old')
    await command('share', 'old', '50')
    await service.wait(1000)
    const to = recipients(50)
    const { body } = await service.call('POST', '/emails', {
      key: service.liveKey,
      body: { from: 'a@shop.example', to, subject: 's', text: 't' },
    })
    expect(body.success).toBe(true)
    await allArrive([mx, sink], to)
    expect(arrivedAt(sink, to).length).toBeGreaterThan(5)
    expect(arrivedAt(mx, to).length).toBeGreaterThan(5)
  })

  test('goes to the new server of a transport that is added again under its name', async () => {
    tidy()
    const first = await relayed('old')
    await command('share', 'old', '100')
    await service.wait(1000)
    const before = recipients(5)
    await send(before)
    await allArrive([first], before)
    await command('share', 'old', '0')
    await command('remove', 'old')
    const second = await relayed('old')
    await command('share', 'old', '100')
    await service.wait(1000)
    const after = recipients(5)
    await send(after)
    await allArrive([first, second], after)
    expect([arrivedAt(first, after).length, arrivedAt(second, after).length]).toEqual([0, 5])
  })

  test('of a sending domain is before that of a tenant, and a tenant before a tag', async () => {
    tidy()
    const [domain, tenant, tag] = [await relayed('domain'), await relayed('tenant'), await relayed('tag')]
    await command('share', 'domain', '100', '--domain', 'News.example')
    await command('share', 'tag', '100', '--tag', 'order')
    await service.wait(1000)
    const [a, b, c] = [recipients(3), recipients(3), recipients(3)]
    await send(a, { tag: 'order' })
    await send(b, { tag: 'order', from: 'a@news.example' })
    await send(c)
    await allArrive([tag], a)
    await allArrive([domain], b)
    await allArrive([mx], c)
    await command('share', 'tenant', '100', '--tenant', service.tenantId)
    await service.wait(1000)
    const [d, e] = [recipients(3), recipients(3)]
    await send(d, { tag: 'order' })
    await send(e, { from: 'a@news.example' })
    await allArrive([tenant], d)
    await allArrive([domain], e)
  })

  test('of more than the default has left is refused, and so is the removal of a transport with a share', async () => {
    tidy()
    await relayed('old')
    await relayed('other')
    await command('share', 'old', '60')
    await expect(command('share', 'other', '50')).rejects.toThrow('exit 2')
    await expect(command('remove', 'old')).rejects.toThrow('exit 2')
    await expect(command('share', 'absent', '1')).rejects.toThrow('exit')
    await expect(command('share', 'relay', '1')).rejects.toThrow('exit 2')
    for (const given of ['101', '-1', 'x']) await expect(command('share', 'old', given)).rejects.toThrow(/exit [12]/)
    expect(await command('share', 'other', '40')).toMatchObject({
      shares: [
        { transport: 'old', percent: 60 },
        { transport: 'other', percent: 40 },
      ],
    })
  })
})

describe('failover', () => {
  test('sends waiting and new mail by the default while the transport is dead, and back when it lives again', async () => {
    tidy()
    const sink = await relayed('old')
    await command('share', 'old', '100')
    await service.wait(1000)
    const first = recipients(5)
    await send(first)
    await allArrive([sink], first)
    await sink.close()
    const meanwhile = recipients(60)
    const ids = await send(meanwhile)
    // The email that a connection was opened for records its failure, and is tried again later.
    await expect.poll(() => arrivedAt(mx, meanwhile).length, { timeout: 20_000, interval: 20 }).toBeGreaterThanOrEqual(50)
    const failed = (await Promise.all(ids.map(deliveriesOf))).filter((all) => all.some((one) => one.status === 'softfail'))
    expect(failed.length).toBeLessThanOrEqual(10)
    for (const all of failed) expect(all[0]).toMatchObject({ status: 'softfail', transport: 'old' })
    const again = await startFakeMx({ port: sink.port })
    onTestFinished(() => again.close())
    await expect
      .poll(
        async () => {
          await send(recipients(1))
          return again.messages.length
        },
        { timeout: 30_000, interval: 200 },
      )
      .toBeGreaterThan(0)
    const after = recipients(10)
    await send(after)
    await allArrive([again], after)
  })

  test('happens too when the transport refuses every message for now', async () => {
    tidy()
    let isBlocking = true
    const sink = await relayed('old', ({ stage }) =>
      isBlocking && stage === 'mail' ? '451 4.7.1 Account under review, try again later' : undefined,
    )
    await command('share', 'old', '100')
    await service.wait(1000)
    const to = recipients(40)
    await send(to)
    await expect
      .poll(
        async () => {
          const more = recipients(2)
          to.push(...more)
          await send(more)
          return arrivedAt(mx, to).length
        },
        { timeout: 30_000, interval: 100 },
      )
      .toBeGreaterThan(5)
    isBlocking = false
    await expect
      .poll(
        async () => {
          await send(recipients(1))
          return sink.messages.length
        },
        { timeout: 30_000, interval: 200 },
      )
      .toBeGreaterThan(3)
  })

  test('is off with --no-failover: the mail waits', async () => {
    tidy()
    const sink = await relayed('old')
    await command('set', 'old', '--no-failover')
    await command('share', 'old', '100')
    await sink.close()
    await service.wait(1000)
    const to = recipients(3)
    const ids = await send(to)
    await expect.poll(async () => (await deliveriesOf(ids[0] ?? '')).length, { timeout: 20_000, interval: 30 }).toBe(1)
    expect(arrivedAt(mx, to)).toEqual([])
  })
})

describe('a login', () => {
  test('is sealed, is used over STARTTLS, and is tested without mail', async () => {
    tidy()
    const logins: string[] = []
    const server = new SMTPServer({
      ...testCertificate,
      authOptional: false,
      onAuth: ({ username, password }, _session, done) => {
        logins.push(`${username} ${password}`)
        return password === 'right' ? done(null, { user: username }) : done(new Error('wrong password'))
      },
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => new Promise((resolve) => server.close(() => resolve())))
    const { port } = server.server.address() as { port: number }
    await command('add', 'vendor', `smtp://me:wrong@127.0.0.1:${port}`, '--tls', 'opportunistic', '--connections', '3', '--rate', '50')
    await expect(command('test', 'vendor')).rejects.toThrow(/"works":false.*wrong password/)
    await command('set', 'vendor', `smtp://me:right@127.0.0.1:${port}`, '--tls', 'opportunistic')
    expect(await command('test', 'vendor')).toMatchObject({ works: true, secure: true })
    expect(new Set(logins)).toEqual(new Set(['me wrong', 'me right']))
    expect((await command('list')).transports).toEqual([
      {
        name: 'vendor',
        host: '127.0.0.1',
        port,
        tls: 'opportunistic',
        user: 'me',
        connections: 3,
        rate: 50,
        failover: true,
        fallback: null,
      },
    ])
    const [stored] = await service.db.rows(storedPasswords)
    expect(stored?.password?.toString('latin1')).not.toContain('right')
    expect(await listTransports(service.db, secrets)).toMatchObject([{ auth: { user: 'me', password: 'right' } }])
    await relayed('plain')
    expect(await command('test', 'plain')).toMatchObject({ works: true, secure: false })
    await command('set', 'plain', '--tls', 'required')
    await expect(command('test', 'plain')).rejects.toThrow(/"works":false/)
  })
})
