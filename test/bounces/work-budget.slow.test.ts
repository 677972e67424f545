/** CPU time of reading a report that was written to be expensive. */
import { describe, expect, test } from 'vitest'
import { readReport } from '#bounces'
import { cpuMs, unitMs } from '../support/cpu-time.ts'
import { worstReports } from '../support/worst-reports.ts'

const kibibyte = 1024
const mebibyte = 1024 * kibibyte
/** Some 150 ms. Run alone, reading takes a third of this. It took half a second and more where the cost was quadratic. */
const most100KibUnits = 750
/** Some 600 ms. */
const maxEverUnits = 3_000
const maxGrowth = 2.6
/** Some 50 ms. Below, chance decides which of two readings takes longer. */
const countedUnits = 250

/** The minimum of three runs: other programs use a share of the CPU caches. The unit is measured beside each, because their share varies. */
const costOf = (octets: Buffer) => Math.min(...[1, 2, 3].map(() => cpuMs(() => readReport(octets)) / unitMs()))

describe('reading a report costs little, with any content', () => {
  test.each(Object.entries(worstReports))(
    '%s',
    (_, make) => {
      const [one, two] = [costOf(make(100 * kibibyte)), costOf(make(200 * kibibyte))]
      expect(one).toBeLessThan(most100KibUnits)
      if (two > countedUnits) expect(two / one).toBeLessThan(maxGrowth)
      expect(costOf(make(20 * mebibyte))).toBeLessThan(maxEverUnits)
    },
    60_000,
  )
})

describe('content that would cost too much', () => {
  const bounce = (octets: number) =>
    Buffer.concat([
      Buffer.from('From: mailer-daemon@x.example\r\nContent-Type: multipart/report; boundary=r\r\n\r\n'),
      Buffer.from(`--r\r\n\r\n${'x'.repeat(99)}\r\n`.padEnd(octets)),
      Buffer.from('\r\n--r\r\nContent-Type: message/delivery-status\r\n\r\n'),
      Buffer.from('Final-Recipient: rfc822; ann@b.example\r\nAction: failed\r\nStatus: 5.1.1\r\n--r--\r\n'),
    ])

  test('stays unread as a whole, and blames no recipient', () => {
    const parts = `--b\r\n\r\n${'word '.repeat(20_000)}\r\n`.repeat(30)
    const failure = '--b\r\nContent-Type: message/delivery-status\r\n\r\nFinal-Recipient: rfc822; a@b.example\r\nStatus: 5.1.1\r\n'
    const octets = Buffer.from(
      `From: mailer-daemon@x.example\r\nContent-Type: multipart/report; boundary=b\r\n\r\n${parts}${failure}--b--\r\n`,
    )
    expect(readReport(octets)).toMatchObject({ kind: 'other', unread: true, permanent: false, recipient: null, recipients: [] })
  })

  test('is no bounce of the world: one of 20 MB is read, and so is one that was passed on', () => {
    expect(readReport(bounce(20 * mebibyte))).toMatchObject({ kind: 'bounce', unread: false, recipient: 'ann@b.example' })
    const passedOn = Buffer.from(
      `From: joe@b.example\r\nSubject: Fwd: help\r\n\r\nwhat is this?\r\n\r\nFrom: Mail Delivery System <mailer-daemon@x.example>\r\nSubject: Undelivered\r\n\r\n<ann@b.example>: 550 5.1.1 user unknown\r\n`,
    )
    expect(readReport(passedOn)).toMatchObject({ kind: 'bounce', unread: false, recipient: 'ann@b.example' })
  })
})
