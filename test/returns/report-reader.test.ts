/** The thread that reads reports: the limits of its input, and the handling of reports that it cannot read. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { describe, expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { readReport } from '#bounces'
import { openReader, readHere } from '#returns'
import { repeated, worstReports } from '../support/worst-reports.ts'

const mebibyte = 1_048_576
const atMs = Date.UTC(2026, 10, 22)
const deps = { clock: systemClock, log: silentLog }
const bounce = (address = 'ann@b.example') =>
  Buffer.from(
    `From: mailer-daemon@x.example\r\nMessage-ID: <r@x.example>\r\nContent-Type: message/delivery-status\r\n\r\nFinal-Recipient: rfc822; ${address}\r\nAction: failed\r\nStatus: 5.1.1\r\n`,
  )
const complaint = (text: string) =>
  Buffer.from(`From: fbl@x.example\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n\r\n${text}`)

describe('the thread that reads reports', () => {
  test('gives the same results as reading here, of bounces and complaints', async () => {
    const reader = openReader(deps)
    const messages = [
      bounce(),
      complaint(`Return-Path: <b${'a'.repeat(51)}@rp.x.example>\r\n`),
      Buffer.from('no mail at all'),
      Buffer.alloc(0),
    ]
    for (const message of messages) {
      const [there, here] = [
        await reader.read(message, { atMs, network: 'x' }),
        await readHere(readReport)(message, { atMs, network: 'x' }),
      ]
      expect(there).toEqual(here)
    }
    const returned = Buffer.from('From: mx@x.example\r\nSubject: Your message\r\n\r\n550 5.1.1 <ann@b.example>: no such user\r\n')
    for (const [hasNullSender, kind] of [
      [true, 'bounce'],
      [false, 'other'],
    ] as const)
      expect((await reader.read(returned, { atMs, hasNullSender, network: 'x' })).report.kind).toBe(kind)
    reader.stop()
  })

  test('does not keep other callers waiting: this one answers within 100 ms while the worst reports are read', async () => {
    // All are queued at once, and a busy machine reads them slowly. Only the delay of this thread counts here.
    const reader = openReader(deps, { readMs: 30_000, waitMs: 60_000 })
    await reader.read(bounce(), { atMs, network: 'x' })
    const worst = [
      ...Object.values(worstReports).map((make) => make(2 * mebibyte)),
      complaint(repeated('Return-Path: b\r\n', 20 * mebibyte)),
    ]
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    const readings = worst.map((octets, index) => reader.read(octets, { atMs, network: `n${index}` }))
    const kinds = (await Promise.all(readings)).map(({ report }) => report.kind)
    delay.disable()
    expect(new Set(kinds)).toEqual(new Set(['other', 'bounce', 'complaint']))
    expect(delay.percentile(99) / 1e6).toBeLessThan(100)
    reader.stop()
  }, 120_000)

  test('a report that is not read in time is put off, and the next one is read by another thread', async () => {
    let isLate = false
    const after = (delayMs: number, action: () => void) => systemClock.after(isLate && delayMs === 5_000 ? 0 : delayMs, action)
    const reader = openReader({ ...deps, clock: { ...systemClock, after } })
    await reader.read(bounce(), { atMs, network: 'x' })
    isLate = true
    const slow = complaint(repeated('Return-Path: <b@x>\r\n=\r\n', 20 * mebibyte))
    await expect(reader.read(slow, { atMs, network: 'x' })).rejects.toThrow('did not respond within 5000 ms')
    isLate = false
    expect((await reader.read(bounce('bea@b.example'), { atMs, network: 'x' })).report.recipient).toBe('bea@b.example')
    reader.stop()
  }, 60_000)

  test('a report that finds no place is put off at once, one that waits too long then, and another network is served meanwhile', async () => {
    const reader = openReader(deps, { places: 3, waitMs: 10_000 })
    await reader.read(bounce(), { atMs, network: 'provider' })
    const outcomes = Array.from({ length: 20 }, () =>
      reader.read(complaint(repeated('Return-Path: b\r\n', 5 * mebibyte)), { atMs, network: 'stranger' }).then(
        () => 'read',
        (error: Error) => error.message,
      ),
    )
    expect((await reader.read(bounce(), { atMs, network: 'provider' })).report.kind).toBe('bounce')
    const told = await Promise.all(outcomes)
    expect(told.filter((one) => one === 'no space to queue a report').length).toBeGreaterThanOrEqual(16)
    expect(told).toContain('read')
    reader.stop()
    const impatient = openReader(deps, { waitMs: 1 })
    await expect(impatient.read(bounce(), { atMs, network: 'x' })).rejects.toThrow('too many unread reports')
    impatient.stop()
  }, 60_000)
})
