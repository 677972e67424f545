/** Signatures before, during and after a rotation, as OpenDKIM and dkimpy verify them (Debian packages opendkim and python3-dkim). */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, openSecrets, silentLog, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { signatureFields } from '#dkim'
import {
  addDomain,
  listDkimTargets,
  listDomainKeys,
  listDomains,
  makeDomain,
  openDomains,
  type RotationDeps,
  rotateDueDomains,
} from '#domains'
import { openResolver } from '#net'
import { createOrganisation } from '#tenants'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const run = promisify(execFile)
const opendkim = '/usr/sbin/opendkim'
const hasDkimpy = () => spawnSync('/usr/bin/python3', ['-c', 'import dkim']).status === 0
const missing = [...(existsSync(opendkim) ? [] : ['opendkim']), ...(hasDkimpy() ? [] : ['python3-dkim'])]
const hostname = 'mail.host.example'
const name = 'shop.example'
const dayMs = 86_400_000
/** Only its verdict is read: each message is accepted. */
const lenient = ['KeyNotFound', 'BadSignature', 'DNSError', 'InternalError', 'Security']

/** Reads a message, and the records as JSON in its first argument; prints whether dkimpy accepts every signature. */
const dkimpy = `import sys, json, dkim
records = json.loads(sys.argv[1])
message = sys.stdin.buffer.read()
verifier = dkim.DKIM(message)
count = sum(1 for name, value in verifier.headers if name.lower() == b'dkim-signature')
def text(name, timeout=5):
    return records.get(name.decode().rstrip('.').lower(), '').encode() or None
print(json.dumps([verifier.verify(idx=n, dnsfunc=text) for n in range(count)]))`

describe.skipIf(missing.length > 0)(`other verifiers${missing.length > 0 ? ` (not installed: ${missing.join(', ')})` : ''}`, () => {
  let database: TestDatabase
  let dns: TestDns
  let folder: string
  let aheadMs = 0
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  const ids = openIds(systemRandom)
  const secrets = openSecrets('a secret for tests only', systemRandom)
  let rotation: RotationDeps

  beforeAll(async () => {
    dns = await startTestDns()
    database = await testDatabase()
    folder = mkdtempSync(join(tmpdir(), 'postrider-verifiers-'))
    const { db } = database
    const facts = { nowMs: clock.nowMs(), ids, secrets }
    const tenant = await db.transaction((tx) => createOrganisation(tx, { name: 'Test', secretFingerprint: 'f', ...facts }))
    const made = await makeDomain({ tenantId: tenant.id, name, trusted: true }, facts)
    await db.transaction((tx) => addDomain(tx, made))
    await db.run(makeFound)
    const resolvers = [openResolver({ servers: [dns.address], clock: systemClock, ids: { random: Math.random } })]
    const schedule = { everyMs: 7 * dayMs, alsoTxt: false }
    rotation = { db, clock, ids, secrets, log: silentLog, resolvers, hostname, schedule, writesDns: true, keepMs: 5 * dayMs }
  })
  afterAll(async () => {
    await database?.close()
    await dns?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** The customer's CNAME records, which stay, and the platform's records as they are now. */
  async function published(): Promise<Record<string, string>> {
    const [domain] = await listDomainKeys(database.db, null)
    if (!domain) throw new Error('there is no domain')
    const first = domain.selector.replace(/-2$/, '')
    const targets = new Map((await listDkimTargets(database.db, hostname)).map((one) => [one.name, one.value]))
    const records: Record<string, string> = {}
    for (const selector of [first, `${first}-2`, `${first}-ed`, `${first}-2-ed`]) {
      const target = `${selector}.${domain.id}.dkim.${hostname}`
      const value = targets.get(target)
      dns.set(`${selector}._domainkey.${name}`, 'CNAME', [target])
      dns.set(target, 'TXT', value === undefined ? [] : [value])
      if (value !== undefined) records[`${selector}._domainkey.${name}`] = value
    }
    return records
  }

  async function signed(): Promise<Buffer> {
    const domains = openDomains({ db: database.db, clock, secrets })
    const [domain] = await listDomains(database.db, null)
    const message = Buffer.from(
      `From: a@${name}\r\nTo: b@there.example\r\nSubject: hello\r\nDate: Fri, 01 Jan 2027 00:00:00 +0000\r\nMessage-ID: <1@${name}>\r\n\r\nHello\r\n`,
    )
    const keys = (domain && (await domains.signingKeys(domain.tenantId, domain.id, true))) ?? []
    return Buffer.concat([Buffer.from(await signatureFields(message, keys, systemClock.nowMs())), message])
  }

  async function verdicts(message: Buffer, records: Record<string, string>) {
    const python = run('/usr/bin/python3', ['-c', dkimpy, JSON.stringify(records)])
    python.child.stdin?.end(message)
    const file = join(folder, 'message')
    writeFileSync(file, message)
    const keys = join(folder, 'keys')
    writeFileSync(
      keys,
      Object.entries(records)
        .map(([at, text]) => `${at} ${text}\n`)
        .join(''),
    )
    const config = join(folder, 'opendkim.conf')
    writeFileSync(config, `Mode v\nTestPublicKeys ${keys}\n${lenient.map((what) => `On-${what} accept\n`).join('')}`)
    const other = run(opendkim, ['-x', config, '-t', file, '-vvv']).catch((error: { stdout: string; stderr: string }) => error)
    const { stdout, stderr } = await other
    return { dkimpy: JSON.parse((await python).stdout) as boolean[], opendkim: `${stdout}${stderr}` }
  }

  test('accept both signatures at every step of a rotation, of mail that was signed before it too', async () => {
    const selectors = new Set<string>()
    let before: Buffer | undefined
    for (const waitMs of [0, 6 * dayMs, 3_600_000, 25 * 3_600_000, 4 * dayMs]) {
      aheadMs += waitMs
      await published()
      await rotateDueDomains(rotation)
      const records = await published()
      const now = await signed()
      selectors.add(/s=([^;\s]+)/.exec(now.toString('latin1'))?.[1] ?? '')
      for (const message of [now, before ?? now]) {
        const found = await verdicts(message, records)
        expect(found.dkimpy).toEqual([true, true])
        expect(found.opendkim).toMatch(/dkim=pass .*a=rsa-sha256/)
        expect(found.opendkim).toMatch(/dkim=pass .*a=ed25519-sha256/)
      }
      before ??= now
    }
    expect(selectors.size).toBe(2)
    // A record that is not there fails both.
    const none = await verdicts(await signed(), {})
    expect(none.dkimpy).toEqual([false, false])
    expect(none.opendkim).not.toMatch(/dkim=pass/)
  })
})

const makeFound = sql`
  update domains
  set dkim_status = 'OK', dkim_ed25519_status = 'OK'`
