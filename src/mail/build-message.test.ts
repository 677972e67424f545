import fc from 'fast-check'
import PostalMime from 'postal-mime'
import { describe, expect, test } from 'vitest'
import type { Mailbox } from './address.ts'
import { buildMessage } from './build-message.ts'
import { dotStuff, encodeQuotedPrintable } from './encode-body.ts'
import { parseMailbox } from './mailbox.ts'
import { prepareRaw, readRaw, toSevenBit } from './raw-message.ts'
import { readMessage } from './read-message.ts'
import type { MessageParts } from './types.ts'

const parts = (some: Partial<MessageParts> = {}): MessageParts => ({
  from: parseMailbox('Shop <shop@example.com>') as Mailbox,
  to: ['ann@example.org'],
  cc: [],
  subject: 'Hello',
  dateMs: 1_790_000_000_000,
  messageId: '<a@example.com>',
  headers: [],
  attachments: [],
  boundarySeed: 'seed',
  ...some,
})

/** RFC 5322 section 2.1.1 and 2.3: lines of at most 998 octets, ended only by CRLF. */
function expectSendable(octets: Buffer): void {
  const text = octets.toString('latin1')
  expect(text.endsWith('\r\n')).toBe(true)
  for (const line of text.slice(0, -2).split('\r\n')) {
    expect(line.length).toBeLessThanOrEqual(998)
    expect(/[\r\n]/.test(line)).toBe(false)
  }
}

/** Text of one line: no control characters. */
const line = fc.string({ unit: 'grapheme', maxLength: 300 }).map((text) => text.replace(/[\p{Cc}\p{Cs}]/gu, '').trim())
const body = fc.string({ unit: 'grapheme', maxLength: 3000 }).map((text) => text.replace(/[\0\p{Cs}]/gu, ''))
const lines = (text: string | undefined) => (text ?? '').replace(/\r\n|\r/g, '\n').trimEnd()

describe('a built message', () => {
  test('reads as the sent message: alternatives, an inline image, an attachment with any name', async () => {
    const { octets } = buildMessage(
      parts({
        subject: 'Grüße – 你好',
        html: '<p>Grüße <img src="cid:logo"></p>',
        text: 'Grüße',
        cc: ['bob@example.org'],
        replyTo: 'reply@example.com',
        headers: [['X-Order', '4711']],
        attachments: [
          { filename: 'lögo "1".png', contentType: 'image/png', content: Buffer.from([1, 2, 3]), contentId: 'logo' },
          { filename: `${'a very long name '.repeat(12)}.pdf`, contentType: 'application/pdf', content: Buffer.alloc(200, 7) },
        ],
      }),
    )
    const read = await PostalMime.parse(octets)
    expect(read.subject).toBe('Grüße – 你好')
    expect(lines(read.html)).toBe('<p>Grüße <img src="cid:logo"></p>')
    expect(lines(read.text)).toBe('Grüße')
    expect(read.from).toMatchObject({ name: 'Shop', address: 'shop@example.com' })
    expect(read.cc?.map((one) => one.address)).toEqual(['bob@example.org'])
    expect(read.attachments.map((one) => [one.filename, one.mimeType, one.contentId ?? null])).toEqual([
      ['lögo "1".png', 'image/png', '<logo>'],
      [`${'a very long name '.repeat(12)}.pdf`, 'application/pdf', null],
    ])
    expectSendable(octets)
  })

  test('is the same octets for the same parts', () => {
    expect(buildMessage(parts({ html: '<p>a</p>', text: 'a' }))).toEqual(buildMessage(parts({ html: '<p>a</p>', text: 'a' })))
  })

  test('without text and html has an empty text', async () => {
    expect(lines((await PostalMime.parse(buildMessage(parts()).octets)).text)).toBe('')
  })

  test('keeps a header value of 998 characters without a space within lines of 998 octets', async () => {
    const value = 'x'.repeat(998)
    const { octets } = buildMessage(parts({ headers: [['X-Long', value]] }))
    expectSendable(octets)
    expect(readMessage(octets).headers['X-Long']).toBe(value)
  })

  test('always: a value of words and runs of spaces is folded without a line that is too long or only white space', () => {
    const words = fc.array(fc.constantFrom('a', 'bc', ' ', '  ', 'word', 'x'.repeat(80)), { maxLength: 500 })
    const name = `X-${'n'.repeat(74)}`
    fc.assert(
      fc.property(words, (given) => {
        const value = given.join(' ').slice(0, 998).trim()
        const { octets } = buildMessage(parts({ subject: value, headers: [[name, value]] }))
        expectSendable(octets)
        const text = octets.toString('latin1')
        const head = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n')
        expect(head.filter((one) => one.trim() === '')).toEqual([])
        expect(head.filter((one) => one.length > 79 && !/ {20}|x{80}|n{74}/.test(one))).toEqual([])
        expect(readMessage(octets).headers).toMatchObject({ Subject: value, [name]: value })
      }),
      { examples: [[Array(250).fill('ab ')]] },
    )
  })

  test('keeps the URL of List-Unsubscribe with any content', () => {
    const url = '<https://shop.example/u?id=?4711&to=?UTF-8?Q?a?=>'
    const { octets } = buildMessage(parts({ headers: [['List-Unsubscribe', url]] }))
    expect(octets.toString('latin1')).toContain(`\r\nList-Unsubscribe: ${url}\r\n`)
  })

  test('always: any subject, display name, file name, header value and body comes through', async () => {
    await fc.assert(
      fc.asyncProperty(line, line, line, body, body, async (subject, name, filename, text, html) => {
        const from = { name: name === '' ? undefined : name, address: (parseMailbox('a@example.com') as Mailbox).address }
        const attachments = filename === '' ? [] : [{ filename, contentType: 'application/octet-stream', content: Buffer.from(text) }]
        const { octets } = buildMessage(parts({ subject, from, text, html, attachments, headers: [['X-Any', subject]] }))
        expectSendable(octets)
        const read = await PostalMime.parse(octets)
        expect(read.subject ?? '').toBe(subject)
        expect(read.from?.name ?? '').toBe(name)
        expect(lines(read.text)).toBe(lines(text))
        expect(lines(read.html)).toBe(lines(html))
        expect(read.attachments.map((one) => one.filename)).toEqual(filename === '' ? [] : [filename])
      }),
      { numRuns: 200 },
    )
  })

  test('always: the reader of this module agrees with the built message', () => {
    fc.assert(
      fc.property(line, body, (subject, text) => {
        const read = readMessage(buildMessage(parts({ subject, text })).octets)
        expect(read.headers.Subject ?? '').toBe(subject)
        expect(lines(read.text)).toBe(lines(text))
      }),
    )
  })
})

