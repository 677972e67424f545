/** Reports from strangers: archives that unpack to gigabytes, XML that grows or nests, and damaged ones. Each is refused, or bounded. */
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { openReportMailReader } from '#domain-reports'
import { attachedMail, generateReport, mailOf, seededDraw, xmlOf, zipOf } from '../support/dmarc-dialects.ts'

const mebibyte = 1_048_576
const reader = openReportMailReader({ clock: systemClock, log: silentLog })
afterAll(() => reader.stop())

const read = (mail: Buffer) => reader.read(mail, { atMs: systemClock.nowMs(), network: 'x' })
const whyOf = async (content: Buffer | string) => {
  const mail = await read(attachedMail({ content: Buffer.from(content) }))
  return mail.kind === 'unreadable' ? mail.why : mail.kind
}

const good = xmlOf(generateReport(0, 'a.test', systemClock.nowMs(), seededDraw(1)))
const withRecords = (records: string) => good.replace(/<record>[\s\S]*<\/record>/, records)
const record = (source: string, count = '1') =>
  `<record><row><source_ip>${source}</source_ip><count>${count}</count></row><identifiers><header_from>a.test</header_from></identifiers></record>`

describe('a hostile report', () => {
  test.each<[string, () => Buffer | string, string]>([
    ['gzip of 200 MB', () => gzipSync(Buffer.alloc(200 * mebibyte, 32)), 'unpacks to more than 20971520 octets'],
    [
      'gzip of 10 MB in 10 kB',
      () => gzipSync(Buffer.alloc(10 * mebibyte, 32)),
      expect.stringMatching(/^unpacks to more than 20\d{5} octets$/),
    ],
    ['zip of 200 MB', () => zipOf('a.xml', Buffer.alloc(200 * mebibyte, 32)), 'unpacks to more than 20971520 octets'],
    ['gzip cut short', () => gzipSync(Buffer.from(good)).subarray(0, 200), 'is packed incorrectly'],
    ['zip cut short', () => zipOf('a.xml', Buffer.from(good)).subarray(0, 200), 'is packed incorrectly'],
    ['zip without a directory', () => Buffer.from(`PK\x03\x04${'x'.repeat(100)}`, 'latin1'), 'is packed incorrectly'],
    ['an encrypted zip', () => zipOf('a.xml', Buffer.from(good), { flags: 1 }), 'is an encrypted archive'],
    ['a zip of a folder', () => zipOf('a/', Buffer.alloc(0)), 'is an archive without a file'],
    ['entities that grow', () => `<!DOCTYPE a [<!ENTITY b "&c;&c;">]>${good}`, 'has a document type or entities, which are not accepted'],
    [
      'an external entity',
      () => `<!DOCTYPE a SYSTEM "file:///etc/passwd">${good}`,
      'has a document type or entities, which are not accepted',
    ],
    ['an unknown entity', () => withRecords(record('&file;')), 'is not well-formed XML: it has an unknown entity'],
    ...['toString', '__proto__', 'valueOf'].map((name): [string, () => string, string] => [
      `the entity ${name}`,
      () => good.replace('google.com</org_name>', `&${name};</org_name>`),
      'is not well-formed XML: it has an unknown entity',
    ]),
    ['half a character', () => withRecords(record('&#xD800;')), 'is not well-formed XML: it has an unknown entity'],
    ['deep nesting', () => '<feedback>'.repeat(100_000), 'is not well-formed XML: it has more than 20 levels'],
    ['tags that do not match', () => good.replace('</org_name>', '</org>'), 'is not well-formed XML: it has tags that do not match'],
    ['an endless tag', () => `<feedback a="${'x'.repeat(5 * mebibyte)}`, 'is not well-formed XML: it has a malformed tag'],
    ['an endless comment', () => `<feedback><!--${'-'.repeat(5 * mebibyte)}`, 'is not well-formed XML: it ends too early'],
    ['another document', () => '<html><body/></html>', 'is not a DMARC aggregate report'],
    ['no domain', () => good.replace('<domain>a.test</domain>', ''), 'does not name a domain'],
    ['no period', () => good.replace(/<begin>\d+/, '<begin>yesterday'), 'does not name its period'],
    ['a record without a count', () => withRecords(record('192.0.2.1', 'many')), 'has a record without a count'],
    ['too many messages', () => withRecords(record('192.0.2.1', '9'.repeat(13))), 'counts more than 1000000000000 messages'],
    ['deep JSON', () => '{"a":'.repeat(100_000), 'has more than 20 levels'],
    ['JSON of 5 MB', () => `[${'[],'.repeat(1_700_000)}[]]`.replace('[', '{"a":['), 'is too large'],
    ['JSON cut short', () => '{"organization-name":', 'is not JSON'],
    [
      'a TLS report without policies',
      () => '{"date-range":{"start-datetime":"2026-01-01T00:00:00Z","end-datetime":"2026-01-02T00:00:00Z"}}',
      'has no policies',
    ],
    ['a picture', () => Buffer.from('89504e470d0a1a0a', 'hex'), 'is missing: the message has no attachment in XML, JSON, gzip or zip'],
  ])('%s', async (_, make, why) => {
    expect(await whyOf(make())).toEqual(why)
  })

  test('of more than a million elements is unreadable, and one of fewer is read', async () => {
    const many = (count: number) =>
      withRecords(`<a>${'<b/>'.repeat(count)}<!--${randomBytes(200_000).toString('hex')}--></a>${record('192.0.2.1')}`)
    expect(await whyOf(gzipSync(many(990_000)))).toBe('dmarc')
    expect(await whyOf(gzipSync(many(1_000_000)))).toBe('has more than 1000000 elements')
  })

  test('has its records where they belong, however deep others nest', async () => {
    const deep = ['row', 'x'.repeat(99), 'record', 'record', 'row', 'count']
    const nested =
      deep.map((name) => `<${name}>`).join('') +
      '7' +
      deep
        .toReversed()
        .map((name) => `</${name}>`)
        .join('')
    const report = withRecords(record('192.0.2.1', '3').replace('<row>', `${nested}<row>`))
    const mail = await read(attachedMail({ content: Buffer.from(report) }))
    expect(mail.kind === 'dmarc' && mail.report.rows.map(({ source, messages }) => [source, messages])).toEqual([['192.0.2.1', 3]])
  })

  test('a message that is not mail at all is unreadable', async () => {
    for (const octets of [Buffer.alloc(0), Buffer.from('no mail'), Buffer.alloc(1000, 255)])
      expect(await read(octets)).toMatchObject({ kind: 'unreadable' })
  })

  test('has no more than 5,000 sources kept apart, and loses no count', async () => {
    const many = Array.from({ length: 30_000 }, (_, n) => record(`10.0.${n >> 8}.${n & 255}`, '2')).join('')
    const mail = await read(attachedMail({ content: gzipSync(withRecords(many + record('no address'))) }))
    if (mail.kind !== 'dmarc') throw new Error(JSON.stringify(mail))
    expect(mail.report.rows).toHaveLength(5_001)
    expect(mail.report.rows.reduce((sum, { messages }) => sum + messages, 0)).toBe(60_001)
    expect(mail.report.rows.filter(({ source }) => source === '')).toMatchObject([{ messages: 50_001 }])
  })

  test('texts of a megabyte are cut, and the largest report is read in time with little memory', async () => {
    const long = 'x'.repeat(mebibyte)
    const mail = await read(attachedMail({ content: Buffer.from(good.replace('google.com</org_name>', `${long}</org_name>`)) }))
    expect(mail.kind === 'dmarc' && mail.report.reporter.length).toBe(300)
    const before = process.memoryUsage().rss
    const largest = withRecords(
      record('192.0.2.1')
        .repeat(150_000)
        .slice(0, 20_000_000)
        .replace(/<record>(?:(?!<\/record>)[^])*$/, ''),
    )
    const one = await read(attachedMail({ content: gzipSync(Buffer.from(largest).fill(' ', 0, 0)) }))
    // So similar records pack to less than a two-hundredth, which no real report does.
    expect(one).toEqual({ kind: 'unreadable', why: expect.stringMatching(/^unpacks to more than \d+ octets$/) })
    const plain = await read(
      attachedMail({ content: Buffer.from(largest.slice(0, 13_000_000).replace(/<record>(?:(?!<\/record>)[^])*$/, '</feedback>')) }),
    )
    expect(plain.kind === 'dmarc' && plain.report.rows).toMatchObject([{ source: '192.0.2.1' }])
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * mebibyte)
  })
})

test('a report about one message and a complaint are distinguished from aggregate reports', async () => {
  const forensic = attachedMail({ contentType: 'message/feedback-report', content: Buffer.from('Feedback-Type: auth-failure\r\n') })
  expect(await read(forensic)).toEqual({ kind: 'forensic' })
  expect((await read(mailOf(generateReport(5, 'a.test', systemClock.nowMs(), seededDraw(1)), 'x@y.test'))).kind).toBe('dmarc')
})
