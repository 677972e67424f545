/** HTTP input: requests with their bodies, query strings, cookies, headers, paths and tokens, and responses of external web servers. */
import { fastify } from 'fastify'
import { emailIdTimeMs, networkOf, openSecrets, systemRandom } from '#base'
import { openGuard } from '#net'
import { openTokens } from '#tracking'
import { parsePosition } from '#webhooks'
import { checkSubmission } from '../../../../src/accept/validate-submission.ts'
import { parseTraceparent } from '../../../../src/base/trace-context.ts'
import { boundsOf } from '../../../../src/http/body-limits.ts'
import { ClientHelloReader } from '../../../../src/http/client-hello.ts'
import { sessionCookie } from '../../../../src/http/dashboard-session.ts'
import { previewDocument } from '../../../../src/http/email-preview.ts'
import { readFormFields } from '../../../../src/http/form-fields.ts'
import { parseJson } from '../../../../src/http/parse-json.ts'
import { hostNameOf, refuseBadHost, routable } from '../../../../src/http/request-target.ts'
import { locationOf } from '../../../../src/http/tracking-endpoints.ts'
import { readInstant } from '../../../../src/http/v1/common-schemas.ts'
import { routes } from '../../../../src/http/v1/endpoints.ts'
import { queryReader } from '../../../../src/http/v1/query-parameters.ts'
import { fingerprint } from '../../../../src/http/v1/request-fingerprint.ts'
import { compileSchema } from '../../../../src/http/v1/validate.ts'
import { findTarget } from '../../../../src/net/resolve-url.ts'
import { readRetryAfter } from '../../../../src/net/retry-after.ts'
import { holdBody, keptOf } from '../../../../src/request-logs/redact.ts'
import { classifyRequest, isPrefetch } from '../../../../src/tracking/bot-detection.ts'
import { openZone, readPeriod } from '../../../../src/usage/calendar-periods.ts'
import { type Reader, reader } from '../reader.ts'

/** Limit for one header and for all headers together (Node's limit). */
const maxHeaders = 16_384
/** Limit for the URL in a token. */
const maxTrackedUrl = 2000
const maxBody = 67_108_864

const tokens = openTokens(openSecrets('0123456789abcdef0123456789abcdef', systemRandom))
const token = tokens.make({ kind: 'click', tenantId: 'main'.padEnd(25, '0'), emailId: '0'.repeat(22), url: 'https://a.example/' })

const bodies = routes.flatMap(({ name, body }) => (body ? [{ name, problemsOf: compileSchema(body) }] : []))
/** The endpoint with the highest limits. */
const bounds = boundsOf(routes.find(({ name }) => name === 'emails.sendBatch'))
const utc = openZone('UTC')
const queries = routes.flatMap(({ query }) => (query ? [queryReader(query)] : []))

/** The parser that turns a query string into parameters. */
const parsing = fastify()
parsing.get('/', async ({ query }) => ({ query }))

const json = [
  '"a{i}":"b",',
  '"a":',
  '"a"',
  '{}',
  '[],',
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '"',
  '\\',
  '\\\\',
  '\\"',
  '\\u0041',
  '\\u00',
  'null,',
  'true',
  '1e9,',
  '0,',
  '-',
  ' ',
  '\n',
  'é',
  '"key":"',
  '"secret":',
  '"content":"',
  '"data":{',
  '"rawMessage":"',
  '"to":["a{i}@b.example"],',
  '"to":[',
  '"metadata":{',
  '"headers":{',
  '"attachments":[{',
  '"emails":[{',
  '"emails":[',
  '"from":"a@b.example",',
  '"subject":"a",',
  '"html":"<p>",',
  'key=',
  'secret: ',
  '"smtpUsername"',
]
const jsonNests = [
  ['[', ']'],
  ['{"a":', '}'],
  ['{"a{i}":', '}'],
  ['{"data":', '}'],
  ['[{"a":', '}]'],
] as const
const send = '{"from":"a@b.example","to":["a@b.example"],"subject":"a",'

const refuses = (work: () => unknown): unknown => {
  try {
    return work()
  } catch (error) {
    return error
  }
}

