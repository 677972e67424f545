/** Codes from RFC 6238's test vectors, and from an independent library. */
import fc from 'fast-check'
import { Secret, TOTP, URI } from 'otpauth'
import { expect, test } from 'vitest'
import { base32, codeAt, enrolmentUri, stepOf } from './totp.ts'

const rfcSecret = Buffer.from('12345678901234567890')
const stepMs = 30_000
const secrets = fc.uint8Array({ minLength: 16, maxLength: 40 })
const times = fc.integer({ min: 0, max: 4_000_000_000_000 })
const library = (secret: Uint8Array) => new TOTP({ secret: new Secret({ buffer: secret.slice().buffer }), algorithm: 'SHA1' })

test.each([
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
])('the code of second %i is that of RFC 6238 appendix B', (second, code) => {
  expect(codeAt(rfcSecret, Math.floor(second / 30))).toBe(code)
})

test('an independent library makes the same codes, from the URI that it was given', () => {
  fc.assert(
    fc.property(secrets, times, fc.emailAddress(), (secret, timestamp, address) => {
      const app = URI.parse(enrolmentUri(secret, address, 'Postrider mail.example.com')) as TOTP
      expect(app).toMatchObject({ issuer: 'Postrider mail.example.com', label: address, algorithm: 'SHA1', digits: 6, period: 30 })
      expect(Buffer.from(app.secret.bytes)).toEqual(Buffer.from(secret))
      expect(codeAt(secret, Math.floor(timestamp / stepMs))).toBe(app.generate({ timestamp }))
    }),
  )
})

test('base32 is that of the library', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (octets) => {
      expect(base32(octets)).toBe(new Secret({ buffer: octets.slice().buffer }).base32)
    }),
  )
})

test('a code is taken in its step, one before and one after, and never in a step that was used', () => {
  fc.assert(
    fc.property(secrets, times, fc.integer({ min: -4, max: 4 }), (secret, nowMs, away) => {
      const current = Math.floor(nowMs / stepMs)
      fc.pre(current + away >= 0 && current > 0)
      const code = library(secret).generate({ timestamp: (current + away) * stepMs })
      const near = [current - 1, current, current + 1]
      const means = near.filter((step) => codeAt(secret, step) === code)
      expect(stepOf(code, secret, nowMs, null)).toBe(means[0])
      if (Math.abs(away) <= 1) expect(means).toContain(current + away)
      expect(stepOf(code, secret, nowMs, current + 1)).toBeUndefined()
    }),
  )
})

test('a text that is no code belongs to no step', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      fc.pre(!/^\d{6}$/.test(text))
      expect(stepOf(text, rfcSecret, 1_000_000, null)).toBeUndefined()
    }),
  )
})