describe('an attached message', () => {
  const attached = (content: string | Buffer, contentType = 'message/rfc822') =>
    buildMessage(parts({ text: 'See below', attachments: [{ filename: 'original.eml', contentType, content: Buffer.from(content) }] }))
  const letter = 'From: b@example.com\r\nSubject: inner\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n'
  const partOf = (octets: Buffer) => readMessage(octets).attachments[0]

  test.each([
    ['7bit', `${letter}Hello\r\n.\r\n`],
    ['8bit', `${letter}Grüße\r\n`],
    ['8bit', `Subject: Grüße\r\n\r\n`],
  ])('stays message/rfc822 in %s, octet for octet', (encoding, text) => {
    const { octets, needs8bit } = attached(text, 'Message/RFC822; charset=us-ascii')
    expect(partOf(octets)).toEqual({ filename: 'original.eml', contentType: 'message/rfc822', content: Buffer.from(text) })
    expect(octets.toString().split(`Content-Transfer-Encoding: ${encoding}\r\nContent-Disposition: attachment`).length).toBe(2)
    expect(needs8bit).toBe(encoding === '8bit')
    // Every part that contains 8-bit data declares it, up to the top (RFC 2045 section 6.4).
    expect(/^Content-Transfer-Encoding: 8bit\r?$/m.test(octets.toString().split('\r\n\r\n')[0] ?? '')).toBe(needs8bit)
    expectSendable(octets)
  })

  test('is written anew in seven bits for a server that takes no others', async () => {
    const octets = toSevenBit(attached(`${letter}Grüße\r\n`).octets)
    expect(octets.toString('latin1')).toMatch(/^[\x01-\x7f]*$/)
    const { contentType, content } = partOf(octets) ?? {}
    expect(contentType).toBe('message/rfc822')
    expect(await PostalMime.parse(content as Buffer)).toMatchObject({ subject: 'inner', text: 'Grüße\n' })
  })

  test('with lines or NULs that SMTP cannot carry is written anew, and stays a message', async () => {
    const { octets } = attached(`${letter}${'word '.repeat(300)}\0end\r\n`)
    expectSendable(octets)
    const { contentType, content } = partOf(octets) ?? {}
    expect(contentType).toBe('message/rfc822')
    expect((await PostalMime.parse(content as Buffer)).text?.trimEnd()).toBe(`${'word '.repeat(300)}\0end`)
  })

  test.each([
    ['no message', 'message/rfc822', Buffer.from([0, 1, 2, 200])],
    ['nothing', 'message/rfc822', Buffer.alloc(0)],
    ['a part of a message', 'message/partial; id=1', Buffer.from(letter)],
  ])('that is %s travels as data', (_, contentType, content) => {
    const part = partOf(attached(content, contentType).octets)
    expect(part).toEqual({ filename: 'original.eml', contentType: 'application/octet-stream', content })
  })

  test('always: any octets behind a header come out as they went in, or as a message of the same content', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), (body) => {
        const { octets } = attached(Buffer.concat([Buffer.from(letter), body]))
        expectSendable(octets)
        expect(partOf(octets)?.contentType).toBe('message/rfc822')
      }),
    )
  })
})

