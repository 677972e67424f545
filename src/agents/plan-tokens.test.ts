import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openIds, openSecrets, systemRandom } from '#base'
import { openPlanTokens } from './plan-tokens.ts'

const secrets = openSecrets('a secret for tests only', systemRandom)
const ids = openIds(systemRandom)
const lifeMs = 300_000
const nowMs = 1_800_000_000_000
const tokens = openPlanTokens({ ids, secrets, lifeMs })
const action = { tool: 'retry_email', arguments: { emailId: 'abc', tenantId: 'house' }, credentialId: 7 }
const { token, expiresAt } = tokens.make(action, nowMs)

test('a token is good for its action until it expires, and names its plan', () => {
  expect(new Date(expiresAt).getTime()).toBe(nowMs + lifeMs)
  const reordered = { ...action, arguments: { tenantId: 'house', emailId: 'abc' } }
  expect(tokens.check(reordered, token, nowMs + lifeMs - 1)).toBe(token.split('.')[0])
  expect(() => tokens.check(action, token, nowMs + lifeMs)).toThrow('has expired')
})

test.each([
  ['another tool', { ...action, tool: 'cancel_scheduled_email' }],
  ['another argument', { ...action, arguments: { ...action.arguments, emailId: 'abd' } }],
  ['one argument more', { ...action, arguments: { ...action.arguments, reason: 'x' } }],
  ['one argument less', { ...action, arguments: { emailId: 'abc' } }],
  ['another key', { ...action, credentialId: 8 }],
])('a token is refused for %s', (_, other) => {
  expect(() => tokens.check(other, token, nowMs)).toThrow('belongs to another action')
})

test('a token of another secret is refused, and one of the secret before a rotation is not', () => {
  const other = openPlanTokens({ ids, secrets: openSecrets('another', systemRandom), lifeMs })
  expect(() => other.check(action, token, nowMs)).toThrow('belongs to another action')
  const rotated = openSecrets('a secret for tests only', systemRandom)
  rotated.use('another', ['a secret for tests only'])
  expect(openPlanTokens({ ids, secrets: rotated, lifeMs }).check(action, token, nowMs)).toBe(token.split('.')[0])
})

test('another spelling of the same token is refused', () => {
  const [id, expiry, mac = ''] = token.split('.')
  // The last character of base64url has two unused bits.
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = letters[letters.indexOf(mac.slice(-1)) ^ 1]
  expect(Buffer.from(mac.slice(0, -1) + last, 'base64url')).toEqual(Buffer.from(mac, 'base64url'))
  for (const other of [`${id}.${expiry}.${mac.slice(0, -1)}${last}`, `${id}.0${expiry}.${mac}`])
    expect(() => tokens.check(action, other, nowMs)).toThrow('belongs to another action')
})

test('a token with any character altered is refused', () => {
  fc.assert(
    fc.property(fc.nat(token.length - 1), fc.string({ minLength: 1, maxLength: 2 }), (at, other) => {
      const altered = token.slice(0, at) + other + token.slice(at + 1)
      fc.pre(altered !== token)
      expect(() => tokens.check(action, altered, nowMs)).toThrow(/token/)
    }),
  )
})
