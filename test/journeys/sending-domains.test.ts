/** Sending domains through the real service and a real DNS server: contract section 10. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '#base'
import { sql } from '#db'
import { removeDomainsOfTenant } from '#domains'
import { openWaker } from '#spool'
import { type Service, startService } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const setTenantStatus = sql`
  update tenants
  set status = $2
  where id = $1`
const makeDue = sql`
  update domains
  set next_check_at = $2
  where uuid = $1`
const makeOld = sql`
  update domains
  set created_at = created_at - interval '8 days', next_check_at = $2
  where uuid = $1`
const standing = sql<{ next: Date | null; failures: number; checked: Date | null }>`
  select next_check_at as next, failed_checks as failures, checked_at as checked
  from domains
  where uuid = $1`
const errorsOf = sql<{ data: Record<string, unknown>; emailId: string | null }>`
  select data, email_id as "emailId"
  from events
  where kind = 'DomainDNSError' and data ->> 'uuid' = $1`

interface DnsRecord {
  type: string
  name: string
  fullName: string
  value: string
  status: string | null
  found: string[]
  problem: string | null
  suggestion: string | null
}
type Kind = 'spf' | 'dkim' | 'returnPath' | 'dkimEd25519' | 'dmarc' | 'mx'
interface Domain {
  id: number
  uuid: string
  name: string
  verified: boolean
  verifiedAt: string | null
  createdAt: string
  tenantId: string
  tenant_id: string
  tenant_name: string
  dnsCheckedAt: string | null
  dnsRecords: { zone: string } & Record<Kind, DnsRecord>
}

let dns: TestDns
let service: Service
let other: string
/** Added to the clock, so that periods end sooner. */
let clockOffsetMs = 0
let otherKey: string
/** Idle processes look for due checks every ten seconds. */
let wake: () => void
beforeAll(async () => {
  dns = await startTestDns()
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['housekeeping', 'delivery'],
    settings: { POSTRIDER_DNS: dns.address },
    clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + clockOffsetMs },
  })
  wake = openWaker({ db: service.db, clock: systemClock })
  other = await service.makeTenant('Other')
  otherKey = await service.makeKey({ tenantId: other })
})
afterAll(async () => {
  await service.stop()
  await dns.close()
})

const call = (method: string, path: string, body?: object, key = service.testKey) => service.call(method, path, { key, body })
const dataOf = async (answer: Promise<{ body: { data?: unknown } }>) => (await answer).body.data as Domain
let count = 0
const freshName = () => `d${++count}.lab${count}.test`
const add = (name = freshName(), more: object = {}) => dataOf(call('POST', '/domains', { name, ...more }))
const verify = ({ id }: Domain) => dataOf(call('POST', `/domains/${id}/verify`))
const get = ({ id }: Domain) => dataOf(call('GET', `/domains/${id}`))
const statuses = ({ dnsRecords: { spf, dkim, returnPath, dkimEd25519 } }: Domain) =>
  [spf, dkim, returnPath, dkimEd25519].map((one) => one.status)

/** Puts a domain's records into DNS, exactly as shown for pasting. */
function publish({ dnsRecords }: Domain, kinds: readonly Kind[] = ['spf', 'dkim', 'returnPath']) {
  for (const kind of kinds) {
    const { type, fullName, value } = dnsRecords[kind]
    dns.set(fullName, type as 'TXT' | 'CNAME', [type === 'TXT' ? (value.match(/.{1,200}/g) as string[]) : value])
  }
}
async function verified(): Promise<Domain> {
  const domain = await add()
  publish(domain)
  return verify(domain)
}