test('a file name that looks like an encoded word is written as no encoded word, and read as it was', () => {
  for (const filename of ['=?utf-8?B?w7w=?=.pdf', '=?utf-8?Q?x?=', 'a =?x', '100%=?.txt']) {
    const { octets } = buildMessage(parts({ attachments: [{ filename, contentType: 'application/pdf', content: Buffer.from('x') }] }))
    expect(octets.toString()).not.toContain('=?')
    expect(readMessage(octets).attachments[0]?.filename).toBe(filename)
  }
})

describe('a raw message', () => {
  const raw = (head: string, text = 'Hello\r\n') => Buffer.from(`${head}\r\n${text}`, 'latin1')
  const add = { dateMs: 1_790_000_000_000, messageId: '<new@example.com>' }

  test('loses its Bcc and gains its missing fields', () => {
    const { octets } = prepareRaw(raw('From: a@example.com\r\nBcc: secret@example.org,\r\n other@example.org\r\nSubject: x\r\n'), add)
    const { headers } = readMessage(octets)
    expect(headers).toMatchObject({ From: 'a@example.com', Subject: 'x', 'Message-ID': '<new@example.com>', 'MIME-Version': '1.0' })
    expect(octets.toString()).not.toContain('secret@example.org')
    expect(octets.toString()).not.toContain('other@example.org')
  })

  test.each([
    ['no header block', Buffer.from('just text'), 'no-header-block'],
    ['no From', raw('To: a@example.com\r\n'), 'no-from'],
    ['two From', raw('From: a@example.com\r\nFrom: b@example.com\r\n'), 'several-from'],
    ['a From that is none', raw('From: nobody\r\n'), 'bad-from'],
  ])('with %s is distinguished', (_name, octets, problem) => {
    expect(readRaw(octets)).toBe(problem)
  })

  test('always becomes sendable, with any octets', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), (octets) => {
        const { octets: built } = prepareRaw(Buffer.concat([Buffer.from('From: a@example.com\r\n\r\n'), Buffer.from(octets)]), add)
        expectSendable(built)
      }),
    )
  })

  test('reading never throws, with any octets', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), (octets) => {
        readRaw(Buffer.from(octets))
        readMessage(Buffer.from(octets))
      }),
    )
  })
})

describe('octets for the wire', () => {
  test('dots at the start of lines are doubled, and no others', () => {
    expect(dotStuff(Buffer.from('.a\r\nb.\r\n..c\r\n')).toString()).toBe('..a\r\nb.\r\n...c\r\n')
  })

  test('always: undoing the dots gives the octets back', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('.', 'a', '\r\n', '..', 'b.'), { maxLength: 40 }), (pieces) => {
        const text = `${pieces.join('')}\r\n`
        expect(dotStuff(Buffer.from(text)).toString().replace(/^\.\./gm, '.')).toBe(text)
      }),
    )
  })

  test('quoted-printable has lines of at most 76 octets and no space at their ends', () => {
    fc.assert(
      fc.property(body, (text) => {
        for (const one of encodeQuotedPrintable(Buffer.from(text)).toString('latin1').split('\r\n')) {
          expect(one.length).toBeLessThanOrEqual(76)
          expect(/[ \t]$/.test(one)).toBe(false)
        }
      }),
    )
  })

  test('always: undoing quoted-printable gives the text back', () => {
    const pieces = fc.array(fc.constantFrom('\r\n', '.', 'é', ' ', 'a', '=', 'word '.repeat(20), '.'.repeat(80)), { maxLength: 60 })
    fc.assert(
      fc.property(pieces, (some) => {
        const text = some.join('')
        const undone = encodeQuotedPrintable(Buffer.from(text))
          .toString('latin1')
          .replaceAll('=\r\n', '')
          .replace(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
        expect(Buffer.from(undone, 'latin1').toString()).toBe(text)
      }),
    )
  })
})
