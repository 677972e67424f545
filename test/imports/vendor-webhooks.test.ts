/** Webhooks by the APIs of other services, from a local server with answers in their documented forms. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import ipaddr from 'ipaddr.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIds, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { importWebhooks, listWebhooksAt } from '#imports'
import { openGuard, openPost, openResolver } from '#net'
import { addTenant, openTenants } from '#tenants'
import { openWebhooks, sendgridPublicKey } from '#webhooks'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { runHere } from '../support/run-command.ts'
import { neverTwice } from '../support/test-clock.ts'

const key = 'the-key'
const commandKey = 'the-key-of-the-command'
const basic = `Basic ${Buffer.from(`api:${key}`).toString('base64')}`
const of = ({ headers }: IncomingMessage, scheme: string, answer: unknown) => (headers.authorization === scheme ? answer : undefined)
const trigger = (Enabled: boolean) => ({ Enabled })

const resendHooks = Array.from({ length: 101 }, (_, nth) => ({
  id: `4dd369bc-aa82-4ff3-97de-5100000${100 + nth}`,
  created_at: '2026-01-01T00:00:00.000Z',
  status: nth === 1 ? 'disabled' : 'enabled',
  endpoint: `https://a.example/hook/${nth}`,
  events: nth === 0 ? ['email.sent', 'email.delivered', 'email.bounced', 'email.complained'] : ['email.opened'],
}))

/** undefined: 401. */
const answers: Record<string, (request: IncomingMessage, query: URLSearchParams) => unknown> = {
  '/webhooks': (request, query) => {
    const token = request.headers['x-postmark-server-token']
    if (token === key) return { Webhooks: postmarkHooks }
    if (token === commandKey) return { Webhooks: [{ ID: 1, Url: 'http://127.0.0.1/command', Triggers: { Bounce: trigger(true) } }] }
    const start = query.has('after') ? resendHooks.findIndex(({ id }) => id === query.get('after')) + 1 : 0
    const data = resendHooks.slice(start, start + Number(query.get('limit')))
    return of(request, `Bearer ${key}`, { object: 'list', has_more: start + data.length < resendHooks.length, data })
  },
  '/v3/user/webhooks/event/settings/all': (request) => of(request, `Bearer ${key}`, { max_allowed: 5, webhooks: sendgridHooks }),
  '/v1/webhooks': (request) =>
    of(request, basic, {
      webhooks: [{ webhook_id: 'w1', description: 'All', url: 'https://a.example/all', event_types: ['delivered', 'accepted'] }],
    }),
  '/v4/domains': (request) =>
    of(request, basic, { total_count: 2, items: ['one.example', 'two.example'].map((name) => ({ name, state: 'active' })) }),
  '/v3/domains/one.example/webhooks': (request) =>
    of(request, basic, {
      webhooks: {
        permanent_fail: { urls: ['https://a.example/fail', 'https://a.example/all'] },
        temporary_fail: null,
        clicked: { url: 'https://a.example/fail' },
      },
    }),
}

const sendgridHooks = [
  {
    enabled: true,
    url: 'https://a.example/events',
    account_status_change: false,
    group_resubscribe: true,
    group_unsubscribe: false,
    delivered: true,
    spam_report: true,
    bounce: true,
    unsubscribe: false,
    processed: true,
    open: false,
    click: false,
    dropped: false,
    deferred: false,
    friendly_name: 'The shop',
    id: 'c0ffee',
    oauth_client_id: 'client',
    oauth_token_url: 'https://a.example/token',
    public_key: '',
  },
  { enabled: false, url: 'https://b.example/events', delivered: true, friendly_name: '', id: 'decaf' },
  { enabled: true, url: '', delivered: true, id: 'unused' },
]

