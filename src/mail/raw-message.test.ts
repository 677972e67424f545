/**
 * Raw messages from callers: refusals, parsed facts, and output that keeps the line rules of RFC 5322.
 */
import fc from 'fast-check'
import PostalMime from 'postal-mime'
import { describe, expect, test } from 'vitest'
import { prepareRaw, type RawFacts, readRaw, toSevenBit, withoutFields } from './raw-message.ts'

const add = { dateMs: 1_790_000_000_000, messageId: '<ours@example.com>' }
const octetsOf = (text: string) => Buffer.from(text.replaceAll('\n', '\r\n'))
const facts = (text: string) => readRaw(octetsOf(text)) as RawFacts
const prepared = (text: string) => prepareRaw(octetsOf(text), add).octets.toString('latin1').replaceAll('\r\n', '\n')

/** RFC 5322 sections 2.1.1 and 2.3. */
function expectSendable(octets: Buffer): void {
  const text = octets.toString('latin1')
  expect(text.endsWith('\r\n')).toBe(true)
  const lines = text.slice(0, -2).split('\r\n')
  expect(lines.filter((line) => line.length > 998 || /[\r\n]/.test(line))).toEqual([])
}

describe('reading a raw message', () => {
  test.each([
    ['', 'no-header-block'],
    ['\nbody', 'no-header-block'],
    ['no colon here', 'no-header-block'],
    ['Subject: x\nnot a field\n\nbody', 'header-line-malformed'],
    [' folded: first\n\n', 'header-line-malformed'],
    ['From: a@example.com\nX: a\0b\n\n', 'header-line-malformed'],
    ['Subject: x\n\nFrom: a@example.com', 'no-from'],
    ['From: a@example.com\nfrom: b@example.com\n\n', 'several-from'],
    ['From: nobody\n\n', 'bad-from'],
    ['From: a@example.com, b@example.com\n\n', 'bad-from'],
  ])('%j is refused as %s', (text, problem) => {
    expect(readRaw(octetsOf(text))).toBe(problem)
  })

  test('more than 256 KB or 1000 fields of header are refused', () => {
    expect(readRaw(octetsOf(`From: a@example.com\nX: ${'y'.repeat(262_200)}\n\n`))).toBe('header-line-malformed')
    expect(readRaw(octetsOf(`From: a@example.com\n${'X: y\n'.repeat(1000)}\n`))).toBe('header-line-malformed')
    expect(facts(`From: a@example.com\n${'X: y\n'.repeat(999)}\n`).from.address.text).toBe('a@example.com')
  })

  test('unfolds and decodes its fields', () => {
    const read = facts(
      'FROM: =?UTF-8?Q?M=C3=BCller=2C_Ann?=\n <ann@Example.com>\nSubject: =?ISO-8859-1?Q?Gr=FC=DFe?=\n =?ISO-8859-1?Q?_dir?=\nMessage-ID: <m@x>\nX-A: 1\nx-a: 2\n\n',
    )
    expect(read.from).toMatchObject({ name: 'Müller, Ann', address: { text: 'ann@example.com' } })
    expect(read).toMatchObject({ subject: 'Grüße dir', messageId: '<m@x>' })
    expect(read.headers['X-A']).toBe('1, 2')
  })

  test('takes bare line feeds, and a header block alone', () => {
    expect(readRaw(Buffer.from('From: a@example.com\nSubject: x\n\nbody'))).toMatchObject({ subject: 'x' })
    expect(readRaw(Buffer.from('From: a@example.com'))).toMatchObject({ from: { address: { text: 'a@example.com' } } })
  })

  test('an address hidden in encoded words is not the sender', () => {
    expect(readRaw(octetsOf('From: =?utf-8?q?=3Cours@example.com=3E?=\n\n'))).toBe('bad-from')
    expect(readRaw(octetsOf('From: evil@example.net =?utf-8?q?=3Cours@example.com=3E?=\n\n'))).toBe('bad-from')
    expect(readRaw(octetsOf('From: =?utf-8?q?=3Cours@example.com=3E?= <evil@example.net>\n\n'))).toBe('bad-from')
    expect(readRaw(octetsOf('From: =?utf-8?q?=3Cours=40example.com=3E?= <evil@example.net>\n\n'))).toBe('bad-from')
  })

  test('a field named like a part of every object is a field', () => {
    const { headers } = facts('From: a@example.com\n__proto__: x\nconstructor: y\n\n')
    expect(Object.keys(headers)).toEqual(['From', '__proto__', 'constructor'])
    expect(Object.getPrototypeOf(headers)).toBe(Object.prototype)
  })
})

