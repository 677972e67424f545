/**
 * EHLO replies of real and unusual peers.
 */
import { describe, expect, test } from 'vitest'
import { parseExtensions } from './ehlo-extensions.ts'

const size = (line: string) => parseExtensions(`250-x\n250 ${line}`).extensions.size

describe('the reply to EHLO', () => {
  test('keywords count in any case and order, once', () => {
    const { extensions, startTls, auth } = parseExtensions(
      '250-x PIPELINING\n250-starttls\n250-8BitMime\n250-8BITMIME\n250-AUTH=LOGIN\n250-AUTH PLAIN\n250 ???',
    )
    expect(extensions).toEqual({ size: null, pipelining: false, eightBitMime: true, smtpUtf8: false })
    expect(startTls).toBe(true)
    expect(auth).toEqual(['LOGIN', 'PLAIN'])
  })

  test('SIZE without a number, of 0 or of nonsense is no limit', () => {
    expect([size('SIZE'), size('SIZE 0'), size('SIZE -1'), size('SIZE abc')]).toEqual([0, 0, 0, 0])
    expect(size('SIZE 100')).toBe(100)
    expect(size('SIZE 9223372036854775808')).toBe(2 ** 63)
    expect(size('SMTPUTF8')).toBe(null)
  })
})
