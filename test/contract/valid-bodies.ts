/** One body with every field for each endpoint that takes one: accepted by the endpoint at its path. */
import { sql } from '#db'
import type { Service } from '../support/in-process-service.ts'

interface Good {
  /** `n` differs on every call, for values that must be unique. */
  body: (n: number) => Record<string, unknown>
  /** Below /v1. Without it, the endpoint's own path. */
  path?: (service: Service) => Promise<string>
  /** Every field may be left out. */
  mayBeEmpty?: true
  /** Addresses are validated one by one and only counted in the response. */
  countsAddresses?: true
  /** Keys of its metadata may be any text. */
  anyKeys?: true
}

export const attachment = { content: 'aGVsbG8=', contentType: 'text/plain', filename: 'a.txt', contentId: 'one@x' }
const raw = Buffer.from('From: a@simulator.test\r\nTo: b@simulator.test\r\n\r\nx').toString('base64')
const element = {
  to: ['b@simulator.test'],
  subject: 'Hello',
  cc: ['c@simulator.test'],
  bcc: ['d@simulator.test'],
  replyTo: 'e@simulator.test',
  html: '<p>hello</p>',
  text: 'hello',
  tag: 'greeting',
  headers: { 'X-One': '1' },
  attachments: [attachment],
  metadata: { order: '1' },
}
const webhook = { name: 'One', url: 'https://hooks.example.com/x', events: ['MessageSent'], enabled: true, timeoutSeconds: 5 }

/** Creates an object once and returns its path. */
const made = (collection: string, body: () => Record<string, unknown>, below = '') => {
  let known: Promise<string> | undefined
  return (service: Service) => {
    known ??= service.call('POST', collection, { key: service.testKey, body: body() }).then((answer) => {
      if (!(answer.body as { success?: boolean }).success) throw new Error(`POST ${collection} was answered ${answer.text}`)
      return `${collection}/${(answer.body.data as { id: string | number }).id}${below}`
    })
    return known
  }
}
let templates = 0
const template = (below = '') => made('/templates', () => ({ name: `made${++templates}`, subject: 'Hello', text: 'Hello.' }), below)

/** The id of a sending domain; `prepare` creates the domain. */
let domainId = 0
const idByName = sql<{ id: number }>`
  select id
  from domains
  where name = $1`

export async function prepare(service: Service): Promise<void> {
  await service.addDomain(service.tenantId, 'tracked.bodies.test')
  domainId = (await service.db.first(idByName, ['tracked.bodies.test']))?.id ?? 0
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)

const relay = { tls: 'required', username: 'user', password: 'pass', connections: 3, rate: 0.5, failover: true, fallback: null }

/** The name of a transport, which is made once. */
async function relayOf(service: Service, name: string): Promise<string> {
  const body = { name, host: 'smtp.relay.test', ...relay }
  await service.call('POST', '/transports', { key: service.testKey, body })
  return name
}

