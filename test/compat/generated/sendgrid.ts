/** Generated requests of SendGrid's API. */
import fc from 'fast-check'
import {
  anythingOf,
  encoded,
  fieldsOf,
  type GeneratedAnswer,
  type GeneratedVendor,
  isText,
  isTextOrNull,
  jsonRequest,
  textsWith,
} from './generated-vendor.ts'

const texts = textsWith('{{n}}')
const anything = anythingOf(texts)
const field = fieldsOf(anything)

const address = fc.record({ email: field('ann@one.example', 'bob@one.example'), name: field('Ann') }, { requiredKeys: ['email'] })
const personalization = fc.record(
  {
    to: fc.array(address, { minLength: 1, maxLength: 3 }),
    cc: field([{ email: 'cat@one.example' }]),
    subject: field('Own {{n}}'),
    substitutions: fc.oneof({ weight: 9, arbitrary: fc.dictionary(texts, texts, { maxKeys: 3 }) }, { weight: 1, arbitrary: anything }),
    custom_args: field({ a: 'b' }),
    headers: field({ 'X-A': 'b' }),
    send_at: field(undefined),
  },
  { requiredKeys: ['to'] },
)
const mail = fc.record(
  {
    from: field({ email: 'orders@shop.test', name: 'Shop' }),
    personalizations: fc.oneof(
      { weight: 9, arbitrary: fc.array(personalization, { minLength: 1, maxLength: 3 }) },
      { weight: 1, arbitrary: anything },
    ),
    subject: field('Hello {{n}}'),
    content: field([{ type: 'text/html', value: '<p>{{n}}</p>' }]),
    reply_to: field({ email: 'help@shop.test' }),
    categories: field(['a', 'b']),
    custom_args: field({ c: 'd' }),
    attachments: field([{ filename: 'a', content: 'YQ==' }]),
    mail_settings: field({ sandbox_mode: { enable: false } }, { sandbox_mode: { enable: true } }),
    tracking_settings: field({ open_tracking: { enable: false } }),
    other: field(undefined),
  },
  { requiredKeys: ['from', 'personalizations', 'subject', 'content'] },
)
const lists = fc.constantFrom(
  '/v3/suppression/bounces',
  '/v3/suppression/unsubscribes',
  '/v3/asm/suppressions/global',
  '/v3/suppression/blocks',
  '/v3/user/webhooks/event/settings',
  '/v3/scopes',
)
const methods = fc.constantFrom('GET', 'DELETE', 'POST', 'PATCH')
const changes = fc.oneof(
  fc.record({ emails: fc.array(anything, { maxLength: 3 }), delete_all: field(undefined) }),
  fc.record({ recipient_emails: field(['s@one.example']) }),
  fc.record({ url: field('https://hooks.one.example/a'), enabled: field(true), bounce: field(true) }),
  anything,
)

const sendPath = '/v3/mail/send'
const requests = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .oneof({ weight: 9, arbitrary: mail }, { weight: 1, arbitrary: anything })
      .map((one) => jsonRequest('POST', sendPath, one)),
  },
  fc.tuple(methods, lists, encoded(texts), changes).map(([method, path, part, body]) => jsonRequest(method, `${path}/${part}`, body)),
  fc
    .tuple(methods, lists, encoded(texts), encoded(texts), changes)
    .map(([method, path, name, value, body]) => jsonRequest(method, `${path}?limit=2&${name}=${value}&offset=${value}`, body)),
  fc.tuple(methods, lists, changes).map(([method, path, body]) => jsonRequest(method, path, body)),
)

/** Every refusal names one error. */
function isInForm({ text }: GeneratedAnswer): boolean {
  const { errors, ...others } = JSON.parse(text) as { errors: Record<string, unknown>[] }
  const [error = {}, ...more] = errors
  const { message, field: path, help, ...members } = error
  const none = [Object.keys(others), more, Object.keys(members)].every((one) => one.length === 0)
  return none && isText(message) && isTextOrNull(path) && isTextOrNull(help)
}

export const sendgrid: GeneratedVendor = {
  name: 'SendGrid',
  requests,
  authenticate: (_request, _url, { test }) => ({ authorization: `Bearer ${test}` }),
  isRefused(answer) {
    if (answer.status < 400) return false
    if (!isInForm(answer)) throw new Error("not SendGrid's form")
    return true
  },
  /** 200 instead of 202 answers a mail in sandbox mode. */
  messagesOf({ status }, { path, body }) {
    if (path !== sendPath || status !== 202 || typeof body !== 'string') return 0
    return (JSON.parse(body) as { personalizations: unknown[] }).personalizations.length
  },
}
