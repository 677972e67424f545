import { describe, expect, test } from 'vitest'
import type { Failure, SmtpConnection } from '#smtp'
import { openPipeliningFallback } from './pipelining-fallback.ts'

const dayMs = 86_400_000

function setup() {
  let nowMs = 0
  const pipeliningFallback = openPipeliningFallback({ nowMs: () => nowMs, monotonicMs: () => nowMs, after: () => () => {} })
  const extensions = { size: null, pipelining: true, eightBitMime: true, smtpUtf8: true }
  const connection = { peer: { address: '192.0.2.1', port: 25, host: 'mx' }, extensions, usable: false } as SmtpConnection
  const failure = (kind: Failure['kind'], stage: Failure['stage']): Failure => ({ kind, stage, message: '', transcript: '' })
  const after = (ms: number) => {
    nowMs += ms
    return pipeliningFallback.applies('192.0.2.1')
  }
  return { pipeliningFallback, connection, failure, after }
}

describe('a peer that loses its way when commands come at once', () => {
  test('gets one at a time for a day when its answers were out of step', () => {
    const { pipeliningFallback, connection, failure, after } = setup()
    expect(after(0)).toBe(false)
    expect(pipeliningFallback.record(connection, failure('protocol', 'rcpt'), true)).toBe(true)
    expect(pipeliningFallback.applies('192.0.2.2')).toBe(false)
    expect([after(dayMs - 1), after(1)]).toEqual([true, false])
  })

  test('gets one at a time for ten minutes when it may have been chance, and a silence is not tried again at once', () => {
    const { pipeliningFallback, connection, failure, after } = setup()
    expect(pipeliningFallback.record(connection, failure('timeout', 'data'), true)).toBe(false)
    expect([after(599_999), after(1)]).toEqual([true, false])
    expect(pipeliningFallback.record(connection, failure('dropped', 'mail'), true)).toBe(true)
    expect(after(0)).toBe(true)
  })

  test('is not thought of where something else explains the failure', () => {
    const { pipeliningFallback, connection, failure, after } = setup()
    const without = { ...connection, extensions: { ...connection.extensions, pipelining: false } }
    expect(pipeliningFallback.record(without, failure('protocol', 'rcpt'), true)).toBe(false)
    expect(pipeliningFallback.record({ ...connection, usable: true }, failure('protocol', 'rcpt'), true)).toBe(false)
    expect(pipeliningFallback.record(connection, failure('dropped', 'mail'), false)).toBe(false)
    expect(pipeliningFallback.record(connection, failure('protocol', 'content'), true)).toBe(false)
    expect(pipeliningFallback.record(connection, failure('smtputf8', 'mail'), true)).toBe(false)
    expect(after(0)).toBe(false)
  })
})
