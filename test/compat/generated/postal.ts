/** Generated requests of Postal's API: JSON bodies, forms, and parameters in the query. */
import fc from 'fast-check'
import {
  anythingOf,
  encoded,
  fieldsOf,
  type GeneratedAnswer,
  type GeneratedVendor,
  html,
  isNumber,
  isText,
  jsonRequest,
  textsWith,
} from './generated-vendor.ts'

const texts = textsWith('{}', '1')
const anything = anythingOf(texts)
const field = fieldsOf(anything)

const message = fc.record(
  {
    from: field('Shop <orders@shop.test>'),
    to: field(['ann@one.example'], 'ann@one.example, Bob <bob@one.example>', ['ann@one.example', 'ann@one.example']),
    cc: field(['cat@one.example']),
    bcc: field(undefined),
    subject: field('Hello'),
    plain_body: field('Hi'),
    html_body: field(html),
    reply_to: field('help@shop.test'),
    sender: field(undefined),
    tag: field('order'),
    headers: field({ 'X-A': 'b', Date: 'now' }),
    attachments: field([{ name: 'a', content_type: 'text/plain', data: 'YQ==' }]),
    bounce: field(false, true),
    other: field(undefined),
  },
  { requiredKeys: ['from', 'to', 'plain_body'] },
)
const raw = fc.record({
  mail_from: field('orders@shop.test'),
  rcpt_to: field(['ann@one.example'], ['ann@one.example', 'bob@one.example']),
  data: field(
    Buffer.from('From: orders@shop.test\r\nTo: ann@one.example\r\nX-Postal-Tag: a\r\n\r\nHi').toString('base64'),
    Buffer.from('From: a@elsewhere.test\r\n\r\n').toString('base64'),
  ),
})
const asked = fc.record({ id: field(1, '2', 'x'), _expansions: field(true, ['status', 'raw_message', 'other']) })
const calls = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('send/message'), fc.oneof({ weight: 9, arbitrary: message }, anything)) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('send/raw'), fc.oneof({ weight: 9, arbitrary: raw }, anything)) },
  fc.tuple(fc.constantFrom('messages/message', 'messages/deliveries'), fc.oneof(asked, anything)),
  fc.tuple(encoded(texts), anything),
)
const requests = fc
  .tuple(calls, fc.constantFrom('POST', 'POST', 'POST', 'PUT', 'PATCH'), fc.constantFrom('json', 'json', 'json', 'form', 'query'))
  .map(([[name, value], method, form]) => {
    const path = `/api/v1/${name}`
    const text = (JSON.stringify(value) ?? '').toWellFormed()
    if (form === 'json') return jsonRequest(method, path, value)
    if (form === 'query') return jsonRequest('GET', `${path}?params=${encodeURIComponent(text)}`)
    return { method, path, body: new URLSearchParams({ params: text }), headers: {} }
  })

interface Envelope {
  status: string
  data: Record<string, unknown>
}

/** Every answer has status 200 and the envelope. */
function envelopeOf({ status, text }: GeneratedAnswer): Envelope {
  const { status: word, time, flags, data, ...others } = JSON.parse(text) as Record<string, unknown>
  const isObject = typeof data === 'object' && data !== null
  if (status !== 200 || !isText(word) || !isNumber(time) || JSON.stringify(flags) !== '{}' || !isObject || Object.keys(others).length > 0)
    throw new Error("not Postal's envelope")
  return { status: word as string, data: data as Record<string, unknown> }
}

export const postal: GeneratedVendor = {
  name: 'Postal',
  requests,
  authenticate: (_request, _url, { test }) => ({ 'x-server-api-key': test }),
  isRefused(answer) {
    const { status, data } = envelopeOf(answer)
    if (status === 'success') return false
    const isError = status === 'error' && /^[A-Z]\w+$/.test(String(data.code)) && data.code !== 'InternalError'
    if (!isText(data.message) || (status !== 'parameter-error' && !isError)) throw new Error("not Postal's error")
    return true
  },
  messagesOf: (answer, { path }) => (path.startsWith('/api/v1/send/') && envelopeOf(answer).data.message_id !== undefined ? 1 : 0),
}
