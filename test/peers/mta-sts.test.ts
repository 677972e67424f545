/**
 * The MTA-STS policy of the return-path name, in the order that keeps bounces arriving: against BIND, which serves the names and takes the
 * updates, and pebble, which issues the certificates (Debian packages bind9 and pebble).
 */
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { parsePolicy } from 'mailauth/lib/mta-sts.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, parseDnsUpdate, readConfig, silentLog, systemClock, systemRandom } from '#base'
import { listCertificates, openCertificateStore, openChallengeBook, openChallengeContexts, startObtaining } from '#certificates'
import { runDnsUpdate } from '#dns-updates'
import { readPlatform } from '#doctor'
import { openPlainPort } from '#http'
import { listStsNames, lookAtPolicy } from '#mta-sts'
import { fetchStsPolicy, findStsId, openGuard, openPost, openResolver, type Resolver } from '#net'
import { startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { missingPebble, type Pebble, startPebble } from '../support/pebble.ts'
import { freePort } from '../support/spawned-service.ts'
import { missingUpdateServer, startUpdateServer, type UpdateServerProcess, updateSecrets, updateZone } from '../support/update-servers.ts'

const missing = missingUpdateServer('bind9') ?? missingPebble()
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const hostname = `mail.${updateZone}`
const domain = `rp.${hostname}`
const policyHost = `mta-sts.${domain}`
const recordName = `_mta-sts.${domain}`
const path = '/.well-known/mta-sts.txt'
const ids = openIds(systemRandom)
const within = { timeout: 20_000, interval: 50 }

describe.skipIf(missing !== undefined)(`the MTA-STS policy${missing === undefined ? '' : ` (${missing})`}`, () => {
  const before = getCACertificates('default')
  const opened: { stop(): unknown }[] = []
  let named: UpdateServerProcess
  let pebble: Pebble
  let service: Service
  let resolver: Resolver
  let settings: Record<string, string>
  let httpsPort: number
  let aheadMs = 0
  let wish = 'enforce'
  /** Instead of the installation's own mail port. */
  let mailPort: number | undefined

  const config = () => readConfig({ ...settings, POSTRIDER_MTA_STS: wish, POSTRIDER_MX_PORT: String(mailPort ?? service.ports.smtp) })
  /** Only the stages see the time that the test lets pass: servers compare the times of signatures and certificates with their own. */
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }
  const openNames = () => openResolver({ servers: [named.address], clock: systemClock, ids })
  /** With a cache of its own, as after a minute. */
  const openGet = () => {
    const { allowedNetworks: openedNetworks } = config()
    return openPost({ resolver: openNames(), guard: openGuard(openedNetworks), openedNetworks, clock: systemClock }).get
  }
  const look = (afterMs = 0) => {
    aheadMs += afterMs
    return lookAtPolicy({ db: service.db, clock, log: silentLog, resolver, get: openGet(), config: config() })
  }
  const update = () =>
    runDnsUpdate({
      db: service.db,
      clock: systemClock,
      log: silentLog,
      random: Math.random,
      target: parseDnsUpdate(`rfc2136://postrider:${updateSecrets.postrider}@127.0.0.1:${named.port}/${updateZone}`),
      hostname,
      resolver,
      readPlatform: () => readPlatform({ config: config(), db: service.db, clock: systemClock, ids, secrets: service.secrets }, resolver),
    })
  /** The record that BIND serves, and the alias. */
  const served = async () => {
    const [record, alias] = await Promise.all([resolver.txt(recordName, 'fresh'), resolver.cname(policyHost, 'fresh')])
    return { record: record.kind === 'found' ? record.value : [], alias: alias.kind === 'found' ? alias.value : [] }
  }
  const lookAndUpdate = async (afterMs = 0) => {
    const stage = await look(afterMs)
    expect(await update()).toMatchObject({ problems: 0, problem: null })
    return stage
  }
  const ask = (host: string, at = path, servername = policyHost) =>
    new Promise<{ status: number | undefined; type: string | undefined; text: string }>((resolve, reject) => {
      const asked = request(
        { host: '127.0.0.1', port: httpsPort, path: at, servername, headers: { host }, agent: false, ca: getCACertificates('default') },
        (answer) => {
          let text = ''
          answer.setEncoding('utf8')
          answer.on('data', (piece: string) => (text += piece))
          answer.on('end', () => resolve({ status: answer.statusCode, type: answer.headers['content-type'], text }))
        },
      )
      asked.on('error', reject).end()
    })

  beforeAll(async () => {
    named = await startUpdateServer('bind9', ['mail 300 IN A 127.0.0.1'])
    const httpPort = await freePort()
    httpsPort = await freePort()
    pebble = await startPebble({ httpPort, tlsPort: httpsPort, dns: named.address })
    // The certificate of its directory, and those that it issues.
    setDefaultCACertificates([...before, await pebble.root(), await readFile(pebble.authorityFile, 'utf8')])
    resolver = openNames()
    settings = {
      POSTRIDER_HOSTNAME: hostname,
      POSTRIDER_PUBLIC_URL: `https://${hostname}`,
      POSTRIDER_HTTPS: 'on',
      POSTRIDER_HTTPS_HOST: '127.0.0.1',
      POSTRIDER_HTTPS_PORT: String(httpsPort),
      POSTRIDER_HTTP_PORT: String(httpPort),
      POSTRIDER_MTA_STS_PORT: String(httpsPort),
      POSTRIDER_DNS: named.address,
      POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    }
    service = await startService({
      roles: ['inbound'],
      settings,
      async https(ground) {
        const challenges = openChallengeBook(ground)
        const store = await openCertificateStore(ground)
        opened.push(await openPlainPort({ challenges, log: silentLog, config: readConfig(settings) }), store)
        return { store, challengeContexts: openChallengeContexts(challenges) }
      },
    })
  }, 60_000)
  afterAll(async () => {
    for (const one of opened.reverse()) await one.stop()
    await service?.stop()
    await pebble?.[Symbol.asyncDispose]()
    await named?.[Symbol.asyncDispose]()
    setDefaultCACertificates(before)
  })

  /** Orders the certificates that are due, and waits for one. */
  async function obtain(wanted: string): Promise<void> {
    const { db, secrets } = service
    const loop = await startObtaining({
      db,
      clock: systemClock,
      log: silentLog,
      ids,
      secrets,
      directory: pebble.directory,
      contact: undefined,
      own: [hostname],
      listVerifiedNames: async () => (await listStsNames(db, hostname)).map((name) => ({ name, tenantId: null })),
      listTrackNames: async () => [],
      challenges: ['http-01'],
    })
    const ends = async () => (await listCertificates(db)).find(({ name }) => name === wanted)?.expiresAt ?? null
    await expect.poll(ends, { timeout: 60_000, interval: 50 }).not.toBeNull()
    await loop.stop()
  }

  test('appears step by step, is enforced after a week, and is withdrawn', { timeout: 120_000 }, async () => {
    // 1: the alias alone, and no order for a name that leads nowhere.
    expect(await look()).toMatchObject({ mode: null, listed: null, leadsHere: false })
    await obtain(hostname)
    expect(pebble.orders()).toBe(1)
    expect(await update()).toMatchObject({ problems: 0, problem: null })
    expect(await served()).toEqual({ record: [], alias: [hostname] })

    // 2: the certificate, and the policy.
    expect(await lookAndUpdate()).toMatchObject({ mode: 'testing', listed: null, leadsHere: true })
    expect(await lookAndUpdate()).toMatchObject({ listed: null, problem: expect.stringContaining('the policy is not served') })
    await obtain(policyHost)
    expect(pebble.orders()).toBe(2)
    await expect.poll(() => ask(policyHost).catch(() => undefined), within).toMatchObject({ status: 200 })
    const policy = await ask(policyHost)
    expect(policy.type).toMatch(/^text\/plain\b/)
    expect(parsePolicy(policy.text, { strict: true })).toMatchObject({ mode: 'testing', mx: [hostname], maxAge: 86_400 })
    expect((await ask(policyHost, '/')).status).toBe(404)
    expect((await ask(policyHost, '/healthz')).status).toBe(404)
    expect((await ask(hostname)).status).toBe(404)
    expect((await ask(hostname, '/healthz')).status).toBe(200)

    // 3: no record while the mail port does not satisfy it, or cannot be probed.
    const other = await startFakeMx()
    mailPort = other.port
    expect(await lookAndUpdate()).toMatchObject({ listed: null, problem: expect.stringContaining('does not satisfy') })
    await other.close()
    expect(await lookAndUpdate()).toMatchObject({ listed: null, problem: expect.stringContaining('could not be probed') })
    mailPort = undefined
    expect((await served()).record).toEqual([])

    // 4: the record. The listeners have their certificate within seconds.
    await expect.poll(async () => (await look())?.problem, within).toBeNull()
    expect(await lookAndUpdate()).toMatchObject({ mode: 'testing', listed: 'testing' })
    const [testing = ''] = (await served()).record
    const follow = async () => ({ id: await findStsId(domain, openNames()), policy: await fetchStsPolicy(domain, httpsPort, openGet()) })
    expect(await follow()).toMatchObject({
      id: { kind: 'found', value: testing.slice(12, -1) },
      policy: { mode: 'testing', mx: [hostname] },
    })

    // 5: enforced after a week, and the policy changes first. It is in force in all processes within a second.
    expect(await lookAndUpdate(8 * dayMs)).toMatchObject({ mode: 'enforce', listed: 'testing' })
    expect((await served()).record).toEqual([testing])
    await expect.poll(async () => (await ask(policyHost)).text, within).toContain('mode: enforce')
    expect(await lookAndUpdate()).toMatchObject({ mode: 'enforce', listed: 'enforce', problem: null })
    const [enforced = ''] = (await served()).record
    expect(enforced).not.toBe(testing)

    // 6: withdrawn: mode none, and no record once it is forgotten.
    wish = 'off'
    expect(await lookAndUpdate()).toMatchObject({ mode: 'none', listed: 'enforce' })
    await expect.poll(async () => (await ask(policyHost)).text, within).toContain('mode: none')
    expect(await lookAndUpdate()).toMatchObject({ mode: 'none', listed: 'none' })
    const [none = ''] = (await served()).record
    expect([testing, enforced]).not.toContain(none)
    expect(await lookAndUpdate(dayMs)).toMatchObject({ mode: 'none', listed: 'none' })
    expect(await lookAndUpdate(3 * hourMs)).toMatchObject({ mode: null, listed: null })
    expect(await served()).toEqual({ record: [], alias: [] })
    expect(await listStsNames(service.db, hostname)).toEqual([])
  })
})
