/** Generated requests of both versions of SES's API, signed, with and without an announced hash of the body. */
import fc from 'fast-check'
import { awsHeaders, strict } from '../../support/aws-signature.ts'
import {
  anythingOf,
  fieldsOf,
  type GeneratedRequest,
  type GeneratedVendor,
  html,
  isText,
  jsonRequest,
  objectIn,
  sender,
  textsWith,
} from './generated-vendor.ts'

const texts = textsWith('success@simulator.amazonses.com', 'member.1', '&=%+')
const anything = anythingOf(texts)
const field = fieldsOf(anything)
const data = (usual: string) => field({ Data: usual })

const raw = fc
  .constantFrom(
    'From: orders@shop.test\r\nTo: ann@one.example\r\n\r\nHi',
    'From: a@shop.test\n\n',
    'To: a@b.example',
    '\0',
    'X-SES-A: b\r\n\r\n',
  )
  .map((one) => Buffer.from(one).toString('base64'))
const bodies = fc.record({ Html: data(html), Text: data('Hi') }, { requiredKeys: [] })
const message = fc.record(
  {
    Subject: data('Hello'),
    Body: fc.oneof({ weight: 9, arbitrary: bodies }, { weight: 1, arbitrary: anything }),
    Headers: field([{ Name: 'X-A', Value: 'b' }]),
    Attachments: field([{ FileName: 'a', RawContent: 'YQ==' }]),
  },
  { requiredKeys: ['Body'] },
)
const email = fc.record(
  {
    FromEmailAddress: field(sender),
    Destination: field({ ToAddresses: ['ann@one.example'] }),
    Content: fc.oneof(
      { weight: 4, arbitrary: message.map((Simple) => ({ Simple })) },
      { weight: 2, arbitrary: fc.oneof(raw, texts).map((Data) => ({ Raw: { Data } })) },
      { weight: 1, arbitrary: anything },
    ),
    ReplyToAddresses: field(undefined),
    EmailTags: field([{ Name: 'a', Value: 'b' }]),
    ConfigurationSetName: field('orders'),
    Other: field(undefined),
  },
  { requiredKeys: ['Content'] },
)
const paths = fc.constantFrom(
  '/v2/email/suppression/addresses',
  '/v2/email/identities',
  '/v2/email/list-identities',
  '/v2/email/other',
  '/v2',
)
const coded = texts.map((one) => strict(one.toWellFormed()))
const change = fc.oneof(fc.record({ EmailAddress: field('s@one.example'), Reason: field('BOUNCE') }), anything)

const sendPath = '/v2/email/outbound-emails'
const version2 = fc.oneof(
  { weight: 4, arbitrary: fc.oneof({ weight: 6, arbitrary: email }, anything).map((one) => jsonRequest('POST', sendPath, one)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('GET', 'DELETE', 'POST', 'PUT'), paths, coded, coded, anything)
      .map(([method, path, name, value, body]) =>
        jsonRequest(method, `${path}/${name === '' ? 'a' : name}?PageSize=2&NextToken=${value}`, body),
      ),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('GET', 'POST', 'PUT'), paths, coded, coded, change)
      .map(([method, path, name, value, body]) => jsonRequest(method, `${path}?${name}=${value}&StartDate=${value}&Reason=BOUNCE`, body)),
  },
)

const usualForm = {
  Action: 'SendEmail',
  Version: '2010-12-01',
  Source: 'orders@shop.test',
  'Destination.ToAddresses.member.1': 'ann@one.example',
  'Message.Subject.Data': 'Hello',
  'Message.Body.Text.Data': 'Hi',
}
const names = fc.constantFrom(
  ...Object.keys(usualForm),
  'Tags.member.1.Name',
  'Tags.member.1.Value',
  'ReplyToAddresses.member.x',
  'Message.Body',
  'RawMessage.Data',
)
const changes = fc.dictionary(
  fc.oneof(texts, names),
  fc.oneof(texts, raw, fc.constantFrom('SendRawEmail', 'GetSendQuota', 'GetAccountSendingEnabled', 'ListIdentities')),
  { maxKeys: 2 },
)
const formOf = (parameters: Readonly<Record<string, string>>) =>
  Object.entries(parameters)
    .map(([name, value]) => `${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`)
    .join('&')
const formRequest = (body: string): GeneratedRequest => ({
  method: 'POST',
  path: '/',
  body: body.toWellFormed(),
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})
const version1 = fc.oneof(
  { weight: 4, arbitrary: changes.map((changed) => formOf({ ...usualForm, ...changed })) },
  { weight: 1, arbitrary: raw.map((one) => formOf({ Action: 'SendRawEmail', 'RawMessage.Data': one })) },
  { weight: 1, arbitrary: texts },
)

const xmlError =
  /^<ErrorResponse xmlns="[^"]+"><Error><Type>Sender<\/Type><Code>\w+<\/Code><Message>[^<>]+<\/Message><\/Error><RequestId>req_\w+<\/RequestId><\/ErrorResponse>\n$/

const announcing = 'x-test-announces'

export const ses: GeneratedVendor = {
  name: 'SES',
  requests: fc
    .tuple(fc.oneof({ weight: 3, arbitrary: version2 }, { weight: 2, arbitrary: version1.map(formRequest) }), fc.boolean())
    .map(([request, announces]) => ({ ...request, headers: { ...request.headers, ...(announces ? { [announcing]: 'yes' } : {}) } })),
  authenticate({ method, body, headers: { [announcing]: announces, ...headers } }, url, keys) {
    return awsHeaders(keys.ses, { method, url, body: typeof body === 'string' ? body : '', headers, announces: announces !== undefined })
  },
  isRefused(answer, { path }) {
    const { status, headers, text } = answer
    if (status === 403) throw new Error('a correct signature was refused')
    if (!headers.get('x-amzn-requestid')?.startsWith('req_')) throw new Error('no request id')
    if (status < 400) return false
    if (path !== '/') objectIn(answer, { message: isText })
    const isInForm = path === '/' ? xmlError.test(text) : /^[A-Z]\w+$/.test(headers.get('x-amzn-errortype') ?? '')
    if (!isInForm) throw new Error("not SES's form")
    return true
  },
  messagesOf: ({ text }) => (/"MessageId"|<MessageId>/.test(text) ? 1 : 0),
}
