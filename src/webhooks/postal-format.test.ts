import { generateKeyPairSync, verify } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { postalBody, postalHeaders } from './postal-format.ts'

const bodyOf = (payload: unknown) =>
  Buffer.from(JSON.stringify({ event: 'MessageSent', timestamp: 1.5, uuid: 'u', tenant_id: 't', payload, _test: true }))

test('a body has the members that Postal sends and no others', () => {
  const message = { id: 1, token: 'x', tag: null, metadata: { a: 'b' } }
  const payload = {
    message,
    status: 'HardFail',
    classification: 'spam_block',
    classification_code: 1,
    smtp_enhanced_code: null,
    remote_host: 'mx',
    metadata: null,
  }
  expect(JSON.parse(postalBody(bodyOf(payload)).toString())).toEqual({
    event: 'MessageSent',
    timestamp: 1.5,
    payload: { message: { id: 1, token: 'x', tag: null }, status: 'HardFail' },
    uuid: 'u',
  })
})

test('a body in the format stays the same, with any payload', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (payload) => {
      const once = postalBody(bodyOf(payload))
      expect(postalBody(once).toString()).toBe(once.toString())
    }),
  )
})

test('both signatures verify with the published key', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const body = bodyOf({})
  const jwk = publicKey.export({ format: 'jwk' }) as never
  const headers = await postalHeaders(
    { uuid: 'u', event: 'e', attempt: 1, body, nowMs: 0 },
    { kid: 'k', privateKey, jwk, createdAt: new Date(0) },
  )
  expect(verify('RSA-SHA256', body, publicKey, Buffer.from(headers['X-Postal-Signature-256'] ?? '', 'base64'))).toBe(true)
  expect(verify('RSA-SHA1', body, publicKey, Buffer.from(headers['X-Postal-Signature'] ?? '', 'base64'))).toBe(true)
  expect(headers['X-Postal-Signature-KID']).toBe('k')
})
