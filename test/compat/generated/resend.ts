/** Generated requests of Resend's API, also with idempotency keys that other requests have used. */
import fc from 'fast-check'
import {
  anythingOf,
  encoded,
  endpointOf,
  fieldsOf,
  type GeneratedVendor,
  html,
  isText,
  jsonRequest,
  objectIn,
  sender,
  textsWith,
} from './generated-vendor.ts'

const texts = textsWith()
const anything = anythingOf(texts)
const field = fieldsOf(anything)

const email = fc.record(
  {
    from: field(sender),
    to: field('ann@one.example', ['ann@one.example', 'Bob <bob@one.example>']),
    cc: field(['bob@one.example']),
    bcc: field(undefined),
    subject: field('Hello'),
    html: field(html),
    text: field(undefined),
    reply_to: field('help@shop.test'),
    headers: field({ 'X-A': 'b' }),
    tags: field([{ name: 'a', value: 'b' }]),
    attachments: field([{ filename: 'a', content: 'YQ==' }]),
    scheduled_at: field('in 1 hour', undefined),
    other: field(undefined),
  },
  { requiredKeys: ['from', 'to', 'subject', 'html'] },
)
const key = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  fc.constantFrom('a/1', 'b', '').map((one) => ({ 'idempotency-key': one })),
)
const validation = fc.constantFrom({}, {}, { 'x-batch-validation': 'permissive' }, { 'x-batch-validation': 'other' })
const sends = fc
  .tuple(
    fc.oneof(
      { weight: 4, arbitrary: fc.oneof({ weight: 9, arbitrary: email }, anything).map((one) => jsonRequest('POST', '/emails', one)) },
      fc
        .oneof({ weight: 6, arbitrary: fc.array(email, { maxLength: 3 }) }, anything)
        .map((one) => jsonRequest('POST', '/emails/batch', one)),
    ),
    key,
    validation,
  )
  .map(([request, ...headers]) => ({ ...request, headers: Object.assign({ ...request.headers }, ...headers) as Record<string, string> }))

const resources = fc.constantFrom('/emails', '/domains', '/webhooks', '/suppressions', '/contacts')
const others = fc.oneof(
  fc.record({ name: texts, region: anything, tls: anything }).map((one) => jsonRequest('POST', '/domains', one)),
  fc.record({ email: field('s@one.example') }).map((one) => jsonRequest('POST', '/suppressions', one)),
  fc
    .tuple(fc.constantFrom('add', 'remove'), fc.record({ emails: field(['s@one.example']), ids: field(undefined) }))
    .map(([action, body]) => jsonRequest('POST', `/suppressions/batch/${action}`, body)),
  fc
    .record({ endpoint: field('https://hooks.one.example/a'), events: field(['email.bounced']) })
    .map((body) => jsonRequest('POST', '/webhooks', body)),
  fc
    .tuple(fc.constantFrom('GET', 'DELETE', 'PATCH', 'PUT', 'POST'), resources, encoded(texts), encoded(texts), anything)
    .map(([method, root, id, value, body]) => jsonRequest(method, `${root}/${id}?limit=2&after=${value}`, body)),
)

export const resend: GeneratedVendor = {
  name: 'Resend',
  requests: fc.oneof({ weight: 3, arbitrary: sends }, { weight: 1, arbitrary: others }),
  authenticate: (_request, _url, { test }) => ({ authorization: `Bearer ${test}` }),
  isRefused(answer) {
    if (answer.status < 400) return false
    objectIn(answer, {
      statusCode: (value) => value === answer.status,
      name: (value) => /^[a-z_]+$/.test(String(value)),
      message: isText,
    })
    return true
  },
  messagesOf({ text, headers }, request) {
    const path = endpointOf(request)
    if (request.method !== 'POST' || headers.get('idempotent-replayed') !== null) return 0
    if (path === '/emails') return 1
    return path === '/emails/batch' ? (JSON.parse(text) as { data: unknown[] }).data.length : 0
  },
}
