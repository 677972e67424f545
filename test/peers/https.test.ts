/**
 * POSTRIDER_HTTPS against pebble, a real ACME server: the whole program, its ports and its database. Names lead to this machine by a DNS
 * server of the test.
 */
import { X509Certificate } from 'node:crypto'
import { connect as connectTcp } from 'node:net'
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '#db'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { missingPebble, type Pebble, startPebble } from '../support/pebble.ts'
import { freePort, type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const publicHost = 'app.postrider.test'
const mailHost = 'mail.postrider.test'
const trackHost = 'click.shop.test'
const missing = missingPebble()
/** On a busy machine an order takes seconds. */
const orderWithin = { timeout: 60_000, interval: 200 }

interface Row {
  name: string
  chain: string | null
  key: string | null
  challenge: string | null
  failures: number
  lastError: string | null
  /** Part of the lifetime at which the renewal is due. */
  duePart: number | null
  isDue: boolean
  isOrdering: boolean
}

const rows = sql<Row>`
  select name, chain, encode(private_key, 'escape') as key, challenge, failures, last_error as "lastError",
    (extract(epoch from due_at - issued_at) / extract(epoch from expires_at - issued_at))::float8 as "duePart",
    due_at <= clock_timestamp() as "isDue", coalesce(order_until > clock_timestamp(), false) as "isOrdering"
  from certificates
  order by name`
const preferChallenge = sql`
  update certificates
  set challenge = $2, due_at = $3
  where name = $1`
/** As if ten minutes had passed. */
const passTime = sql`
  update certificates
  set due_at = due_at - interval '10 minutes', order_until = order_until - interval '10 minutes',
    ordered_at = ordered_at - interval '10 minutes'
  where name = $1`
const domainByName = sql<{ id: number }>`
  select id
  from domains
  where name = $1`
const openChallenges = sql<{ name: string }>`
  select name
  from acme_challenges`

describe.skipIf(missing !== undefined)(`HTTPS with certificates by ACME${missing === undefined ? '' : ` (${missing})`}`, () => {
  let dns: TestDns
  let database: TestDatabase
  let pebble: Pebble
  let service: ServiceProcess
  let ports: { https: number; http: number; smtp: number; submission: number; submissionTls: number }

  /** Settings of an instance. Its ports are free ones, except those at which pebble validates. */
  const settings = (): Record<string, string> => ({
    DATABASE_URL: database.url,
    POSTRIDER_SECRET: 'a secret for the test of certificates',
    NODE_EXTRA_CA_CERTS: pebble.authorityFile,
    POSTRIDER_HTTPS: 'on',
    POSTRIDER_HTTPS_HOST: '127.0.0.1',
    POSTRIDER_PUBLIC_URL: `https://${publicHost}`,
    POSTRIDER_ACME_DIRECTORY: pebble.directory,
    POSTRIDER_ACME_CONTACT: 'operator@postrider.test',
    POSTRIDER_DNS: dns.address,
    POSTRIDER_DELIVERY_PROCESSES: '1',
    POSTRIDER_LOG_LEVEL: 'info',
  })
  const rowOf = async (name: string) => (await database.db.rows(rows)).find((row) => row.name === name)
  const chainOf = async (name: string) => (await rowOf(name))?.chain ?? null
  const command = (...words: string[]) => service.command(...words)

  beforeAll(async () => {
    const address = ['127.0.0.1']
    dns = await startTestDns({
      [publicHost]: { A: address },
      [mailHost]: { A: address },
      [`track.${mailHost}`]: { A: address },
      [trackHost]: { CNAME: [`track.${mailHost}`] },
    })
    database = await testDatabase()
    const [https, http] = [await freePort(), await freePort()]
    ports = { https, http, smtp: await freePort(), submission: await freePort(), submissionTls: await freePort() }
    pebble = await startPebble({ httpPort: http, tlsPort: https, dns: dns.address })
    service = await startServiceProcess({
      ...settings(),
      POSTRIDER_ROLES: 'api,inbound',
      POSTRIDER_HTTPS_PORT: String(ports.https),
      POSTRIDER_HTTP_PORT: String(ports.http),
      POSTRIDER_SMTP_PORT: String(ports.smtp),
      POSTRIDER_SUBMISSION_PORT: String(ports.submission),
      POSTRIDER_SUBMISSION_TLS_PORT: String(ports.submissionTls),
    })
  }, 120_000)
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]()
    await pebble?.[Symbol.asyncDispose]()
    await database?.close()
    await dns?.close()
  })

  /** A verified connection to the HTTPS port; rejects if the certificate is not pebble's for this name. */
  const openTls = async (name: string, port = ports.https): Promise<TLSSocket> => {
    const ca = await pebble.root()
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, servername: name, ca }, () => resolve(socket))
      socket.once('error', reject)
    })
  }
  const serialOf = (socket: TLSSocket): string => {
    const { serialNumber } = socket.getPeerCertificate() as PeerCertificate
    socket.destroy()
    return serialNumber
  }
  const get = async (name: string, path: string): Promise<string> => {
    const socket = await openTls(name)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
    let text = ''
    for await (const piece of socket) text += String(piece)
    return text
  }
  const getPlain = async (request: string): Promise<string> => {
    const socket = connectTcp(ports.http, '127.0.0.1')
    socket.write(request)
    let text = ''
    for await (const piece of socket) text += String(piece)
    return text
  }
  /** Upgrades an SMTP connection as a mail program does. */
  const starttls = async (port: number): Promise<TLSSocket> => {
    const ca = await pebble.root()
    const plain = connectTcp(port, '127.0.0.1')
    const said = () => new Promise<string>((resolve) => plain.once('data', (octets) => resolve(String(octets))))
    await said()
    plain.write('EHLO client.test\r\n')
    await said()
    plain.write('STARTTLS\r\n')
    await said()
    return new Promise((resolve, reject) => {
      const socket = connect({ socket: plain, servername: mailHost, ca }, () => resolve(socket))
      socket.once('error', reject)
    })
  }

  test('the first start obtains a certificate for the dashboard and the mail host, with sealed keys', { timeout: 120_000 }, async () => {
    await expect.poll(() => chainOf(publicHost), orderWithin).toContain('BEGIN CERTIFICATE')
    await expect.poll(() => chainOf(mailHost), orderWithin).toContain('BEGIN CERTIFICATE')
    await expect.poll(() => get(publicHost, '/healthz').catch(() => ''), orderWithin).toContain('{"status":"ok"}')
    expect(await get(publicHost, '/v1/emails')).toMatch(/^HTTP\/1.1 401 /)
    const row = await rowOf(publicHost)
    expect(row).toMatchObject({ challenge: 'http-01', failures: 0, lastError: null })
    expect(row?.key).not.toContain('PRIVATE KEY')
    expect(row?.duePart).toBeGreaterThan(0.64)
    expect(row?.duePart).toBeLessThan(0.69)
    expect(pebble.orders()).toBe(2)
  })

  test('the SMTP listeners present it after STARTTLS and on the TLS port', { timeout: 60_000 }, async () => {
    for (const port of [ports.smtp, ports.submission]) {
      await expect.poll(() => starttls(port).then((socket) => serialOf(socket) !== '', String), orderWithin).toBe(true)
    }
    await expect.poll(() => openTls(mailHost, ports.submissionTls).then((socket) => serialOf(socket) !== '', String)).toBe(true)
  })

  test('the HTTP port redirects to https, and returns no unknown challenge', async () => {
    const asked = (path: string, host = publicHost) => getPlain(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    const answer = await asked('/page?a=1')
    expect(answer).toMatch(/^HTTP\/1.1 308 /)
    expect(answer).toContain(`location: https://${publicHost}/page?a=1\r\n`)
    expect(await asked('http://elsewhere.test/x')).toContain(`location: https://${publicHost}/\r\n`)
    expect(await asked('/', 'a b')).toMatch(/^HTTP\/1.1 400 /)
    expect(await asked('/.well-known/acme-challenge/unknown')).toMatch(/^HTTP\/1.1 404 /)
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
  })

  test('a track domain gets a certificate when it leads here, and not before', { timeout: 120_000 }, async () => {
    await command('domain', 'add', 'shop.test', '--trust')
    const domainId = (await database.db.first(domainByName, ['shop.test']))?.id
    const names = ['click', 'stranger']
    const ids = []
    for (const name of names) {
      const added = await service.call('POST', '/tracking', { domainId, name })
      expect(added.status).toBe(201)
      ids.push((added.body.data as { id: string }).id)
    }
    for (const id of ids) await service.call('POST', `/tracking/${id}/verify`)
    await expect.poll(() => chainOf(trackHost), orderWithin).toContain('BEGIN CERTIFICATE')
    await expect.poll(() => get(trackHost, '/o/unknown').catch(() => ''), orderWithin).toMatch(/^HTTP\/1.1 404 /)
    expect(await rowOf('stranger.shop.test')).toBeUndefined()
  })

  test('1,000 handshakes with unknown names cause no order, no row and no log line', { timeout: 120_000 }, async () => {
    const [orders, output] = [pebble.orders(), service.output()]
    const before = (await database.db.rows(rows)).length
    const attempt = (index: number) =>
      new Promise<string>((resolve) => {
        const options = { host: '127.0.0.1', port: ports.https, rejectUnauthorized: false }
        const protocols = index % 2 === 0 ? { ALPNProtocols: ['acme-tls/1'] } : {}
        const socket = connect({ ...options, servername: `n${index}.stranger.test`, ...protocols }, () => resolve('connected'))
        socket.once('error', ({ message }) => resolve(message))
      })
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => attempt(round * 100 + index)))
      for (const answer of answers) expect(answer).toMatch(/unrecognized name/i)
    }
    expect(pebble.orders()).toBe(orders)
    expect(await database.db.rows(rows)).toHaveLength(before)
    expect(service.output().slice(output.length)).toBe('')
    expect(await get(publicHost, '/healthz')).toContain('200 OK')
  })

  test('certificate renew replaces it on all ports without a restart', { timeout: 120_000 }, async () => {
    const before = serialOf(await starttls(ports.submission))
    await command('certificate', 'renew', mailHost)
    await expect.poll(() => starttls(ports.submission).then(serialOf), orderWithin).not.toBe(before)
    const { certificates } = (await command('certificate', 'list')) as { certificates: { name: string; failures: number }[] }
    expect(certificates.map(({ name, failures }) => [name, failures])).toEqual([
      [publicHost, 0],
      [trackHost, 0],
      [mailHost, 0],
    ])
  })

  test('TLS-ALPN-01 works beside ordinary connections to the same name', { timeout: 120_000 }, async () => {
    const before = serialOf(await openTls(publicHost))
    await database.db.run(preferChallenge, [publicHost, 'tls-alpn-01', new Date()])
    const during = async () => serialOf(await openTls(publicHost))
    await expect.poll(during, { ...orderWithin, interval: 20 }).not.toBe(before)
    expect(await rowOf(publicHost)).toMatchObject({ challenge: 'tls-alpn-01', failures: 0, lastError: null })
  })

  test('while the CA fails, the old certificate stays, and the failure is visible; afterwards it recovers', {
    timeout: 120_000,
  }, async () => {
    const root = await pebble.root()
    const before = await chainOf(publicHost)
    await pebble.stop()
    await command('certificate', 'renew', publicHost)
    await expect.poll(async () => (await rowOf(publicHost))?.lastError, orderWithin).toContain('localhost')
    const failed = await rowOf(publicHost)
    expect(failed).toMatchObject({ chain: before, failures: 1, isDue: false, isOrdering: false })
    await expect.poll(() => service.output()).toContain('failed to obtain a certificate')
    const socket = connect({ host: '127.0.0.1', port: ports.https, servername: publicHost, ca: root })
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
    socket.destroy()
    // It has forgotten the account, and has new roots.
    await pebble.start({ validitySeconds: 15 })
    await command('certificate', 'renew', publicHost)
    await expect.poll(() => chainOf(publicHost), orderWithin).not.toBe(before)
    expect(await rowOf(publicHost)).toMatchObject({ failures: 0, lastError: null })
    await expect.poll(() => get(publicHost, '/healthz').catch(() => ''), orderWithin).toContain('200 OK')
  })

  test('a certificate is renewed before it expires, without a command', { timeout: 120_000 }, async () => {
    const before = await rowOf(publicHost)
    expect(before?.duePart).toBeLessThan(0.75)
    await expect.poll(() => chainOf(publicHost), orderWithin).not.toBe(before?.chain)
    await expect.poll(() => get(publicHost, '/healthz').catch(() => ''), orderWithin).toContain('200 OK')
    await pebble.stop()
    await pebble.start()
    await command('certificate', 'renew', publicHost)
    await expect
      .poll(async () => new X509Certificate((await chainOf(publicHost)) ?? '').validToDate.getTime(), orderWithin)
      .toBeGreaterThan(Date.now() + 86_400_000)
  })

  test('two instances on one database place one order, and one killed during it loses nothing', { timeout: 240_000 }, async () => {
    const port = async () => String(await freePort())
    const second = await startServiceProcess({
      ...settings(),
      POSTRIDER_ROLES: 'api',
      POSTRIDER_HTTPS_PORT: await port(),
      POSTRIDER_HTTP_PORT: await port(),
    })
    try {
      const orders = pebble.orders()
      const renewals = 3
      for (let renewal = 0; renewal < renewals; renewal++) {
        const before = await chainOf(publicHost)
        // Both instances are notified at the same time.
        await command('certificate', 'renew', publicHost)
        await expect.poll(() => chainOf(publicHost), orderWithin).not.toBe(before)
      }
      expect(pebble.orders()).toBe(orders + renewals)

      const kept = await chainOf(publicHost)
      await pebble.stop()
      await pebble.start({ waitSeconds: 15 })
      await second.stop()
      await command('certificate', 'renew', publicHost)
      await expect.poll(async () => (await database.db.rows(openChallenges)).length, { ...orderWithin, interval: 20 }).toBe(1)
      const { serve } = await service.processes()
      process.kill(serve, 'SIGKILL')
      expect(await rowOf(publicHost)).toMatchObject({ chain: kept, failures: 1, isDue: false, isOrdering: true })
      await pebble.stop()
      await pebble.start()
      await service.stop()
      await service.start()
      expect(await chainOf(publicHost)).toBe(kept)
      await database.db.run(passTime, [publicHost])
      await expect.poll(() => chainOf(publicHost), orderWithin).not.toBe(kept)
      expect(await rowOf(publicHost)).toMatchObject({ failures: 0, lastError: null })
    } finally {
      await second[Symbol.asyncDispose]()
    }
  })

  test('a stop waits for no idle connection', { timeout: 60_000 }, async () => {
    const unused = await openTls(publicHost)
    const idle = await openTls(publicHost)
    idle.write(`GET /healthz HTTP/1.1\r\nHost: ${publicHost}\r\n\r\n`)
    await new Promise((resolve) => idle.once('data', resolve))
    const ended = [unused, idle].map(
      (socket) =>
        new Promise((resolve) =>
          socket
            .on('error', () => {})
            .resume()
            .once('close', resolve),
        ),
    )
    const began = performance.now()
    expect(await service.stop()).toBe(0)
    await Promise.all(ended)
    expect(performance.now() - began).toBeLessThan(20_000)
  })
})
