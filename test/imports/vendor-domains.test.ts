/** Sending domains by the APIs of other services, from a local server with answers in their documented forms. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import ipaddr from 'ipaddr.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Network, openIds, openSecrets, systemClock, systemRandom } from '#base'
import { listDomains } from '#domains'
import { openGuard, openPost, openResolver } from '#net'
import { addTenant } from '#tenants'
import { importDomains, listVendorDomains } from '../../src/imports/vendor-domains.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'

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
