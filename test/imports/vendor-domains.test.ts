/** Sending domains by the APIs of other services, from a local server with answers in their documented forms. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import ipaddr from 'ipaddr.js'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Network, openIds, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { listDomains } from '#domains'
import { openGuard, openPost, openResolver } from '#net'
import { addTenant } from '#tenants'
import { awsHeaders } from '../../src/imports/aws-request.ts'
import { importDomains, listSesDomains, listVendorDomains } from '../../src/imports/vendor-domains.ts'
import { canonicalHeaders, isSignedWith, readSignature } from '../../src/ses/signature.ts'
import { awsHeaders as signedByTests } from '../support/aws-signature.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { runHere } from '../support/run-command.ts'

const key = 'the-key'
const names = Array.from({ length: 150 }, (_, index) => `d${index}.example`)
const from = (start: number, count: number) => names.slice(start, start + count)
const basic = `Basic ${Buffer.from(`api:${key}`).toString('base64')}`

/** The path, the header of the key, and the answer for a page. */
const answers: Record<string, (request: IncomingMessage, query: URLSearchParams) => unknown> = {
  '/domains': ({ headers }, query) => {
    if (headers['x-postmark-account-token'] === key)
      return { TotalCount: 150, Domains: from(Number(query.get('offset')), Number(query.get('count'))).map((Name, ID) => ({ Name, ID })) }
    if (headers.authorization !== `Bearer ${key}`) return undefined
    const start = query.has('after') ? names.indexOf(String(query.get('after')).slice(3)) + 1 : 0
    const data = from(start, Number(query.get('limit'))).map((name) => ({
      id: `id-${name}`,
      name,
      status: 'verified',
      region: 'us-east-1',
    }))
    return { object: 'list', has_more: start + data.length < 150, data }
  },
  '/v3/whitelabel/domains': ({ headers }, query) =>
    headers.authorization === `Bearer ${key}`
      ? from(Number(query.get('offset')), Number(query.get('limit'))).map((domain, id) => ({ id, domain, subdomain: 'em', valid: true }))
      : undefined,
  '/v4/domains': ({ headers }, query) =>
    headers.authorization === basic
      ? { total_count: 150, items: from(Number(query.get('skip')), Number(query.get('limit'))).map((name) => ({ name, state: 'active' })) }
      : undefined,
}

const awsKey = { accessKeyId: 'AKIAEXAMPLE', secret: 'the/secret+of=SES', sessionToken: undefined }

/** Two pages, with an address among the domains. */
answers['/v2/email/identities'] = (request, query) => {
  const headers = canonicalHeaders(request.rawHeaders)
  const signature = readSignature({ headers, url: request.url ?? '' }, systemClock.nowMs())
  const signed = { method: 'GET', url: request.url ?? '', headers, hosts: [request.headers.host ?? ''] }
  const isRight = isSignedWith(awsKey.secret, signature, signed, createHash('sha256').digest('hex'))
  if (!isRight || signature.accessKeyId !== awsKey.accessKeyId || signature.region !== 'eu-central-1') return undefined
  const token = query.get('NextToken')
  const [start, count] = token === null ? [0, 100] : token === 'page two/+=' ? [100, 50] : [0, 0]
  const domains = from(start, count).map((IdentityName) => ({ IdentityType: 'DOMAIN', IdentityName, SendingEnabled: true }))
  const address = { IdentityType: 'EMAIL_ADDRESS', IdentityName: 'ann@d1.example', SendingEnabled: true }
  return { EmailIdentities: [...domains, address], ...(token === null ? { NextToken: 'page two/+=' } : {}) }
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
  const answer = answers[pathname]?.(request, searchParams)
  response.writeHead(answer === undefined ? 401 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(answer ?? { message: 'unauthorized' }))
})
let apiUrl: string
let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  server.close()
  await database.close()
})

const ids = openIds(systemRandom)
function getFor(networks: readonly Network[]) {
  const resolver = openResolver({ servers: ['127.0.0.1:9'], clock: systemClock, ids })
  return openPost({ resolver, guard: openGuard(networks), openedNetworks: networks, clock: systemClock }).get
}

test.each(['resend', 'sendgrid', 'mailgun', 'postmark'] as const)(
  'all pages of %s are read, and a wrong key is refused',
  async (vendor) => {
    const get = getFor([ipaddr.parseCIDR('127.0.0.0/8')])
    expect(await listVendorDomains({ vendor, key, apiUrl }, get)).toEqual(names)
    await expect(listVendorDomains({ vendor, key: 'wrong', apiUrl }, get)).rejects.toThrow(`${vendor} does not accept the key (401)`)
  },
)

/** Lists domains of Resend, with this answer for the page after `after`. */
async function listOfResend(page: (after: string | null) => unknown): Promise<string[]> {
  const answer = answers['/domains']
  answers['/domains'] = (_request, query) => page(query.get('after'))
  onTestFinished(() => {
    if (answer) answers['/domains'] = answer
  })
  return listVendorDomains({ vendor: 'resend', key, apiUrl }, getFor([ipaddr.parseCIDR('127.0.0.0/8')]))
}