export const goodBodies: Readonly<Record<string, Good>> = {
  'emails.send': { body: () => ({ from: 'a@simulator.test', ...element }) },
  'emails.sendBatch': { body: () => ({ from: 'a@simulator.test', emails: [element] }) },
  'emails.reschedule': {
    body: () => ({ scheduledAt: inDays(2).toISOString() }),
    path: made('/emails', () => ({ from: 'a@simulator.test', ...element, scheduledAt: inDays(1).toISOString() })),
  },
  'emails.check': { body: () => ({ from: 'a@simulator.test', ...element }) },
  'emails.sendRaw': { body: () => ({ from: 'a@simulator.test', to: ['b@simulator.test'], rawMessage: raw, bounce: false }) },
  'tenants.create': { body: () => ({ name: 'One', metadata: { plan: 'a', seats: 3, paid: true, since: null } }), anyKeys: true },
  'tenants.update': {
    body: () => ({ name: 'Two', metadata: { plan: 'b' }, status: 'active' }),
    path: made('/tenants', () => ({ name: 'One' })),
    anyKeys: true,
  },
  'tenants.updatePrivacy': {
    body: () => ({ contentDays: 7, hashAddressesAfterDays: 60, recordDays: 30, contentVisibleTo: 'admins' }),
    path: made('/tenants', () => ({ name: 'One' }), '/privacy'),
  },
  'credentials.create': { body: () => ({ name: 'one', type: 'api', mode: 'live', permissions: ['emails:send'] }) },
  'credentials.update': {
    body: () => ({ name: 'two', hold: true, permissions: ['emails:read'] }),
    path: made('/credentials', () => ({ name: 'one', type: 'api' })),
  },
  'domains.create': { body: (n) => ({ name: `d${n}.bodies.test` }) },
  'tracking.create': {
    body: (n) => ({ domainId, name: `t${n}`, sslEnabled: true, trackClicks: true, trackOpens: false, excludedClickDomains: 'a.example' }),
  },
  'tracking.update': {
    body: () => ({ trackClicks: true, trackOpens: false, sslEnabled: true, excludedClickDomains: 'a.example' }),
    path: made('/tracking', () => ({ domainId, name: 'u' })),
    mayBeEmpty: true,
  },
  'routes.create': { body: (n) => ({ address: `r${n}@tracked.bodies.test`, forwardTo: 'b@simulator.test', enabled: true }) },
  'routes.update': {
    body: () => ({ forwardTo: 'b@simulator.test', enabled: true }),
    path: made('/routes', () => ({ address: 'changed@tracked.bodies.test' })),
    mayBeEmpty: true,
  },
  'templates.create': {
    body: (n) => ({
      name: `t${n}`,
      subject: 'Hello',
      html: '<p>{{ name }}</p>',
      text: null,
      variables: { name: { type: 'string', default: 'you' } },
    }),
    anyKeys: true,
  },
  'templates.update': {
    body: (n) => ({
      name: `u${n}`,
      subject: 'Hello',
      html: '<p>{{ name }}</p>',
      text: 'x',
      variables: { name: { type: 'string', default: 'you' } },
    }),
    path: template(),
    mayBeEmpty: true,
    anyKeys: true,
  },
  'templates.preview': { body: () => ({ variables: { name: 'Ann' } }), path: template('/preview'), mayBeEmpty: true, anyKeys: true },
  'templates.test': {
    body: () => ({ from: 'a@simulator.test', to: ['b@simulator.test'], variables: { name: 'Ann' } }),
    path: template('/test'),
    anyKeys: true,
  },
  'test.advance': {
    body: () => ({ seconds: 1 }),
    // A tenant without mail: no due work holds the call up.
    path: async (service) => `/test/advance?tenantId=${await service.makeTenant('Clock')}`,
  },
  'suppressions.create': { body: () => ({ address: 'a@example.com', reason: 'asked' }) },
  'suppressions.bulkCreate': { body: () => ({ suppressions: [{ address: 'a@example.com', reason: 'asked' }] }), countsAddresses: true },
  'suppressions.import': {
    body: () => ({
      suppressions: [{ address: 'a@example.com', reason: 'bounce', createdAt: '2026-03-01T09:30:00Z', source: 'automatic' }],
      dryRun: true,
    }),
    countsAddresses: true,
  },
  'webhooks.create': { body: () => ({ ...webhook, allEvents: false }) },
  'webhooks.update': {
    body: () => ({ ...webhook, allEvents: false, rotateSecret: true }),
    path: made('/webhooks', () => webhook),
    mayBeEmpty: true,
  },
  'webhooks.test': { body: () => ({ event: 'MessageSent' }), path: made('/webhooks', () => webhook, '/test') },
  'webhooks.replay': { body: () => ({ after: 1, before: 2 }), path: made('/webhooks', () => webhook, '/replay') },
  'transports.create': {
    body: (n) => ({ name: `t${n}`, host: 'smtp.relay.test', port: 2525, ...relay }),
  },
  'transports.update': {
    body: () => ({ host: 'smtp.relay.test', port: 587, ...relay }),
    path: async (service) => `/transports/${await relayOf(service, 'changed')}`,
    mayBeEmpty: true,
  },
  'transports.share': {
    body: (n) => ({ percent: n % 100, domain: 'shop.example', tag: 'order' }),
    path: async (service) => `/transports/${await relayOf(service, 'shared')}/share`,
  },
  'platformWebhooks.create': { body: () => webhook },
  'platformWebhooks.update': {
    body: () => ({ ...webhook, rotateSecret: true }),
    path: made('/platform/webhooks', () => webhook),
    mayBeEmpty: true,
  },
  'platformWebhooks.test': { body: () => ({ event: 'MessageSent' }), path: made('/platform/webhooks', () => webhook, '/test') },
}