const postmarkHooks = [
  {
    ID: 1234567,
    Url: 'https://a.example/postmark',
    MessageStream: 'broadcast',
    HttpAuth: { Username: 'user', Password: 'pass' },
    HttpHeaders: [{ Name: 'X-A', Value: 'b' }],
    Triggers: {
      Open: { Enabled: true, PostFirstOpenOnly: false },
      Click: trigger(false),
      Delivery: trigger(true),
      Bounce: { Enabled: true, IncludeContent: false },
      SpamComplaint: { Enabled: false, IncludeContent: false },
      SubscriptionChange: trigger(true),
    },
  },
]

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
  const found = answers[pathname]
  const answer = found?.(request, searchParams)
  response.writeHead(found === undefined ? 404 : answer === undefined ? 401 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(answer ?? { message: 'no' }))
})

const ids = openIds(systemRandom)
const networks = [ipaddr.parseCIDR('127.0.0.0/8')]
const resolver = openResolver({ servers: ['127.0.0.1:9'], clock: systemClock, ids })
const post = openPost({ resolver, guard: openGuard(networks), openedNetworks: networks, clock: systemClock })

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

const secrets = openSecrets('a secret of the test that is long enough', systemRandom)
const newTenant = async () => {
  const nowMs = systemClock.nowMs()
  return (await database.db.transaction((tx) => addTenant(tx, { name: 'Shop', metadata: {} }, { nowMs, ids }))).id
}

type Vendor = Parameters<typeof listWebhooksAt>[0]['vendor']
const listOf = (vendor: Vendor, given = key) => listWebhooksAt({ vendor, key: given, apiUrl }, post.get)
const on = { enabled: true, notes: [] }

describe('the webhooks of', () => {
  test('Resend come with all pages, and disabled ones as such', async () => {
    const found = await listOf('resend')
    expect(found).toHaveLength(101)
    expect(found.slice(0, 2)).toEqual([
      {
        url: 'https://a.example/hook/0',
        enabled: true,
        events: ['MessageSent', 'MessageDeliveryFailed', 'MessageBounced', 'ComplaintReceived'],
        notes: ['without email.sent, which Postrider does not have'],
      },
      { url: 'https://a.example/hook/1', enabled: false, events: ['MessageLoaded'], notes: [] },
    ])
  })

  test('SendGrid come by their settings', async () => {
    expect(await listOf('sendgrid')).toEqual([
      {
        url: 'https://a.example/events',
        name: 'The shop',
        enabled: true,
        events: ['MessageSent', 'MessageDeliveryFailed', 'MessageBounced', 'ComplaintReceived'],
        notes: ['without processed, group_resubscribe, which Postrider does not have', 'the receiver gets no OAuth token'],
      },
      { url: 'https://b.example/events', enabled: false, events: ['MessageSent'], notes: [] },
    ])
  })

  test('Mailgun are one for each URL of the account and its domains', async () => {
    expect(await listOf('mailgun')).toEqual([
      {
        url: 'https://a.example/all',
        name: 'All',
        enabled: true,
        events: ['MessageSent', 'MessageDeliveryFailed', 'MessageBounced', 'MessageHeld'],
        notes: ['without accepted, which Postrider does not have'],
      },
      { url: 'https://a.example/fail', ...on, events: ['MessageDeliveryFailed', 'MessageBounced', 'MessageLinkClicked', 'MessageHeld'] },
    ])
  })

  test('Postmark come by their triggers', async () => {
    expect(await listOf('postmark')).toEqual([
      {
        url: 'https://a.example/postmark',
        enabled: true,
        events: ['MessageSent', 'MessageDeliveryFailed', 'MessageBounced', 'MessageLoaded', 'SuppressionAdded', 'SuppressionRemoved'],
        notes: [
          'the receiver gets no user name and password: it verifies the signature',
          'the receiver gets no headers of its own',
          'it gets the events of all streams',
        ],
      },
    ])
  })

  test.each(['resend', 'sendgrid', 'mailgun', 'postmark'] as const)('%s are not read with a wrong key', async (vendor) => {
    await expect(listOf(vendor, 'wrong')).rejects.toThrow(`${vendor} does not accept the key (401)`)
  })
})