describe('preparing a raw message', () => {
  test('drops Bcc and Return-Path with their folds, keeps order and signatures, adds missing fields at the end', () => {
    const text =
      'Return-Path: <r@x>\nDKIM-Signature: v=1;\n b=abc\nFrom: a@example.com\nBCC: x@example.org,\n y@example.org\nSubject: S\n\nbody'
    expect(prepared(text)).toBe(
      'DKIM-Signature: v=1;\n b=abc\nFrom: a@example.com\nSubject: S\nDate: Mon, 21 Sep 2026 14:13:20 +0000\n' +
        'Message-ID: <ours@example.com>\nMIME-Version: 1.0\n\nbody\n',
    )
  })

  test('keeps the present fields, except a Message-ID that is none', () => {
    const text = 'From: a@example.com\nDate: D\nMessage-Id: <m@x>\nMIME-Version: 1.0\n\nbody\n'
    expect(prepared(text)).toBe(text)
    expect(prepared(text.replace('<m@x>', 'nonsense'))).toBe(
      'From: a@example.com\nDate: D\nMIME-Version: 1.0\nMessage-ID: <ours@example.com>\n\nbody\n',
    )
  })

  test('the ARC chain stays only in a forwarded message, and results of servers in none', () => {
    const arc = 'ARC-Seal: i=1\n'
    const text = 'Authentication-Results: x\nFrom: a@example.com\nDate: D\nMessage-ID: <m@x>\nMIME-Version: 1.0\n\nx\n'
    const own = text.replace('Authentication-Results: x\n', '')
    expect(prepared(arc + text)).toBe(own)
    const kept = prepareRaw(octetsOf(arc + text), { ...add, keepsArc: true }).octets
    expect(kept.toString().replaceAll('\r\n', '\n')).toBe(arc + own)
  })

  test('bare CR and LF become line ends, and a Bcc behind one is dropped too', () => {
    const { octets } = prepareRaw(
      Buffer.from('From: a@example.com\rBcc: x@example.org\nDate: D\nMessage-ID: <m@x>\nMIME-Version: 1\n\na\rb\nc\r\nd'),
      add,
    )
    expect(octets.toString()).toBe('From: a@example.com\r\nDate: D\r\nMessage-ID: <m@x>\r\nMIME-Version: 1\r\n\r\na\r\nb\r\nc\r\nd\r\n')
  })

  test('long header lines are folded at white space, or else between characters', async () => {
    const words = Array(300).fill('wörter').join(' ')
    const { octets, needsSmtpUtf8 } = prepareRaw(
      octetsOf(`From: a@example.com\nSubject: ${words}\nX-Long: ${'ü'.repeat(2000)}\nX-Blank: a${' '.repeat(3000)}b\n\nx`),
      add,
    )
    expectSendable(octets)
    expect(needsSmtpUtf8).toBe(true)
    expect((readRaw(octets) as RawFacts).subject).toBe(words)
    expect((readRaw(octets) as RawFacts).headers['X-Long']?.replaceAll(' ', '')).toBe('ü'.repeat(2000))
    expect(octets.toString()).not.toMatch(/\r\n[ \t]+\r\n/)
  })

  test('long body lines are re-encoded, part by part, and every part is kept', async () => {
    const parts = Array.from(
      { length: 300 },
      (_, index) => `--b\nContent-Type: application/x${index}\nContent-Transfer-Encoding: base64\n\nQUJD\n`,
    )
    const long = `--b\n\n${'word '.repeat(400)}end\n--b\nContent-Type: multipart/alternative; boundary="b1"\n\n--b1\n\nplain\n--b1\nContent-Type: text/html\n\n<p>ü</p>\n--b1--\n`
    const { octets, needs8bit } = prepareRaw(
      octetsOf(`From: a@example.com\nContent-Type: multipart/mixed; boundary=b\n\npreamble\n${long}${parts.join('')}--b--\n`),
      add,
    )
    expectSendable(octets)
    expect(needs8bit).toBe(false)
    const read = await PostalMime.parse(octets)
    expect(read.attachments.length).toBe(300)
    expect(read.text?.replaceAll('\r\n', '\n').trim()).toBe(`${'word '.repeat(400)}end\n\nplain`)
    expect(read.html?.trim()).toContain('<p>ü</p>')
  })
})