describe('POST /domains', () => {
  test('makes a domain with records to publish and nothing checked', async () => {
    const answer = await call('POST', '/domains', { name: 'Mail.Example.com' })
    expect(answer.status).toBe(201)
    const domain = answer.body.data as Domain
    expect(domain).toMatchObject({
      name: 'mail.example.com',
      verified: false,
      verifiedAt: null,
      tenantId: service.tenantId,
      tenant_id: service.tenantId,
      tenant_name: 'Default',
      dnsCheckedAt: null,
      dnsRecords: {
        zone: 'example.com',
        spf: { type: 'TXT', name: 'mail', fullName: 'mail.example.com', value: 'v=spf1 include:spf.house.test ~all' },
        dkim: { type: 'TXT', name: expect.stringMatching(/^pr-[a-z0-9]{6}\._domainkey\.mail$/) },
        returnPath: { type: 'CNAME', name: 'rp.mail', fullName: 'rp.mail.example.com', value: 'rp.house.test' },
        dkimEd25519: { type: 'TXT', name: expect.stringMatching(/^pr-[a-z0-9]{6}-ed\._domainkey\.mail$/) },
        dmarc: { type: 'TXT', name: '_dmarc.mail', value: 'v=DMARC1; p=none' },
        mx: { type: 'MX' },
      },
    })
    expect(domain.id).toEqual(expect.any(Number))
    for (const kind of ['spf', 'dkim', 'returnPath', 'dkimEd25519', 'dmarc', 'mx'] as const)
      expect(domain.dnsRecords[kind]).toMatchObject({ status: null, found: [], problem: null, suggestion: null })
    expect(await get(domain)).toEqual(domain)
  })

  test('takes names of other scripts as A-labels, and names of labs', async () => {
    expect((await add('Bücher.example')).name).toBe('xn--bcher-kva.example')
    expect((await add('a.b.internal')).dnsRecords.zone).toBe('b.internal')
    const longest = `${`${'a'.repeat(49)}.`.repeat(5)}abc`
    expect((await add(longest)).name).toBe(longest)
  })

  test.each([
    '',
    'localhost',
    'co.uk',
    'com',
    'a..test',
    '.test',
    'a.test.',
    'a b.test',
    'a@b.test',
    '192.0.2.1',
    '-a.test',
    'a_b.test',
    'a/b.test',
    'http://a.test',
    `${'a'.repeat(64)}.test`,
    `${`${'a'.repeat(49)}.`.repeat(5)}abcd`,
    'xn--a.test',
    'a\u202eb.test',
    '*.a.test',
  ])('refuses %j as a name', async (name) => {
    expect(await call('POST', '/domains', { name })).toMatchObject({
      status: 400,
      body: { error: { code: 'validation_error', field: 'name' } },
    })
  })

  test('refuses a name that the tenant has, and lets another tenant have it', async () => {
    const { name } = await add()
    expect(await call('POST', '/domains', { name: name.toUpperCase() })).toMatchObject({
      status: 400,
      body: { error: { code: 'domain_already_exists', field: 'name' } },
    })
    expect(await add(name, { tenantId: other })).toMatchObject({ name, tenantId: other, tenant_name: 'Other' })
  })

  test('works for the tenant that path, body or key name, and for no other', async () => {
    expect(await add(freshName(), { tenant_id: other })).toMatchObject({ tenantId: other })
    expect(await dataOf(call('POST', `/tenants/${other}/domains`, { name: freshName() }))).toMatchObject({ tenantId: other })
    expect(await dataOf(call('POST', '/domains', { name: freshName() }, otherKey))).toMatchObject({ tenantId: other })
    for (const [path, key] of [
      ['/domains', otherKey],
      [`/tenants/${other}/domains`, service.testKey],
    ] as const)
      expect(await call('POST', path, { name: freshName(), tenantId: service.tenantId }, key)).toMatchObject({
        status: 403,
        body: { error: { code: 'tenant_mismatch' } },
      })
    expect(await call('POST', '/domains', { name: freshName(), tenantId: 'nobody' })).toMatchObject({ status: 404 })
  })

  test('refuses an archived tenant', async () => {
    const archived = await service.makeTenant('Archived')
    await service.db.run(setTenantStatus, [archived, 'archived'])
    expect(await call('POST', '/domains', { name: freshName(), tenantId: archived })).toMatchObject({
      status: 403,
      body: { error: { code: 'tenant_archived' } },
    })
  })
})

