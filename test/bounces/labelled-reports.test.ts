/** The labelled reports, whole and mutilated: the reader understands the whole ones and does not fail on the others. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readReport } from '#bounces'
import { quickCpuUnits } from '../support/cpu-time.ts'
import { judgeReports, share } from '../support/labelled-reports.ts'
import { mutated, randomFrom } from '../support/mutate-message.ts'

const folder = join(process.cwd(), 'test/corpus/reports')
const judgements = judgeReports(folder)
const kinds = ['bounce', 'delay', 'complaint', 'auto-reply', 'other']

describe('labelled reports', () => {
  test('there are at least 300, of all kinds', () => {
    expect(judgements.length).toBeGreaterThanOrEqual(300)
    expect(new Set(judgements.map(({ label }) => label.kind))).toEqual(new Set(kinds))
  })

  test('at least 95% are right on kind and recipient, 90% on classification', () => {
    const mistakes = judgements.filter(({ wrong }) => wrong.length > 0).map(({ label, wrong }) => `${label.file}: ${wrong.join(', ')}`)
    expect(share(judgements, 'kind', 'recipient'), mistakes.join('\n')).toBeGreaterThanOrEqual(0.95)
    expect(share(judgements, 'classification'), mistakes.join('\n')).toBeGreaterThanOrEqual(0.9)
    expect(share(judgements, 'status', 'originalMessageId'), mistakes.join('\n')).toBeGreaterThanOrEqual(0.95)
  })

  test('only failures are permanent, and only failures and delays have a classification', () => {
    for (const { report, label } of judgements) {
      if (report.kind !== 'bounce') expect(report.permanent, label.file).toBe(false)
      expect(report.classification !== null, label.file).toBe(report.kind === 'bounce' || report.kind === 'delay')
      expect(report.classificationCode !== null, label.file).toBe(report.classification !== null)
    }
  })
})

describe('mutilated reports', () => {
  const count = Number(process.env.REPORT_MUTATIONS ?? 2_000)
  /** Some 1 s. */
  const maxUnits = 5_000
  const maxGrowthOctets = 200 * 1024 * 1024

  test(`${count} are read without a crash and in little processor time, and memory stays flat`, () => {
    const originals = judgements.map(({ label }) => readFileSync(join(folder, label.file)))
    const random = randomFrom(20_260_302)
    const pick = () => originals[Math.floor(random() * originals.length)] as Buffer
    const unitsOf = quickCpuUnits(maxUnits, 1)
    let slowest = 0
    let rssAfterWarmUp = 0
    for (let index = 0; index < count; index++) {
      const octets = mutated(pick(), pick(), random)
      const units = unitsOf(() => {
        const { kind } = readReport(octets)
        if (!kinds.includes(kind)) expect.fail(`kind ${kind}`)
      })
      slowest = Math.max(slowest, units)
      if (index === Math.floor(count / 4)) rssAfterWarmUp = process.memoryUsage().rss
    }
    expect(slowest).toBeLessThan(maxUnits)
    expect(process.memoryUsage().rss - rssAfterWarmUp).toBeLessThan(maxGrowthOctets)
  }, 600_000)

  const million = 1_000_000
  const bombs: Record<string, () => string> = {
    '10,000 multiparts inside each other': () =>
      Array.from({ length: 10_000 }, (_, depth) => `Content-Type: multipart/mixed; boundary=b${depth}\n\n--b${depth}\n`).join(''),
    '10,000 messages inside each other': () => 'Content-Type: message/rfc822\n\n'.repeat(10_000),
    'a million parts': () => `Content-Type: multipart/mixed; boundary=b\n\n${'--b\n\n'.repeat(million)}`,
    'a million fields': () => `${'X: y\n'.repeat(million)}\nbody`,
    'a million parameters': () => `Content-Type: multipart/mixed${'; a=b'.repeat(million)}\n\nbody`,
    'a field of 10 MB': () => `Subject: ${'=?utf-8?q?a'.repeat(million)}\n\nbody`,
    '20 MB of base64': () => `From: mailer-daemon@x.example\nContent-Transfer-Encoding: base64\n\n${'QUJD'.repeat(5 * million)}`,
    'a million unclosed tags': () => `From: mailer-daemon@x.example\nContent-Type: text/html\n\n${'<a '.repeat(million)}`,
    'a million style elements': () => `From: mailer-daemon@x.example\nContent-Type: text/html\n\n${'<style>'.repeat(million)}`,
    'a million at signs': () => `From: mailer-daemon@x.example\n\n${'@'.repeat(million)}`,
    'a million addresses': () => `From: mailer-daemon@x.example\n\nfailed:\n${'a@b.example\n'.repeat(million)}`,
    'a million recipients': () =>
      `From: mailer-daemon@x.example\nContent-Type: message/delivery-status\n\n${'Final-Recipient: rfc822; a@b.example\nAction: failed\n\n'.repeat(200_000)}`,
    'a million codes': () => `From: mailer-daemon@x.example\n\n${'550 5.1.1 '.repeat(million)}`,
    'a million empty lines': () => `From: mailer-daemon@x.example\n\n${'\n'.repeat(million)}550 user unknown`,
    'spaces in a boundary line': () => `Content-Type: multipart/mixed; boundary="-"\n\n${`---${' '.repeat(1_000)}`.repeat(5_000)}`,
    'From: lines without end': () => `Subject: x\n\n${'From: Mail Delivery System\nSubject: y\n'.repeat(50_000)}`,
    'colons and digits': () => `From: mailer-daemon@x.example\n\n${'reason: 5'.repeat(million)}`,
  }

  /** Some 2 s. */
  const maxBombUnits = 10_000

  test.each(Object.entries(bombs))('%s take little processor time', (_, build) => {
    const octets = Buffer.from(build())
    const unitsOf = quickCpuUnits(maxBombUnits, 1)
    expect(unitsOf(() => expect(kinds).toContain(readReport(octets).kind))).toBeLessThan(maxBombUnits)
  })
})
