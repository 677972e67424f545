import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalHeaders, isSignedWith, readSignature } from './signature.ts'

const nowMs = Date.UTC(2026, 10, 25, 12)
const credential = 'SVCTEST0000000000000/20261125/eu-central-1/ses/aws4_request'
const given = (changed: Record<string, string> = {}, signature = '0'.repeat(64)) => {
  const headers = {
    Host: 'mail.example.com',
    'X-Amz-Date': '20261125T120000Z',
    Authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host;x-amz-date, Signature=${signature}`,
    ...changed,
  }
  return canonicalHeaders(Object.entries(headers).flat())
}
const bodyHash = createHash('sha256').update('').digest('hex')

test('a signature is that of the parts it covers, and of no other secret, path, query, host, time, region or body', () => {
  // Of botocore 1.29: SigV4Auth of GET https://mail.example.com/v2/email/suppression/addresses/a%40b.example?NextToken=a%2Fb&PageSize=2
  const signature = '3be5d7388325c350ba801180df5d6d909b187cc582aeac3211c87260cdc74976'
  const headers = given({}, signature)
  const url = '/v2/email/suppression/addresses/a%40b.example?PageSize=2&NextToken=a%2Fb'
  const request = { method: 'GET', url, headers, hosts: ['other.example.com', 'mail.example.com'] }
  const read = readSignature(request, nowMs)
  expect(read).toMatchObject({ accessKeyId: 'SVCTEST0000000000000', region: 'eu-central-1', bodyHash: undefined })
  expect(isSignedWith('secret', read, request, bodyHash)).toBe(true)
  const wrong = [
    isSignedWith('Secret', read, request, bodyHash),
    isSignedWith('secret', read, { ...request, method: 'PUT' }, bodyHash),
    isSignedWith('secret', read, { ...request, url: `${url}&a=b` }, bodyHash),
    isSignedWith('secret', read, { ...request, url: url.replace('a%40', 'b%40') }, bodyHash),
    isSignedWith('secret', read, { ...request, hosts: ['other.example.com'] }, bodyHash),
    isSignedWith('secret', { ...read, time: '20261125T120001Z' }, request, bodyHash),
    isSignedWith('secret', { ...read, region: 'us-east-1' }, request, bodyHash),
    isSignedWith('secret', read, request, bodyHash.replace(/^./, '0')),
  ]
  expect(wrong).toEqual(wrong.map(() => false))
  // Empty segments and dots do not count.
  expect(isSignedWith('secret', read, { ...request, url: url.replace('/v2/', '//v2/./x/../') }, bodyHash)).toBe(true)
})

test.each([
  [
    { 'X-Amz-Date': '20261125T115459Z' },
    'Signature expired: 20261125T115459Z is now earlier than 20261125T115500Z (20261125T120000Z - 5 min.)',
  ],
  [
    { 'X-Amz-Date': '20261125T120501Z' },
    'Signature not yet current: 20261125T120501Z is still later than 20261125T120500Z (20261125T120000Z + 5 min.)',
  ],
  [{ 'X-Amz-Date': '20261126T120000Z' }, 'Date in Credential scope does not match'],
  [
    {
      'X-Amz-Date': '20261345T250000Z',
      Authorization: `AWS4-HMAC-SHA256 Credential=${credential.replace('1125', '1345')},SignedHeaders=host;x-amz-date,Signature=${'0'.repeat(64)}`,
    },
    'basic format',
  ],
  [{ 'X-Amz-Target': 'a' }, "'x-amz-target' must be a 'SignedHeader'"],
  [
    { Authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=x-amz-date, Signature=${'0'.repeat(64)}` },
    "'host' must be a 'SignedHeader'",
  ],
  [{ Authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host` }, "requires 'Signature' parameter"],
  [
    {
      Authorization: `AWS4-HMAC-SHA256 Credential=${credential.replace('ses', 's3')}, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`,
    },
    'correct service',
  ],
])('%j is refused: %s', (changed, message) => {
  expect(() => readSignature({ headers: given(changed as Record<string, string>), url: '/' }, nowMs)).toThrow(message)
})

test('any headers are read or refused as a signature', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('AWS4-HMAC-SHA256 ', credential, 'Credential=', 'SignedHeaders=host', ',', ';', '='))
  fc.assert(
    fc.property(fc.array(text, { maxLength: 12 }), (parts) => {
      try {
        readSignature({ headers: given({ Authorization: `AWS4-HMAC-SHA256 ${parts.join('')}` }), url: '/' }, nowMs)
      } catch (error) {
        expect(error).toMatchObject({ name: 'Refusal', code: 'invalid_api_key' })
      }
    }),
  )
})