describe('a domain', () => {
  test('is found by id and by uuid, in both families, by the keys that may see it', async () => {
    const domain = await add(freshName(), { tenantId: other })
    for (const path of [
      `/domains/${domain.id}`,
      `/domains/${domain.uuid}`,
      `/tenants/${other}/domains/${domain.id}`,
      `/domains/${domain.id}?tenant_id=${other}`,
    ])
      for (const key of [service.testKey, otherKey]) expect((await call('GET', path, undefined, key)).body.data).toEqual(domain)
  })

  test('of another tenant is answered as one that does not exist', async () => {
    const { id, uuid } = await add()
    const missing = await call('GET', '/domains/999999999', undefined, otherKey)
    expect(missing).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    for (const path of [`/domains/${id}`, `/domains/${uuid}`, `/tenants/${other}/domains/${id}`])
      for (const [method, below] of [
        ['GET', ''],
        ['DELETE', ''],
        ['POST', '/verify'],
      ] as const)
        expect(await call(method, path + below, undefined, otherKey)).toMatchObject({ status: 404, body: { error: missing.body.error } })
    expect(await call('GET', `/tenants/${other}/domains/${id}`)).toMatchObject({ status: 404 })
    expect(await call('GET', `/domains/${id}?tenantId=${service.tenantId}`, undefined, otherKey)).toMatchObject({ status: 403 })
  })

  test.each(['0', '-1', '1.0', '01', '1e3', 'x', '9'.repeat(30), '00000000-0000-4000-8000-000000000000', "1'--"])(
    'is not found under %j',
    async (id) => {
      expect(await call('GET', `/domains/${encodeURIComponent(id)}`)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    },
  )

  test('is listed with its tenant: all to the organisation, its own to a tenant', async () => {
    const mine = await add()
    const theirs = await add(freshName(), { tenantId: other })
    const list = async (path: string, key = service.testKey) =>
      ((await call('GET', path, undefined, key)).body.data as { domains: Record<string, unknown>[] }).domains
    const { id, name, createdAt } = theirs
    const unchecked = { recordsFound: 0, recordsRequired: 3, dnsCheckedAt: null, dmarcPolicy: null }
    const expected = { id, name, verified: false, tenant_id: other, tenant_name: 'Other', tenantId: other, createdAt, ...unchecked }
    const idsOf = (domains: Record<string, unknown>[]) => domains.map((one) => one['id'])
    expect(idsOf(await list('/domains'))).toEqual(expect.arrayContaining([mine.id, id]))
    for (const listed of [
      await list(`/tenants/${other}/domains`),
      await list(`/domains?tenantId=${other}`),
      await list('/domains', otherKey),
    ]) {
      expect(listed).toContainEqual(expected)
      expect(idsOf(listed)).not.toContain(mine.id)
    }
  })
})

describe('POST /domains/{id}/verify', () => {
  test('verifies a domain whose records are published as pasted', async () => {
    const domain = await add()
    expect(statuses(await verify(domain))).toEqual(['Missing', 'Missing', 'Missing', 'Missing'])
    publish(domain)
    const checked = await verify(domain)
    expect(statuses(checked)).toEqual(['OK', 'OK', 'OK', 'Missing'])
    expect(checked).toMatchObject({ verified: true, verifiedAt: expect.any(String), dnsCheckedAt: expect.any(String) })
    expect(checked.dnsRecords.dkimEd25519.suggestion).toContain(checked.dnsRecords.dkimEd25519.value)
    publish(domain, ['dkimEd25519'])
    const again = await verify(domain)
    expect(statuses(again)).toEqual(['OK', 'OK', 'OK', 'OK'])
    expect(again.verifiedAt).toBe(checked.verifiedAt)
    expect(await get(domain)).toEqual(again)
  })

  test('lets mail be sent within a second, and no longer once a record is gone', async () => {
    const domain = await add()
    const send = async () =>
      (await call('POST', '/emails', { from: `a@${domain.name}`, to: ['delivered@simulator.test'], subject: 's', text: 't' })).status
    expect(await send()).toBe(400)
    publish(domain)
    await verify(domain)
    clockOffsetMs += 950
    expect(await send()).toBe(200)
    dns.set(domain.dnsRecords.returnPath.fullName, 'CNAME', [])
    expect(await verify(domain)).toMatchObject({ verified: false, verifiedAt: null })
    clockOffsetMs += 950
    expect(await send()).toBe(400)
  })

  const spf = async (...texts: string[]) => {
    const domain = await add()
    dns.set(domain.name, 'TXT', texts)
    return (await verify(domain)).dnsRecords.spf
  }
  test.each([
    'v=spf1 include:spf.house.test ~all',
    'V=SPF1 a +INCLUDE:Spf.House.Test -all',
    'v=spf1 ip4:192.0.2.1 include:spf.house.test',
    'v=spf1 include:spf.house.test. ?all',
  ])('finds SPF in order: %s', async (text) => {
    expect(await spf('google-site-verification=x', text)).toMatchObject({ status: 'OK', found: [text], problem: null, suggestion: null })
  })
  test.each([
    ['Missing', 'No SPF record', ['other text']],
    ['Invalid', 'Found 2 SPF records', ['v=spf1 include:spf.house.test ~all', 'v=spf1 -all']],
    ['Invalid', 'does not contain include:spf.house.test', ['v=spf1 include:spf.house.test.evil.test ~all']],
    ['Invalid', 'does not contain include:spf.house.test', ['v=spf1 include:xspf.house.test a:spf.house.test ~all']],
    ['Invalid', 'is after "all"', ['v=spf1 -all include:spf.house.test']],
    ['Invalid', 'which rejects this mail', ['v=spf1 -include:spf.house.test ~all']],
    ['Invalid', 'more than 10 DNS lookups', [`v=spf1 include:spf.house.test ${'a mx '.repeat(5)}~all`]],
  ])('reports %s SPF: %s', async (status, problem, texts) => {
    expect(await spf(...texts)).toMatchObject({ status, problem: expect.stringContaining(problem), suggestion: expect.any(String) })
  })
  test('counts the look-ups of included records, in a loop too', async () => {
    dns.set('many.spf.test', 'TXT', [`v=spf1 ${'exists:x.test '.repeat(8)}-all`])
    dns.set('loop.spf.test', 'TXT', ['v=spf1 include:loop.spf.test -all'])
    expect(await spf('v=spf1 include:spf.house.test include:many.spf.test ~all')).toMatchObject({ status: 'OK' })
    expect(await spf('v=spf1 include:spf.house.test include:many.spf.test a ~all')).toMatchObject({ status: 'Invalid' })
    expect(await spf('v=spf1 include:spf.house.test include:loop.spf.test ~all')).toMatchObject({ status: 'Invalid' })
  })

  const dkim = async (texts: (value: string) => string[]) => {
    const domain = await add()
    const { fullName, value } = domain.dnsRecords.dkim
    dns.set(
      fullName,
      'TXT',
      texts(value).map((text) => text.match(/[\s\S]{1,255}/g) as string[]),
    )
    return (await verify(domain)).dnsRecords.dkim
  }
  test('takes a key in pieces, with blanks, and with other tags', async () => {
    expect(await dkim((value) => [value.replace(/p=(.{100})/, 'p= $1  ')])).toMatchObject({ status: 'OK', problem: null })
    expect(await dkim((value) => [value.replace('v=DKIM1; k=rsa;', 't=y;')])).toMatchObject({ status: 'OK' })
    expect(await dkim((value) => ['v=spf1 -all', value])).toMatchObject({ status: 'OK' })
  })
  test.each<[string, (value: string) => string[]]>([
    ['another key', (value) => [`${value.slice(0, -8)}IDAQABAA`]],
    ['only a part of the key', (value) => [value.slice(0, 255)]],
    ['revoked', (value) => [value.replace(/p=.*/, 'p=')]],
    ['Found 2 DKIM keys', (value) => [value, value.replace('rsa', 'ed25519')]],
    ['is for the algorithm ed25519', (value) => [value.replace('rsa', 'ed25519')]],
    ['backslashes', (value) => [value.replaceAll(';', '\\;')]],
    ['is not a DKIM key', () => ['v=spf1 -all']],
  ])('reports a DKIM record that is wrong: %s', async (problem, texts) => {
    expect(await dkim(texts)).toMatchObject({ status: 'Invalid', problem: expect.stringContaining(problem), found: expect.any(Array) })
  })

  test('takes a return path in any case, and reports one that leads elsewhere', async () => {
    const domain = await add()
    const { fullName } = domain.dnsRecords.returnPath
    dns.set(fullName, 'CNAME', ['RP.House.Test'])
    expect((await verify(domain)).dnsRecords.returnPath).toMatchObject({ status: 'OK' })
    dns.set(fullName, 'CNAME', ['xrp.house.test'])
    expect((await verify(domain)).dnsRecords.returnPath).toMatchObject({ status: 'Invalid', found: ['xrp.house.test'] })
  })

  test('keeps the status of a record that DNS does not return', async () => {
    const domain = await verified()
    const { spf: record } = domain.dnsRecords
    dns.fail(record.fullName, 'SERVFAIL', 'TXT')
    const checked = await verify(domain)
    expect(checked).toMatchObject({
      verified: true,
      dnsRecords: { spf: { status: 'OK', problem: expect.stringContaining('DNS lookup of') } },
    })
    dns.mend(record.fullName)
    const unknown = await add()
    dns.fail(unknown.dnsRecords.returnPath.fullName, 'REFUSED')
    publish(unknown)
    expect(await verify(unknown)).toMatchObject({ verified: false, dnsRecords: { spf: { status: 'OK' }, returnPath: { status: null } } })
  })

  test('answers within ten seconds when DNS does not', async () => {
    const domain = await verified()
    const timedVerify = async () => {
      const beganMs = performance.now()
      expect(statuses(await verify(domain))).toEqual(['OK', 'OK', 'OK', 'Missing'])
      return performance.now() - beganMs
    }
    const undisturbedMs = await timedVerify()
    for (const { fullName } of [domain.dnsRecords.spf, domain.dnsRecords.dkim]) dns.fail(fullName, 'silence')
    expect((await timedVerify()) - undisturbedMs).toBeLessThan(10_000)
  }, 60_000)

  test('gives advice on DMARC, also of the organisational domain, and on MX', async () => {
    const domain = await add()
    expect((await verify(domain)).dnsRecords).toMatchObject({ dmarc: { status: 'Missing' }, mx: { status: 'Missing' } })
    dns.set(`_dmarc.${domain.dnsRecords.zone}`, 'TXT', ['v=DMARC1; p=reject'])
    dns.set(domain.name, 'MX', ['10 mx.lab.test'])
    expect((await verify(domain)).dnsRecords).toMatchObject({
      dmarc: { status: 'OK', found: ['v=DMARC1; p=reject'] },
      mx: { status: 'OK', found: ['10 mx.lab.test'] },
    })
    const policy = async () => {
      const { domains } = (await call('GET', '/domains')).body.data as unknown as { domains: { id: number; dmarcPolicy: string | null }[] }
      return domains.find(({ id }) => id === domain.id)?.dmarcPolicy
    }
    expect(await policy()).toBe('reject')
    dns.set(`_dmarc.${domain.name}`, 'TXT', ['v=DMARC1; p=maybe'])
    dns.set(domain.name, 'MX', ['0 .'])
    expect((await verify(domain)).dnsRecords).toMatchObject({ dmarc: { status: 'Invalid' }, mx: { status: 'Invalid' } })
    expect(await policy()).toBeNull()
  })

  test('keeps the DNS records of strangers bounded and harmless', async () => {
    const domain = await add()
    dns.set(
      domain.dnsRecords.dkim.fullName,
      'TXT',
      Array.from({ length: 20 }, (_, n) => [`p=${n}\0\u0007`, ...Array.from({ length: 8 }, () => 'x'.repeat(250))]),
    )
    const { found } = (await verify(domain)).dnsRecords.dkim
    expect(found).toHaveLength(5)
    for (const one of found) expect(one).toMatch(/^p=\d+\ufffd\ufffdx{100,600}$/)
  })

  test('never takes a trusted domain or simulator.test out of use', async () => {
    const name = freshName()
    await service.addDomain(service.tenantId, name)
    const { domains } = (await call('GET', '/domains')).body.data as unknown as { domains: Domain[] }
    for (const wanted of [name, 'simulator.test']) {
      const domain = domains.find((one) => one.name === wanted) as Domain
      expect(await verify(domain)).toMatchObject({
        verified: true,
        verifiedAt: domain.createdAt,
        dnsRecords: { spf: { status: 'Missing' } },
      })
    }
  })
})

describe('the background check', () => {
  const at = () => new Date()
  const standingOf = async ({ uuid }: Domain) =>
    (await service.db.first(standing, [uuid])) as { next: Date | null; failures: number; checked: Date | null }
  /** Makes a domain due and waits for its check. */
  async function checkedOnce(domain: Domain): Promise<Domain> {
    const before = (await standingOf(domain)).checked
    await service.db.run(makeDue, [domain.uuid, at()])
    wake()
    await expect
      .poll(async () => (await standingOf(domain)).checked?.getTime(), { timeout: 10_000, interval: 50 })
      .not.toBe(before?.getTime())
    return get(domain)
  }
  const errors = ({ uuid }: Domain) => service.db.rows(errorsOf, [uuid])
  const minutesToNext = async (domain: Domain) => {
    const { next } = await standingOf(domain)
    return next && Math.round((next.getTime() - at().getTime()) / 60_000)
  }

  test('finds a domain that was never checked by hand, and comes back: every 10 minutes, once verified hourly', async () => {
    const domain = await add()
    expect(await minutesToNext(domain)).toBe(10)
    expect(await checkedOnce(domain)).toMatchObject({ verified: false })
    expect(await minutesToNext(domain)).toBe(10)
    publish(domain)
    expect(await checkedOnce(domain)).toMatchObject({ verified: true })
    expect(await minutesToNext(domain)).toBe(60)
    expect(await errors(domain)).toEqual([])
  })

  test('gives up on a domain that is still unverified after seven days', async () => {
    const domain = await add()
    await service.db.run(makeOld, [domain.uuid, at()])
    wake()
    await expect.poll(async () => (await standingOf(domain)).next, { timeout: 10_000, interval: 50 }).toBeNull()
  })

  test('reports the first failure and takes verified away at the third in a row', async () => {
    const domain = await verified()
    dns.set(domain.dnsRecords.dkim.fullName, 'TXT', [])
    expect(await checkedOnce(domain)).toMatchObject({ verified: true, dnsRecords: { dkim: { status: 'Missing' } } })
    const [error, ...more] = await errors(domain)
    expect(more).toEqual([])
    expect(error).toEqual({
      emailId: null,
      data: {
        domain: domain.name,
        uuid: domain.uuid,
        dns_checked_at: expect.any(Number),
        spf_status: 'OK',
        spf_error: null,
        dkim_status: 'Missing',
        dkim_error: expect.stringContaining('No TXT record'),
        mx_status: null,
        mx_error: null,
        return_path_status: 'OK',
        return_path_error: null,
        server: { uuid: service.tenantId, name: 'Default', permalink: service.tenantId, organization: 'default' },
      },
    })
    expect(await checkedOnce(domain)).toMatchObject({ verified: true })
    expect(await checkedOnce(domain)).toMatchObject({ verified: false, verifiedAt: null })
    expect(await errors(domain)).toHaveLength(1)
  })

  test('begins to count anew after a success, and does not count a record that DNS does not return', async () => {
    const domain = await verified()
    const { fullName } = domain.dnsRecords.spf
    const failures = async () => (await standingOf(domain)).failures
    dns.set(fullName, 'TXT', [])
    await checkedOnce(domain)
    expect(await failures()).toBe(1)
    dns.fail(fullName, 'SERVFAIL', 'TXT')
    await checkedOnce(domain)
    expect(await failures()).toBe(1)
    dns.mend(fullName)
    publish(domain)
    await checkedOnce(domain)
    expect(await failures()).toBe(0)
    dns.set(fullName, 'TXT', [])
    await checkedOnce(domain)
    expect(await errors(domain)).toHaveLength(2)
  })

  test('keeps a trusted domain verified, with any result, and sends no event', async () => {
    const name = freshName()
    await service.addDomain(service.tenantId, name)
    const { domains } = (await call('GET', '/domains')).body.data as unknown as { domains: Domain[] }
    const domain = await get(domains.find((one) => one.name === name) as Domain)
    for (let time = 0; time < 3; time++) expect(await checkedOnce(domain)).toMatchObject({ verified: true })
    expect(await errors(domain)).toEqual([])
  })
})

describe('DELETE /domains/{id}', () => {
  test('takes the domain away, and its queued emails fail', async () => {
    const domain = await verified()
    const email = { from: `a@${domain.name}`, to: ['softfail@simulator.test'], subject: 's', text: 't' }
    const sent = await call('POST', '/emails', email)
    const { id } = sent.body.data as { id: string }
    const statusOf = async () => ((await call('GET', `/emails/${id}`)).body.data as { status: string }).status
    await expect.poll(statusOf, { timeout: 10_000, interval: 50 }).toBe('softfail')
    const answer = await call('DELETE', `/domains/${domain.uuid}`)
    expect(answer).toMatchObject({ status: 200, body: { data: { message: expect.any(String) } } })
    for (const [method, below] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/verify'],
    ] as const)
      expect(await call(method, `/domains/${domain.id}${below}`)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    await expect.poll(statusOf, { timeout: 15_000, interval: 50 }).toBe('hardfail')
    expect((await add(domain.name)).id).not.toBe(domain.id)
  }, 30_000)
})

test('all domains of a tenant go at once, and no others', async () => {
  const gone = await service.makeTenant('Gone')
  const mine = await add()
  const theirs = await add(freshName(), { tenantId: gone })
  await service.db.transaction((tx) => removeDomainsOfTenant(tx, gone))
  expect(await call('GET', `/domains/${theirs.id}`)).toMatchObject({ status: 404 })
  expect(await call('GET', `/domains/${mine.id}`)).toMatchObject({ status: 200 })
})
