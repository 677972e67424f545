/** DNS updates against real servers: every record type written, changed and removed, and everything else left as it is. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openIds, openSecrets, parseDnsUpdate, silentLog, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { type DnsUpdateDeps, readDnsUpdates, runDnsUpdate } from '#dns-updates'
import { addDomain, listDkimTargets, makeDomain, type PlatformRecord, requestRotation } from '#domains'
import { openResolver } from '#net'
import { createOrganisation } from '#tenants'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import {
  missingUpdateServer,
  startUpdateServer,
  type UpdateServerKind,
  type UpdateServerProcess,
  updateSecrets,
  updateZone,
} from '../support/update-servers.ts'

const ids = openIds(systemRandom)
const secrets = openSecrets('a secret for tests only', systemRandom)
const hostname = `mail.${updateZone}`

/** The operator's own records, which may not change. */
const foreign = [
  'mail 300 IN A 203.0.113.9',
  'rp.mail 300 IN TXT "a text of the operator"',
  'own-spf.mail 300 IN TXT "v=spf1 -all"',
  'busy.mail 300 IN A 203.0.113.10',
  'alias.mail 300 IN CNAME elsewhere.example.net.',
]

const platform = (
  type: PlatformRecord['type'],
  name: string,
  value: string,
  status: PlatformRecord['status'] = 'Missing',
): PlatformRecord => ({
  type,
  name: name === '@' ? hostname : `${name}.${hostname}`,
  value,
  status,
  found: [],
})

/** One record of each type; the host's own address is the operator's. */
const everyType = (last: number, text: string) => [
  platform('A', '@', '203.0.113.9', 'OK'),
  platform('A', 'out', `203.0.113.${last}`),
  platform('AAAA', 'out', `2001:db8::${last}`),
  platform('MX', 'rp', `10 mx${last}.example.net`),
  platform('CNAME', 'track', `host${last}.${updateZone}`),
  platform('TXT', 'rp', `v=spf1 include:spf.${hostname} ${text}`),
  platform('TXT', 'key._domainkey', `v=DKIM1; k=rsa; p=${text.repeat(80)}`),
]

const long = 'Z'.repeat(5)

