/** Generated requests of Postmark's API. */
import fc from 'fast-check'
import {
  anythingOf,
  encoded,
  fieldsOf,
  type GeneratedVendor,
  html,
  isNumber,
  isText,
  jsonRequest,
  objectIn,
  sender,
  textsWith,
} from './generated-vendor.ts'

const texts = textsWith()
const anything = anythingOf(texts)
const field = fieldsOf(anything)

const message = fc.record(
  {
    From: field(sender),
    To: field('ann@one.example', 'Ann <ann@one.example>, bob@one.example'),
    Cc: field('bob@one.example, "C, D" <cd@one.example>'),
    Bcc: field(undefined),
    Subject: field('Hello'),
    HtmlBody: field(html),
    TextBody: field(undefined),
    ReplyTo: field('help@shop.test'),
    Headers: field([{ Name: 'X-A', Value: 'b' }]),
    Metadata: field({ a: 'b' }),
    Attachments: field([{ Name: 'a', Content: 'YQ==', ContentType: 'text/plain' }]),
    MessageStream: field('outbound'),
    TrackOpens: field(false),
    Other: field(undefined),
  },
  { requiredKeys: ['From', 'To', 'HtmlBody'] },
)
const suppressions = fc.record({ Suppressions: fc.array(fc.record({ EmailAddress: field('s@one.example') }), { maxLength: 3 }) })
const lists = fc.constantFrom(
  '/messages/outbound',
  '/bounces',
  '/bounces/1',
  '/message-streams/x/suppressions/dump',
  '/webhooks',
  '/server',
)

const parameters = fc.oneof(
  encoded(texts),
  fc.constantFrom('tag', 'subject', 'messagestream', 'metadata_a', 'recipient', 'emailFilter', 'messageID', 'fromdate', 'Origin'),
)

const requests = fc.oneof(
  { weight: 6, arbitrary: fc.oneof({ weight: 9, arbitrary: message }, anything).map((one) => jsonRequest('POST', '/email', one)) },
  {
    weight: 2,
    arbitrary: fc
      .oneof({ weight: 6, arbitrary: fc.array(message, { maxLength: 3 }) }, anything)
      .map((one) => jsonRequest('POST', '/email/batch', one)),
  },
  fc
    .tuple(fc.constantFrom('', '/delete'), fc.oneof(suppressions, anything))
    .map(([end, body]) => jsonRequest('POST', `/message-streams/outbound/suppressions${end}`, body)),
  fc
    .record({ Url: field('https://hooks.one.example/a'), Triggers: field({ Bounce: { Enabled: true } }), MessageStream: field(undefined) })
    .map((body) => jsonRequest('POST', '/webhooks', body)),
  fc
    .tuple(fc.constantFrom('GET', 'GET', 'PUT', 'DELETE'), lists, parameters, encoded(texts), anything)
    .map(([method, path, name, value, body]) => jsonRequest(method, `${path}?count=2&offset=0&${name}=${value}`, body)),
  fc.tuple(fc.constantFrom('details', 'dump'), encoded(texts)).map(([part, id]) => jsonRequest('GET', `/messages/outbound/${id}/${part}`)),
)

export const postmark: GeneratedVendor = {
  name: 'Postmark',
  requests,
  authenticate: (_request, _url, { test }) => ({ 'x-postmark-server-token': test }),
  isRefused(answer) {
    if (answer.status < 400) return false
    objectIn(answer, { ErrorCode: isNumber, Message: isText })
    return true
  },
  messagesOf({ text }, { method, path }) {
    if (method !== 'POST') return 0
    if (path === '/email') return 1
    return path === '/email/batch' ? (JSON.parse(text) as { ErrorCode: number }[]).filter((one) => one.ErrorCode === 0).length : 0
  },
}
