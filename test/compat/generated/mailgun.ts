/** Generated requests of Mailgun's API, in every form that a body may have. */
import fc from 'fast-check'
import { encoded, endpointOf, type GeneratedRequest, type GeneratedVendor, isText, json, objectIn, textsWith } from './generated-vendor.ts'

const texts = textsWith('%recipient.n%', 'yes', '\r\n--b', '{"a@one.example":{"n":1}}')
type Fields = Readonly<Record<string, readonly string[]>>

const field = (...usual: readonly string[]) =>
  fc.oneof({ weight: 20, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: texts }).map((one) => [one])
const message = fc.record(
  {
    from: field('orders@shop.test'),
    to: field('gen@one.example', 'A <gen@one.example>, gen2@one.example'),
    subject: field('Hello %recipient.n%'),
    html: field('<p>%recipient.n%</p>'),
    'recipient-variables': field('{"gen@one.example":{"n":"1"}}', '{}'),
    'o:tag': fc.array(texts, { maxLength: 3 }),
    'h:X-A': field('a', '%recipient.n%'),
    'v:a': field('b'),
    'o:testmode': field('no', 'yes'),
  },
  { requiredKeys: ['from', 'to', 'html'] },
)
const names = [
  'to',
  'cc',
  'subject',
  'html',
  'text',
  'template',
  'o:tag',
  'o:tracking',
  'h:X-A',
  'v:a',
  'recipient-variables',
  'attachment',
]
const strange = fc.dictionary(
  fc.oneof(texts, fc.constantFrom(...names, 'address', 'id', 'url', 'message')),
  fc.array(texts, { maxLength: 2 }),
  { maxKeys: 4 },
)
const mixed = fc
  .tuple(message, fc.oneof({ weight: 6, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: strange }))
  .map(([one, other]) => ({ ...one, ...other }))
const raw = fc.record({
  to: field('gen@one.example'),
  message: field('From: orders@shop.test\r\nTo: a@one.example\r\n\r\nHi', 'Subject: a\r\n\r\n'),
})
const fields: fc.Arbitrary<Fields> = fc.oneof({ weight: 6, arbitrary: mixed }, { weight: 1, arbitrary: strange })

const lists = ['messages', 'messages.mime', 'events', 'bounces', 'complaints', 'unsubscribes'].map((one) => `/v3/shop.test/${one}`)
const parameters = fc.constantFrom('event', 'tags', 'begin', 'limit', 'page', 'address', 'skip')
const sendPath = '/v3/shop.test/messages'
const rawPath = `${sendPath}.mime`
const paths = fc.oneof(
  { weight: 6, arbitrary: fc.constant(sendPath) },
  { weight: 1, arbitrary: fc.constantFrom(...lists, '/v3/domains/shop.test/webhooks') },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...lists, '/v3/domains', '/v4/domains'), encoded(texts)).map((two) => two.join('/')) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...lists, '/v3/domains'), parameters, encoded(texts))
      .map(([one, name, value]) => `${one}?limit=2&${name}=${value}`),
  },
)

const kinds = ['multipart', 'urlencoded', 'json', 'broken'] as const
type Kind = (typeof kinds)[number]
const typeOf = (kind: Kind): Record<string, string> =>
  kind === 'json' ? json : kind === 'broken' ? { 'content-type': 'multipart/form-data; boundary=b' } : {}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object'
  } catch {
    return false
  }
}

function bodyOf(given: Fields, kind: Kind): NonNullable<GeneratedRequest['body']> {
  const pairs = Object.entries(given).flatMap(([name, values]) => values.map((value): [string, string] => [name, value]))
  if (kind === 'json') {
    const valueOf = (name: string, value: string): unknown => (name === 'recipient-variables' && isJson(value) ? JSON.parse(value) : value)
    return JSON.stringify(Object.fromEntries(pairs.map(([name, value]) => [name, valueOf(name, value)])))
  }
  if (kind === 'urlencoded') return new URLSearchParams(pairs)
  if (kind === 'broken')
    return pairs.map(([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}`).join('\r\n')
  const form = new FormData()
  for (const [name, value] of pairs) form.append(name, value)
  return form
}

const methods = fc.constantFrom('POST', 'POST', 'POST', 'POST', 'POST', 'GET', 'PUT', 'DELETE')
const requests = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(methods, paths, fields, fc.constantFrom(...kinds)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('POST'), fc.constant(rawPath), raw, fc.constantFrom(...kinds)) },
)

/** The values of a field of a request's body. */
function valuesOf({ body }: GeneratedRequest, name: string): string[] {
  if (typeof body !== 'string') return body?.getAll(name).map(String) ?? []
  const value = (JSON.parse(body) as Record<string, unknown>)[name]
  return value === undefined ? [] : [typeof value === 'string' ? value : JSON.stringify(value)]
}

export const mailgun: GeneratedVendor = {
  name: 'Mailgun',
  requests: requests.map(([method, path, given, kind]) => ({
    method,
    path,
    body: method === 'GET' ? undefined : bodyOf(given, kind),
    headers: typeOf(kind),
  })),
  authenticate: (_request, _url, { test }) => ({ authorization: `Basic ${Buffer.from(`api:${test}`).toString('base64')}` }),
  isRefused(answer) {
    if (answer.status < 400) return false
    objectIn(answer, { message: isText })
    return true
  },
  /** Recipient variables make a message for each address in `to`. */
  messagesOf(_answer, request) {
    if (request.method !== 'POST' || ![sendPath, rawPath].includes(endpointOf(request))) return 0
    const hasVariables = valuesOf(request, 'recipient-variables').some((one) => one !== '')
    const addresses = valuesOf(request, 'to').flatMap((one) => one.match(/[^\s,<>]+@[^\s,<>]+/g) ?? [])
    return hasVariables ? new Set(addresses.map((one) => one.toLowerCase())).size : 1
  },
}