/** Record, handshake, version, random, no session, one cipher suite, one compression method, the length of the extensions. */
const helloHead = `\x16\x03\x01\0\0\x01\0\0\0\x03\x03${'r'.repeat(32)}\0\0\x02\x13\x01\x01\0\0\0`
/** Inputs that begin with the head get the lengths of their content. */
function measuredHello(given: Buffer): Buffer {
  const octets = Buffer.from(given)
  if (octets.length < helloHead.length || octets[0] !== 0x16) return octets
  octets.writeUInt16BE(octets.length - 5, 3)
  octets.writeUIntBE(octets.length - 9, 6, 3)
  octets.writeUInt16BE(octets.length - helloHead.length, helloHead.length - 2)
  return octets
}

export const httpReaders: Reader[] = [
  reader({
    name: 'ClientHello',
    longest: 16_384,
    encoding: 'latin1',
    reads: ['src/http/client-hello.ts ClientHelloReader'],
    frames: [
      [helloHead, ''],
      [`${helloHead}\0\x10\x3f\x82\x3f\x80`, ''],
      [`${helloHead}\0\0\x3f\x82\x3f\x80`, ''],
      ['', ''],
    ],
    units: [
      '\0\0\0\x0b\0\x09\0\0\x06a.test',
      '\0\x10\0\x0b\0\x09\x08http/1.1',
      '\x01\0\0\0',
      '\x01\0\x01a',
      '\0\0\x01a',
      '\x01a',
      '\x16\x03\x01\0\x01\x01',
      '\x16\x03\x01\0\x01\0',
      '\xff',
      '\0',
    ],
    read: (octets) => {
      const inPieces = new ClientHelloReader()
      for (let at = 0; at < octets.length; at++) if (inPieces.read(octets.subarray(at, at + 1)).kind !== 'incomplete') break
      return [new ClientHelloReader().read(octets), new ClientHelloReader().read(measuredHello(octets))]
    },
  }),
  reader({
    name: 'JSON body',
    longest: maxBody,
    reads: [
      'src/http/parse-json.ts parseJson',
      'src/http/json-limits.ts passedBound',
      'src/http/v1/validate.ts compileSchema',
      'src/http/v1/request-fingerprint.ts canonicalJson',
    ],
    frames: [
      ['{', '}'],
      [send, '"text":"a"}'],
      [`${send}"metadata":{`, '}}'],
      [`${send}"headers":{`, '}}'],
      [`${send}"attachments":[`, ']}'],
      ['{"from":"a@b.example","emails":[', ']}'],
      ['[', ']'],
      ['{"suppressions":[', ']}'],
      ['', ''],
    ],
    units: json,
    nests: jsonNests,
    read(octets) {
      const value = parseJson(octets, bounds)
      for (const { problemsOf } of bodies) problemsOf(value)
      return fingerprint('POST', '/v1/emails', value)
    },
  }),
  reader({
    name: 'form',
    longest: maxBody,
    encoding: 'latin1',
    reads: ['src/http/form-fields.ts readFormFields', 'src/http/form-body.ts decoded'],
    words: ['src/mail/parse-fields.ts'],
    frames: [
      ['--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n', '\r\n--b--'],
      ['--b\r\nContent-Disposition: form-data; name="', '"\r\n\r\na\r\n--b--'],
      ['--b\r\nContent-Disposition: form-data; name="json"\r\n\r\n', '\r\n--b--'],
      ['--b\r\n', '\r\n\r\na\r\n--b--'],
      ['a=', ''],
      ['', '\r\n--b--'],
    ],
    units: [
      '--b\r\n',
      '\r\n--b',
      '\r\n--bb',
      '\r\n-',
      '\r\n',
      'Content-Disposition: form-data; name="a{i}"\r\n\r\n',
      '; filename="a"',
      "; filename*=utf-8''%C3",
      '; name*0="a"',
      ':',
      '"',
      '\\',
      'a{i}=b&',
      '&',
      '=',
      '%',
      '%41',
      '+',
      ' ',
      '\xff',
    ],
    read: (octets) => {
      const limits = { json: ['json'], hidden: [], bounds }
      return [
        refuses(() => readFormFields(octets, { kind: 'multipart', boundary: 'b' }, limits)),
        refuses(() => readFormFields(octets, { kind: 'urlencoded' }, limits)),
      ]
    },
  }),
  reader({
    name: 'submission',
    longest: 14_680_064,
    reads: ['src/accept/validate-submission.ts checkSubmission'],
    frames: [
      [`${send}"text":"`, '"}'],
      [`${send}"tag":"`, '"}'],
      ['{"from":"', '","to":["a@b.example"],"subject":"a"}'],
      ['{"from":"a@b.example","to":["a@b.example"],"subject":"', '"}'],
      [`${send}"attachments":[{"filename":"a","contentType":"text/plain","content":"`, '"}]}'],
      [`${send}"attachments":[{"filename":"a","content":"","contentType":"`, '"}]}'],
      [`${send}"headers":{"X-a":"`, '"}}'],
      ['{"from":"a@b.example","subject":"a","to":["', '"]}'],
    ],
    units: [
      'a',
      'a@b.example',
      '","',
      'YQ==',
      '=',
      '; ',
      'text/plain',
      '/',
      '\\u0000',
      '\\ud800',
      '\\r\\n',
      'é',
      '😀',
      ' ',
      '<',
      '>',
      '\\"',
    ],
    read: (octets) => checkSubmission(JSON.parse(octets.toString())),
  }),
  reader({
    name: 'body for the request log',
    longest: maxBody,
    reads: ['src/request-logs/redact.ts holdBody', 'src/request-logs/redact.ts keptOf', 'src/request-logs/redact.ts unescaped'],
    frames: [
      ['{', '}'],
      ['{"key":"', '"}'],
      ['{"a":"', ''],
      ['', ''],
    ],
    units: json,
    nests: jsonNests,
    read(octets) {
      const held = holdBody(octets)
      return [keptOf(held, { isBroken: false }), keptOf(held, { isBroken: true })]
    },
  }),
  reader({
    name: 'query string',
    longest: maxHeaders,
    reads: [
      'src/http/v1/query-parameters.ts queryReader',
      'src/http/v1/common-schemas.ts readInstant',
      'src/usage/calendar-periods.ts readPeriod',
      'src/usage/calendar-periods.ts openZone',
    ],
    units: [
      'period=2026-03-01..2026-03-15&',
      '..',
      '2026-03',
      'a{i}=b&',
      'page=1&',
      'after=2026-03-01T09:30:00Z',
      '&',
      '=',
      '%',
      '%20',
      '%25',
      '+',
      '&tenantId=',
      'a[]=1&',
      'subject=a%20',
      'metadata=a:b',
      '0',
      '.',
      '%00',
      '-',
    ],
    async read(octets) {
      const { query } = await parsing.inject({ url: `/?${octets.toString('latin1')}` }).then((answer) => answer.json())
      const given = query as Record<string, unknown>
      for (const readQuery of queries) refuses(() => readQuery(given))
      const text = octets.toString('latin1')
      refuses(() => openZone(text))
      refuses(() => readPeriod(text, utc, 0))
      return refuses(() => readInstant('after', typeof given.after === 'string' ? given.after : text))
    },
  }),
  reader({
    name: 'headers of a request',
    longest: maxHeaders,
    reads: [
      'src/http/dashboard-session.ts sessionCookie',
      'src/http/request-target.ts refuseBadHost',
      'src/http/request-target.ts hostNameOf',
      'src/base/trace-context.ts parseTraceparent',
      'src/webhooks/event-stream.ts parsePosition',
      'src/base/ip-networks.ts networkOf',
    ],
    frames: [
      ['', ''],
      ['postrider=', ''],
      ['00-', '-01'],
    ],
    units: [
      '__Host-postrider=a; ',
      'postrider=',
      ';',
      '; ',
      'a{i}=b;',
      ' ',
      '=',
      '00-4bf92f3577b34da6a3ce929d0e0e4736-',
      '0',
      '-',
      'a.',
      '[::1]',
      ':80',
      ':',
      '.',
      '1',
      ',',
      '::ffff:',
      '%',
    ],
    read(octets) {
      const text = octets.toString('latin1')
      const headers = { host: text, cookie: text }
      refuses(() =>
        refuseBadHost({ raw: { httpVersionMajor: 1, httpVersionMinor: 1, rawHeaders: text.split(';').slice(0, 2000) }, headers }),
      )
      return [
        sessionCookie({ headers, protocol: 'https', host: text }, 'https://a.example'),
        hostNameOf({ host: text }),
        parseTraceparent(text),
        parsePosition(text),
        networkOf(text),
      ]
    },
  }),
  reader({
    name: 'who follows a link',
    longest: maxHeaders,
    reads: ['src/tracking/bot-detection.ts classifyRequest', 'src/tracking/bot-detection.ts isPrefetch'],
    words: ['src/tracking/bot-rules.ts'],
    frames: [
      ['Mozilla/5.0 (', ') AppleWebKit'],
      ['', ''],
    ],
    units: [
      'Mozilla/5.0 ',
      'compatible; ',
      'bot',
      'Googlebot/2.1',
      '(+http://a.example)',
      'Chrome/120.0.0.0 ',
      'Safari/537.36',
      '(',
      ')',
      ';',
      ' ',
      '/',
      'a',
      '1.',
      'Outlook',
      'prefetch',
      '-',
    ],
    nests: [['(', ')']],
    read(octets) {
      const userAgent = octets.toString('latin1')
      isPrefetch({ purpose: userAgent, 'sec-purpose': userAgent })
      const asked = { kind: 'open' as const, atMs: 100_000, ipAddress: '192.0.2.1', userAgent, isHead: false, isPrefetch: false }
      return classifyRequest(asked, { deliveredAtMs: 0, isOneOfSeveral: false, isAfterHead: false })
    },
  }),
  reader({
    name: 'path and its token',
    longest: maxHeaders,
    reads: [
      'src/tracking/link-tokens.ts openTokens',
      'src/http/request-target.ts routable',
      'src/http/tracking-endpoints.ts locationOf',
      'src/base/ids.ts emailIdTimeMs',
    ],
    frames: [
      ['', ''],
      ['https://', '/a'],
      ['/c/', ''],
      [token, ''],
    ],
    units: [
      token,
      'https://a.example/',
      'http://',
      '/',
      '//',
      '?',
      '%',
      '%20',
      '%zz',
      '@',
      ':',
      'a@',
      'é',
      'münchen.example',
      '.',
      '-',
      '_',
      'a',
      '\\',
      ' ',
      '\t',
      '\r',
    ],
    read(octets) {
      const text = octets.toString()
      return [
        refuses(() => routable(text)),
        refuses(() => locationOf(text.slice(0, maxTrackedUrl))),
        tokens.read(text, 'click'),
        tokens.read(text.slice(0, 4096), 'open'),
        emailIdTimeMs(text),
      ]
    },
  }),
  reader({
    name: 'URL of a webhook',
    longest: 2048,
    reads: ['src/net/resolve-url.ts findTarget'],
    frames: [
      ['https://', '/a'],
      ['', ''],
    ],
    units: [
      'https://',
      'a.example',
      '@',
      ':',
      '/',
      '[',
      ']',
      '::1',
      '.',
      'xn--',
      'é',
      '%',
      '\\',
      ' ',
      '0x7f',
      '127.0.0.1',
      'localhost',
      '?',
      '#',
      '-',
    ],
    read: (octets) =>
      findTarget(octets.toString(), {
        resolver: {
          addresses: async () => ({ kind: 'found', value: ['192.0.2.1'] }),
          mx: async () => ({ kind: 'none' }),
          txt: async () => ({ kind: 'none' }),
          cname: async () => ({ kind: 'none' }),
          ptr: async () => ({ kind: 'none' }),
        },
        guard: openGuard([]),
        openedNetworks: [],
      }),
  }),
  reader({
    name: "header of a webhook's answer",
    longest: maxHeaders,
    reads: ['src/net/retry-after.ts readRetryAfter'],
    units: ['Wed, 21 Oct 2026 07:28:00 GMT', '1', '(', ')', ' ', '-', '+', ':', 'Jan', ',', '0', 'T', 'Z', '.'],
    nests: [['(', ')']],
    read: (octets) => readRetryAfter(octets.toString('latin1'), 0),
  }),
  reader({
    name: 'html for the preview',
    longest: maxBody,
    reads: ['src/http/email-preview.ts previewDocument'],
    units: ['<', '</', '<script', '<link', '<meta ', '<a', '<x-', 'script', '/', ' ', '>', '&'],
    read(octets) {
      const text = octets.toString()
      return [previewDocument({ htmlBody: text }), previewDocument({ plainBody: text })]
    },
  }),
]