test('an answer of another form is refused', async () => {
  const get = async () => ({ statusCode: 200, contentType: null, body: '{"webhooks":7}', isWhole: true, error: null })
  await expect(listWebhooksAt({ vendor: 'sendgrid', key, apiUrl }, get)).rejects.toThrow('without a list of webhooks')
})

test('webhooks are added once in the form of the service, each with a secret; bad ones are reported', async () => {
  const { db } = database
  const tenantId = await newTenant()
  const config = { webhookSignatureHeader: 'X-Webhook-Signature' }
  const tenants = openTenants({ db, clock: systemClock })
  const webhooks = openWebhooks({ db, clock: neverTwice(), ids, random: systemRandom, secrets, tenants, post, config, version: '0' })
  const given = [
    { url: 'http://127.0.0.1/hook', name: undefined, ...on, events: ['MessageSent' as const, 'ComplaintReceived' as const] },
    { url: 'http://127.0.0.1/off', name: 'Off', enabled: false, notes: [], events: ['MessageSent' as const] },
    { url: 'https://10.0.0.1/private', name: undefined, ...on, events: ['MessageSent' as const] },
    { url: 'http://127.0.0.1/none', name: undefined, ...on, events: [] },
  ]
  const run = (dryRun: boolean) =>
    importWebhooks(given, { tenantId, vendor: 'sendgrid', dryRun }, { webhooks, look: (url) => post.look(url) })
  const failures = [
    { state: 'failed', problem: '10.0.0.1 resolves to a blocked network' },
    { state: 'failed', problem: 'has no event that Postrider has' },
  ]
  expect(await run(true)).toMatchObject({ found: 4, webhooks: [{ state: 'missing' }, { state: 'missing' }, ...failures] })
  expect(await webhooks.list(tenantId)).toEqual([])
  const { webhooks: lines } = await run(false)
  expect(lines).toMatchObject([{ state: 'added' }, { state: 'added', enabled: false }, ...failures])
  const [first, second] = await webhooks.list(tenantId)
  expect(first).toMatchObject({ format: 'sendgrid', name: '127.0.0.1', enabled: true, allEvents: false, events: given[0]?.events })
  expect(second).toMatchObject({ format: 'sendgrid', name: 'Off', enabled: false })
  const { secret } = await webhooks.get(first?.uuid ?? '', tenantId, { reveal: true })
  expect(lines[0]).toMatchObject({ id: first?.uuid, secret, publicKey: sendgridPublicKey(secret ?? '') })
  expect(await run(false)).toMatchObject({ webhooks: [{ state: 'existing' }, { state: 'existing' }, ...failures] })
  expect(await webhooks.list(tenantId)).toHaveLength(2)
})

test('the command compares first, then adds and prints each secret once', async () => {
  const { db } = database
  const tenantId = await newTenant()
  const config = readConfig({ POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_DNS: '127.0.0.1:9' })
  const printed: string[] = []
  const run = (...words: string[]) =>
    runHere(['import', 'webhooks', '--from', 'postmark', '--api', apiUrl, '--tenant', tenantId, ...words], {
      environment: { VENDOR_KEY: commandKey },
      withInstallation: (work) => work({ config, db, clock: systemClock, ids, random: systemRandom, secrets, version: 'test' }),
      print: (text) => printed.push(text),
    })
  for (const words of [['--dry-run'], ['--json'], []]) expect(await run(...words)).toBe(0)
  const [dry = '', added = '', again = ''] = printed
  expect(dry).toContain('1 webhook at postmark: 1 missing, 0 here already\n  missing  http://127.0.0.1/command')
  expect(dry).not.toContain('whsec_')
  expect(JSON.parse(added)).toMatchObject({ tenantId, webhooks: [{ state: 'added', secret: expect.stringMatching(/^whsec_/) }] })
  expect(again).toContain('0 added, 1 here already')
  expect(again).not.toContain('whsec_')
})