describe('a message in seven bits', () => {
  test('keeps text, charsets, file names and enclosed messages', async () => {
    const inner = 'From: b@example.com\nSubject: inner\nContent-Type: text/plain; charset=utf-8\n\nTschüs\n'
    const message = octetsOf(
      `From: a@example.com\nContent-Type: multipart/mixed; boundary="b c"\nContent-Transfer-Encoding: 8bit\n\n--b c\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nGrüße\n--b c\nContent-Type: application/pdf; name="Grüße.pdf"\nContent-Disposition: attachment; filename="Grüße.pdf"\n\nü\n--b c\nContent-Type: message/rfc822\nContent-Disposition: attachment\n\n${inner}\n--b c--\n`,
    )
    const octets = toSevenBit(message)
    expectSendable(octets)
    expect(octets.toString('latin1')).toMatch(/^[\x01-\x7f]*$/)
    const read = await PostalMime.parse(octets, { forceRfc822Attachments: true })
    expect(read.text?.trim()).toBe('Grüße')
    expect(read.attachments.map((one) => one.filename)).toContain('Grüße.pdf')
    expect(Buffer.from(read.attachments[0]?.content as ArrayBuffer).toString()).toBe('ü')
    const enclosed = await PostalMime.parse(read.attachments[1]?.content as ArrayBuffer)
    expect(enclosed).toMatchObject({ subject: 'inner' })
    expect(enclosed.text?.trim()).toBe('Tschüs')
  })

  test('of a multipart without parts keeps the octets', async () => {
    const octets = toSevenBit(octetsOf('From: a@example.com\nContent-Type: multipart/mixed; boundary=nowhere\n\nGrüße\n'))
    expect(octets.toString('latin1')).toMatch(/^[\x01-\x7f]*$/)
    const read = await PostalMime.parse(octets)
    expect(Buffer.from(read.attachments[0]?.content as ArrayBuffer).toString()).toBe('Grüße\r\n')
  })

  test('is the same octets when it was so before', () => {
    const octets = octetsOf('From: a@example.com\n\nplain\n')
    expect(toSevenBit(octets)).toBe(octets)
  })

  test('of parts inside parts for ever ends', () => {
    const nested = Array.from({ length: 300 }, (_, index) => `Content-Type: multipart/mixed; boundary=b${index}\n\n--b${index}\n`).join('')
    const octets = toSevenBit(octetsOf(`From: a@example.com\n${nested}\nü\n`))
    expect(octets.toString('latin1')).toMatch(/^[\x01-\x7f]*$/)
  })
})

describe('always', () => {
  const octet = fc.oneof(fc.constantFrom(10, 13, 32, 58, 61, 0, 255), fc.nat(255))
  const noise = fc.array(octet, { maxLength: 400 }).map((octets) => Buffer.from(octets))
  const piece = fc.oneof(
    fc.constantFrom(
      'Content-Type: multipart/mixed; boundary=b\r\n',
      'Content-Type: message/rfc822\r\n',
      '--b\r\n',
      '--b--',
      '\r\n',
      '\n',
      '\r',
      'Bcc: x\r\n',
      ' folded\n',
    ),
    fc.constantFrom(
      'Content-Transfer-Encoding: base64\n',
      'Content-Type: text/plain; charset=utf-16\n',
      '=',
      '=?utf-8?q?=FF?=',
      'ü'.repeat(600),
      ' '.repeat(1200),
    ),
    fc.string(),
  )
  const message = fc.array(piece, { maxLength: 30 }).map((pieces) => Buffer.from(`From: a@example.com\r\n${pieces.join('')}`))

  test('any octets are read or refused, never thrown at', () => {
    fc.assert(fc.property(fc.oneof(noise, message), (octets) => ['string', 'object'].includes(typeof readRaw(octets))))
  })

  test('a prepared message has lines of at most 998 octets, ended only by CRLF, and in seven bits no other octets', () => {
    fc.assert(
      fc.property(fc.oneof(noise, message), (octets) => {
        const built = prepareRaw(octets, add)
        expectSendable(built.octets)
        const seven = toSevenBit(built.octets)
        expectSendable(seven)
        if (!built.needsSmtpUtf8) expect(seven.toString('latin1')).toMatch(/^[\x00-\x7f]*$/)
      }),
      { numRuns: 300 },
    )
  })
})

test('fields of a prefix are taken out of the header with their folds, and every other octet stays', () => {
  const line = fc.stringMatching(/^[ -~]{0,30}$/)
  const field = fc
    .tuple(
      fc.constantFrom('X-Ours-Tag', 'x-ours-a', 'X-OURS-', 'X-Our', 'From', 'X-Other-X-Ours-A'),
      line,
      fc.array(line, { maxLength: 2 }),
    )
    .map(([name, first, more]) => ({
      name,
      text: [`${name}:${first}`, ...more.map((one) => ` ${one}`)].map((one) => `${one}\r\n`).join(''),
    }))
  fc.assert(
    fc.property(fc.array(field, { maxLength: 8 }), fc.uint8Array({ maxLength: 60 }), (fields, rest) => {
      const body = Buffer.concat([Buffer.from('\r\nX-Ours-Tag: of the body\r\n'), rest])
      const whole = (some: readonly { text: string }[]) => Buffer.concat([Buffer.from(some.map((one) => one.text).join('')), body])
      const others = fields.filter(({ name }) => !name.toLowerCase().startsWith('x-ours-'))
      expect(withoutFields(whole(fields), 'x-ours-').equals(whole(others))).toBe(true)
    }),
  )
})
