/** Input of the API of Amazon SES: signatures, bodies, forms and parameters. */

import { readQueryForm } from '../../../../src/ses/query-form.ts'
import { readIdentityNames, readIdentityPage, readQueryAction } from '../../../../src/ses/query-parameters.ts'
import { readSesEmail, readSesQueryEmail, readSesQueryRawEmail } from '../../../../src/ses/read-message.ts'
import { canonicalHeaders, isSignedWith, readSignature } from '../../../../src/ses/signature.ts'
import {
  readSesIdentityFilter,
  readSesPage,
  readSesSuppression,
  readSesSuppressionPage,
  readSesToken,
} from '../../../../src/ses/suppression-objects.ts'
import { type Reader, reader } from '../reader.ts'

const maxBody = 262_144
const nowMs = Date.UTC(2026, 10, 25, 12)
const scope = 'SVCTEST0000000000000/20261125/us-east-1/ses/aws4_request'
const authorization = (names: string) => `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=${names}, Signature=${'0'.repeat(64)}`
const usual = '"FromEmailAddress":"a@b.example","Destination":{"ToAddresses":["a@b.example"]},'
const simple = '"Subject":{"Data":"a"},"Body":{"Text":{"Data":"a"}}'

/** Reads a part that its frame chose, and refuses it as the program does. */
function readBody(body: object): unknown {
  if ('raw' in body) return readSesEmail({ Content: { Raw: { Data: Buffer.from(String(body.raw), 'latin1').toString('base64') } } }, 'test')
  if ('Source' in body) return readSesQueryEmail(body, 'test')
  if ('RawMessage' in body) return readSesQueryRawEmail(body, 'test')
  if ('EmailAddress' in body) return readSesSuppression(body)
  if ('Filter' in body) return readSesIdentityFilter(body)
  if ('Action' in body) return [readQueryAction(body), readIdentityNames(body)]
  return 'MaxItems' in body ? readIdentityPage(body) : readSesEmail(body, 'test')
}

export const sesReaders: readonly Reader[] = [
  reader({
    name: 'signature for SES',
    longest: 16_384,
    reads: ['src/ses/signature.ts readSignature'],
    frames: [
      ['host;x-amz-date\nhost: ', '\nx-amz-date: 20261125T120000Z'],
      ['', '\nhost: a\nx-amz-date: 20261125T120000Z'],
      ['host;x-amz-date\nhost: a\nx-amz-date: ', ''],
      ['host;x-amz-date;x-a\nhost: a\nx-amz-date: 20261125T120000Z\n', '\nx-a: b'],
      ['host;x-amz-date\nhost: a\nx-amz-date: 20261125T120000Z\nurl: /', ''],
    ],
    units: [';', 'x-a', 'x-a{i}: b\n', 'x-amz-a: ', ' ', '\t', ',', '=', '/', '..', './', '%40', '%', '&', '?', 'a={i}&', 'é'],
    read: (octets) => {
      const [names = '', ...lines] = octets.toString('latin1').split('\n')
      const raw = lines.flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)])
      const headers = canonicalHeaders([...raw, 'authorization', authorization(names)])
      const url = headers.get('url') ?? '/'
      const signature = readSignature({ headers, url }, nowMs)
      return isSignedWith('secret', signature, { method: 'GET', url, headers, hosts: ['a', 'b'] }, '')
    },
  }),
  reader({
    name: 'form for SES',
    longest: maxBody,
    reads: ['src/ses/query-form.ts readQueryForm'],
    frames: [
      ['', ''],
      ['Action=a&b=', ''],
      ['a.member.', '=b'],
    ],
    units: ['a.', 'a.member.{i}=b&', 'a{i}=b&', 'member.', '.', '&', '=', '%41', '%', '+', 'é'],
    // The reader decodes in place.
    read: (octets) => readQueryForm(Buffer.from(octets)),
  }),
  reader({
    name: 'body for SES',
    longest: maxBody,
    reads: [
      'src/ses/read-message.ts readSesEmail',
      'src/ses/read-message.ts readSesQueryEmail',
      'src/ses/read-message.ts readSesQueryRawEmail',
      'src/ses/suppression-objects.ts readSesSuppression',
      'src/ses/suppression-objects.ts readSesIdentityFilter',
      'src/ses/query-parameters.ts readQueryAction',
      'src/ses/query-parameters.ts readIdentityNames',
      'src/ses/query-parameters.ts readIdentityPage',
    ],
    words: ['src/ses/raw-mail.ts', 'src/ses/simulator-addresses.ts', 'src/vendors/json-fields.ts'],
    frames: [
      [`{"Content":{"Simple":{${simple}}},"FromEmailAddress":"a@b.example","Destination":{"ToAddresses":["`, '"]}}'],
      [`{${usual}"ReplyToAddresses":["`, `"],"Content":{"Simple":{${simple}}}}`],
      [`{"Destination":{"ToAddresses":["a@b.example"]},"Content":{"Simple":{${simple}}},"FromEmailAddress":"`, '"}'],
      [`{${usual}"EmailTags":[{"Name":"`, `","Value":"a"}],"Content":{"Simple":{${simple}}}}`],
      [`{${usual}"Content":{"Simple":{${simple},"Headers":[{"Name":"`, '","Value":"a"}]}}}'],
      [`{${usual}"Content":{"Simple":{${simple},"Attachments":[{"ContentId":"`, '","FileName":"a","RawContent":"YQ=="}]}}}'],
      ['{"raw":"From: a@b.example\\nTo: ', '\\n\\nHi"}'],
      ['{"raw":"From: a@b.example\\nTo: a@b.example\\nX-SES-MESSAGE-TAGS: ', '\\n\\nHi"}'],
      ['{"Source":"a@b.example","Destination":{"ToAddresses":["', '"]},"Message":{"Body":{"Text":{"Data":"a"}}}}'],
      ['{"RawMessage":{"Data":"', '"}}'],
      ['{"EmailAddress":"', '","Reason":"BOUNCE"}'],
      ['{"Filter":{"', '":"a"},"PageSize":1}'],
      ['{"Action":"a","Identities":["', '"]}'],
      ['{"MaxItems":"1","NextToken":"', '"}'],
    ],
    units: [
      'ann@a.example',
      'A <a@simulator.amazonses.com>',
      '+b',
      '\\"Ann',
      '\\" <',
      '<',
      '>',
      ',',
      ' ',
      'é',
      '":"',
      '"},{"Name":"a{i}',
      'a=b, ',
      '\\n ',
      '=?utf-8?q?a?=',
    ],
    read: (octets) => readBody(JSON.parse(octets.toString()) as object),
  }),
  reader({
    name: 'parameters for SES',
    longest: 16_384,
    reads: [
      'src/ses/suppression-objects.ts readSesPage',
      'src/ses/suppression-objects.ts readSesSuppressionPage',
      'src/ses/suppression-objects.ts readSesToken',
    ],
    units: ['PageSize=1&', 'NextToken=', 'StartDate=', '2026-11-25T12:00:00Z', 'Reason=BOUNCE&', '=', '&', 'a{i}', '1', '.', 'é'],
    read: (octets) => {
      const query = Object.fromEntries(new URLSearchParams(octets.toString()))
      readSesToken(query.NextToken?.slice(0, 16_384))
      return [readSesPage, readSesSuppressionPage].map((read) => {
        try {
          return read(query)
        } catch {
          return undefined
        }
      })
    },
  }),
]