test('a short page is not the last while the service has more', async () => {
  const pages = names.slice(0, 5)
  const listed = await listOfResend((after) => {
    const nth = after === null ? 0 : pages.indexOf(after) + 1
    return { object: 'list', has_more: nth < pages.length - 1, data: [{ id: pages[nth], name: pages[nth] }] }
  })
  expect(listed).toEqual(pages)
})

test('a list without an end is refused', async () => {
  const endless = listOfResend((after) => ({ has_more: true, data: [{ id: `${Number(after) + 1}`, name: 'one.example' }] }))
  await expect(endless).rejects.toThrow('resend has more than 100 pages of domains')
})

test("Mailgun's sandbox domains are left out", async () => {
  const items = [
    { name: 'sandbox0123abcd.mailgun.org', type: 'sandbox' },
    { name: 'Sandbox99.mailgun.org' },
    { name: 'sandbox.example', type: 'custom' },
    { name: 'mg.one.example', type: 'custom' },
  ]
  const answer = answers['/v4/domains']
  answers['/v4/domains'] = () => ({ total_count: items.length, items })
  const get = getFor([ipaddr.parseCIDR('127.0.0.0/8')])
  const listed = listVendorDomains({ vendor: 'mailgun', key, apiUrl }, get).finally(() => {
    if (answer) answers['/v4/domains'] = answer
  })
  expect(await listed).toEqual(['sandbox.example', 'mg.one.example'])
})

test('all pages of SES are read without single addresses, and a wrong secret is refused', async () => {
  const get = getFor([ipaddr.parseCIDR('127.0.0.0/8')])
  const account = { key: awsKey, region: 'eu-central-1', apiUrl }
  expect(await listSesDomains(account, get, systemClock)).toEqual(names)
  const wrong = listSesDomains({ ...account, key: { ...awsKey, secret: 'wrong' } }, get, systemClock)
  await expect(wrong).rejects.toThrow('ses does not accept the key (401)')
})

test('a temporary key of AWS signs its token too', () => {
  const url = 'https://email.eu-central-1.amazonaws.com/v2/email/identities?NextToken=a%2Fb&PageSize=1000'
  const at = Date.UTC(2026, 10, 25)
  const sent = awsHeaders({ ...awsKey, sessionToken: 'a+token==' }, url, { region: 'eu-central-1', service: 'ses', nowMs: at })
  const by = { accessKeyId: awsKey.accessKeyId, key: awsKey.secret }
  expect(sent).toEqual(signedByTests(by, { method: 'GET', url, at, headers: { 'x-amz-security-token': 'a+token==' } }))
})

test('an address of the own network is not asked', async () => {
  await expect(listVendorDomains({ vendor: 'resend', key, apiUrl }, getFor([]))).rejects.toThrow('resend cannot be reached')
})

test('an answer of another form is refused', async () => {
  const get = async () => ({ statusCode: 200, contentType: null, body: '{"data":7}', isWhole: true, error: null })
  await expect(listVendorDomains({ vendor: 'resend', key, apiUrl }, get)).rejects.toThrow('without a list of domains')
})

test('domains are added once, and odd names are reported', async () => {
  const { db } = database
  const secrets = openSecrets('a secret of the test that is long enough', systemRandom)
  const deps = { db, clock: systemClock, ids, secrets }
  const { id: tenantId } = await db.transaction((tx) => addTenant(tx, { name: 'Shop', metadata: {} }, { nowMs: systemClock.nowMs(), ids }))
  const given = ['News.Example', 'shop.example', 'not a domain']
  const dry = await importDomains(given, tenantId, true, deps)
  expect(dry).toEqual({
    found: 3,
    added: ['news.example', 'shop.example'],
    existing: 0,
    failed: [{ name: 'not a domain', problem: 'is not a domain' }],
  })
  expect(await listDomains(db, tenantId)).toEqual([])
  expect((await importDomains(given, tenantId, false, deps)).added).toEqual(dry.added)
  expect(await importDomains(given, tenantId, false, deps)).toMatchObject({ added: [], existing: 2 })
  expect((await listDomains(db, tenantId)).map(({ name }) => name).sort()).toEqual(['news.example', 'shop.example'])
})

test('the command takes the key of SES from the environment of AWS, and needs a region', async () => {
  const config = readConfig({ POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_DNS: '127.0.0.1:9' })
  const secrets = openSecrets('a secret of the test that is long enough', systemRandom)
  const { db } = database
  const { id: tenantId } = await db.transaction((tx) => addTenant(tx, { name: 'Ses', metadata: {} }, { nowMs: systemClock.nowMs(), ids }))
  const printed: string[] = []
  const run = (...words: string[]) =>
    runHere(['import', 'domains', '--from', 'ses', '--api', apiUrl, '--tenant', tenantId, '--dry-run', ...words], {
      environment: { AWS_ACCESS_KEY_ID: awsKey.accessKeyId, AWS_SECRET_ACCESS_KEY: awsKey.secret },
      withInstallation: (work) => work({ config, db, clock: systemClock, ids, random: systemRandom, secrets, version: 'test' }),
      print: (text) => printed.push(text),
    })
  expect(await run()).toBe(2)
  expect(await run('--region', 'eu-central-1')).toBe(0)
  expect(printed).toEqual([expect.stringContaining('150 domains at ses: 150 missing, 0 here already')])
})