describe.each<UpdateServerKind>(['bind9', 'knot'])('%s', (kind) => {
  const missing = missingUpdateServer(kind)

  describe.skipIf(missing !== undefined)(`as the server of the zone${missing === undefined ? '' : ` (${missing})`}`, () => {
    let server: UpdateServerProcess
    let database: TestDatabase
    let wanted: PlatformRecord[] = []
    const clock = systemClock
    beforeAll(async () => {
      server = await startUpdateServer(kind, foreign)
      database = await testDatabase()
      const facts = { nowMs: clock.nowMs(), ids }
      await database.db.transaction((tx) => createOrganisation(tx, { name: 'Test', secretFingerprint: 'f', ...facts }))
    })
    afterAll(async () => {
      await server?.[Symbol.asyncDispose]()
      await database?.close()
    })
    afterEach(async () => {
      wanted = []
      await run()
    })

    const resolver = () => openResolver({ servers: [server.address], clock: systemClock, ids: { random: Math.random } })
    const deps = (key = `postrider:${updateSecrets.postrider}`, query = ''): DnsUpdateDeps => ({
      db: database.db,
      clock,
      log: silentLog,
      random: Math.random,
      target: parseDnsUpdate(`rfc2136://${key}@127.0.0.1:${server.port}/${updateZone}${query}`),
      hostname,
      resolver: resolver(),
      readPlatform: async () => wanted,
    })
    const run = (given = deps()) => runDnsUpdate(given)
    const state = () => readDnsUpdates(database.db)

    /** The records of the server at the names of the tests. */
    async function served() {
      const ask = resolver()
      const values = <T>(answer: { kind: string; value?: T }) => answer.value ?? answer.kind
      return {
        out: values(await ask.addresses(`out.${hostname}`, 'fresh')),
        mx: values(await ask.mx(`rp.${hostname}`, 'fresh')),
        track: values(await ask.cname(`track.${hostname}`, 'fresh')),
        rp: values(await ask.txt(`rp.${hostname}`, 'fresh')),
        key: values(await ask.txt(`key._domainkey.${hostname}`, 'fresh')),
      }
    }
    const untouched = async () => {
      const ask = resolver()
      expect(await ask.addresses(hostname, 'fresh')).toMatchObject({ value: ['203.0.113.9'] })
      expect(await ask.txt(`own-spf.${hostname}`, 'fresh')).toMatchObject({ value: ['v=spf1 -all'] })
      expect(await ask.addresses(`busy.${hostname}`, 'fresh')).toMatchObject({ value: ['203.0.113.10'] })
      expect(await ask.cname(`alias.${hostname}`, 'fresh')).toMatchObject({ value: ['elsewhere.example.net'] })
      const { value } = (await ask.txt(`rp.${hostname}`, 'fresh')) as { value: string[] }
      expect(value).toContain('a text of the operator')
    }

    test('every record type is written, changed and removed, and read back', async () => {
      wanted = everyType(1, long)
      expect(await run()).toEqual({ changed: 6, problems: 0, problem: null })
      const shown = (last: number, text: string) => ({
        out: [`2001:db8::${last}`, `203.0.113.${last}`],
        mx: [{ priority: 10, exchange: `mx${last}.example.net` }],
        track: [`host${last}.${updateZone}`],
        rp: expect.arrayContaining([`v=spf1 include:spf.${hostname} ${text}`, 'a text of the operator']),
        key: [`v=DKIM1; k=rsa; p=${text.repeat(80)}`],
      })
      expect(await served()).toEqual(shown(1, long))
      const { records, problems } = await state()
      expect(problems).toEqual([])
      expect(records.map(({ type, state: one, seenAt }) => [type, one, seenAt !== null])).toEqual(
        ['TXT', 'A', 'AAAA', 'MX', 'TXT', 'CNAME'].map((type) => [type, 'published', true]),
      )
      expect(await run()).toEqual({ changed: 0, problems: 0, problem: null })

      wanted = everyType(2, 'Y'.repeat(5))
      expect(await run()).toEqual({ changed: 6, problems: 0, problem: null })
      expect(await served()).toEqual(shown(2, 'Y'.repeat(5)))
      await untouched()

      wanted = []
      expect(await run()).toMatchObject({ changed: 6, problems: 0 })
      expect(await served()).toMatchObject({
        out: 'nxdomain',
        mx: 'none',
        track: 'nxdomain',
        rp: ['a text of the operator'],
        key: 'nxdomain',
      })
      expect((await state()).records).toEqual([])
      await untouched()
    })

    test('records that Postrider did not write stay, and are a problem where they are in the way', async () => {
      wanted = [
        platform('TXT', 'own-spf', 'v=spf1 ip4:203.0.113.9 ~all'),
        platform('A', '@', '203.0.113.9', 'OK'),
        platform('CNAME', 'busy', hostname),
        platform('CNAME', 'alias', hostname),
        platform('TXT', 'alias', 'v=DKIM1; p=AA'),
        platform('MX', 'rp', '10 mx.example.net'),
        platform('A', 'out', '203.0.113.7'),
        { ...platform('TXT', 'x', 'v=spf1 -all'), name: 'outside.example.org' },
      ]
      expect(await run()).toMatchObject({ changed: 2, problems: 5 })
      const { problems, run: last } = await state()
      expect(
        Object.fromEntries(problems.map(({ type, name, problem }) => [`${type} ${name.replace(`.${hostname}`, '')}`, problem])),
      ).toEqual({
        'TXT own-spf': 'another TXT record stands at the name: v=spf1 -all',
        'CNAME busy': expect.stringContaining('another record appeared at the name'),
        'CNAME alias': 'another CNAME record stands at the name: elsewhere.example.net',
        'TXT alias': 'a CNAME record to elsewhere.example.net stands at the name',
        'TXT outside.example.org': expect.stringContaining('publish it by hand'),
      })
      expect(last).toMatchObject({ problem: null })
      await untouched()
    })

    test('a wanted record that the operator has already is left, and is not removed later', async () => {
      wanted = [platform('A', 'busy', '203.0.113.10')]
      expect(await run()).toEqual({ changed: 0, problems: 0, problem: null })
      expect((await state()).records).toEqual([])
      wanted = []
      expect(await run()).toMatchObject({ changed: 0 })
      await untouched()
    })

    test('a wrong key is one clear problem and changes nothing; the next run with the right key writes all', async () => {
      wanted = everyType(3, long)
      const wrong = `postrider:${Buffer.alloc(32, 9).toString('base64')}`
      expect(await run(deps(wrong))).toMatchObject({ changed: 0, problem: expect.stringMatching(/refuses the key|not signed/) })
      expect(await run(deps(`nobody:${updateSecrets.postrider}`))).toMatchObject({
        changed: 0,
        problem: expect.stringMatching(/refuses the key|not signed/),
      })
      const { run: last, problems } = await state()
      expect(last).toMatchObject({ problem: expect.stringMatching(/refuses the key|not signed/) })
      expect((last?.nextAt.getTime() ?? 0) - (last?.endedAt.getTime() ?? 0)).toBeGreaterThanOrEqual(60_000)
      expect(problems.length).toBeGreaterThan(0)
      expect(await run()).toEqual({ changed: 6, problems: 0, problem: null })
      expect((await state()).problems).toEqual([])
    })

    test('a half refused update writes the other half, and is repeated', async () => {
      wanted = everyType(4, long)
      // This key may write TXT records only, and signs with SHA-512.
      const limited = () => deps(`texts:${updateSecrets.texts}`, '?algorithm=hmac-sha512')
      expect(await run(limited())).toMatchObject({ changed: 2, problems: 4 })
      expect(await served()).toMatchObject({ out: 'nxdomain', track: 'nxdomain', key: [`v=DKIM1; k=rsa; p=${long.repeat(80)}`] })
      const { problems, records } = await state()
      expect(problems.map(({ type }) => type)).toEqual(['A', 'AAAA', 'MX', 'CNAME'])
      expect(new Set(problems.map(({ problem }) => problem))).toEqual(
        new Set([expect.stringMatching(/does not allow .* \((REFUSED|BADKEY)\)/)]),
      )
      expect(records.map(({ type }) => type)).toEqual(['TXT', 'TXT'])
      expect(await run()).toMatchObject({ changed: 4, problems: 0 })
      await untouched()
    })

    test('an update without an answer is repeated, and its records count as written', async () => {
      wanted = [platform('A', 'out', '203.0.113.5')]
      await run()
      wanted = [platform('A', 'out', '203.0.113.6')]
      server.halt()
      const silent = { ...deps(), clock: { ...clock, after: (ms: number, act: () => void) => systemClock.after(Math.min(ms, 200), act) } }
      expect(await run(silent)).toMatchObject({ changed: 0, problem: expect.stringContaining('no answer') })
      server.proceed()
      expect(await run(), server.log()).toMatchObject({ changed: 1, problems: 0 })
      expect((await served()).out).toEqual(['203.0.113.6'])
    })

    test('the keys of 200 domains are written in one run, and removed with their domains', async () => {
      const { db } = database
      const tenantId = ((await db.first(anyTenant)) as { id: string }).id
      const facts = { nowMs: clock.nowMs(), ids, secrets }
      const [first, ...others] = await Promise.all(
        Array.from({ length: 4 }, (_, nth) => makeDomain({ tenantId, name: `d${nth}.example`, trusted: true }, facts)),
      )
      for (const one of [first, ...others]) if (one) await db.transaction((tx) => addDomain(tx, one))
      // Copies with their own names and ids: keys take long to make.
      await db.run(copyDomains, [50])
      const targets = await listDkimTargets(db, hostname)
      expect(targets).toHaveLength(400)
      expect(await run()).toEqual({ changed: 400, problems: 0, problem: null })
      const ask = resolver()
      for (const { name, value } of targets.slice(0, 5)) expect(await ask.txt(name, 'fresh')).toEqual({ kind: 'found', value: [value] })
      const [one] = await db.rows(someDomain)
      if (one) await requestRotation(one, { db, clock, ids, secrets })
      expect(await run()).toMatchObject({ changed: 2, problems: 0 })
      await db.run(deleteDomains)
      expect(await run()).toMatchObject({ changed: 402, problems: 0 })
      expect((await state()).records).toEqual([])
      await untouched()
    })
  })
})

const anyTenant = sql<{ id: string }>`
  select id
  from tenants
  limit 1`
const copyDomains = sql`
  insert into domains (tenant_id, id, uuid, name, trusted, verified, test_only, selector, rsa_private, rsa_public, ed25519_private, ed25519_public,
                       created_at, own_key)
  select tenant_id, id + 7 * nth, md5(name || nth)::uuid, nth || name, trusted, verified, test_only, selector, rsa_private, rsa_public,
         ed25519_private, ed25519_public, created_at, own_key
  from domains, generate_series(1, $1 - 1) as nth
  where not test_only`
const someDomain = sql<{ tenantId: string; id: number }>`
  select tenant_id as "tenantId", id
  from domains
  where not test_only
  limit 1`
const deleteDomains = sql`
  delete from domains`
