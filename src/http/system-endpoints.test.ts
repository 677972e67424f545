import { describe, expect, test } from 'vitest'
import { mayReadMetrics } from './system-endpoints.ts'

const from = (remoteAddress: string, headers: Record<string, string> = {}) => ({ headers, socket: { remoteAddress } })

describe('the metrics', () => {
  test.each(['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])('without a token are for this machine: %s', (address) => {
    expect(mayReadMetrics(from(address), undefined)).toBe(true)
  })

  test.each(['10.0.0.1', '192.0.2.1', '2001:db8::1', '::ffff:10.0.0.1', ''])('without a token are for no other machine: %o', (address) => {
    expect(mayReadMetrics(from(address), undefined)).toBe(false)
  })

  test.each(['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'])(
    'without a token are not for a request that a proxy forwarded (%s)',
    (header) => {
      expect(mayReadMetrics(from('127.0.0.1', { [header]: '192.0.2.1' }), undefined)).toBe(false)
    },
  )

  test('with a token are for every caller that has it', () => {
    expect(mayReadMetrics(from('192.0.2.1', { authorization: 'Bearer secret' }), 'secret')).toBe(true)
    expect(mayReadMetrics(from('127.0.0.1', { authorization: 'Bearer wrong' }), 'secret')).toBe(false)
    expect(mayReadMetrics(from('127.0.0.1'), 'secret')).toBe(false)
  })
})
