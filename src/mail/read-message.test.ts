/**
 * Parsed messages, compared with an independent parser.
 */
import fc from 'fast-check'
import PostalMime from 'postal-mime'
import { describe, expect, test } from 'vitest'
import type { Mailbox } from './address.ts'
import { buildMessage } from './build-message.ts'
import { parseMailbox } from './mailbox.ts'
import { decodeBody, partsOf, readMessage } from './read-message.ts'
import type { MessageParts } from './types.ts'

const octetsOf = (text: string) => Buffer.from(text.replaceAll('\n', '\r\n'))
const read = (text: string) => readMessage(octetsOf(text))

describe('reading a message', () => {
  test('finds text, html and attachments wherever they are nested', () => {
    const message = read(
      'Subject: S\nContent-Type: multipart/mixed; boundary="out"\n\npreamble\n--out\nContent-Type: multipart/alternative; boundary="out1"\n\n' +
        '--out1\n\nplain\n--out1\nContent-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n<p>Gr=FC=DFe =\nda</p> \t\n' +
        "--out1--\n--out\nContent-Type: application/pdf\nContent-Disposition: attachment; filename*0*=UTF-8''Gr%C3%BC; filename*1*=sse.pdf\n" +
        'Content-Transfer-Encoding: base64\n\nQUJD\n--out\nContent-Type: text/plain; name="=?UTF-8?B?w7wudHh0?="\n\nnote\n--out--\nepilogue',
    )
    expect(message).toMatchObject({ text: 'plain', html: '<p>Grüße da</p> \t' })
    expect(message.attachments).toEqual([
      { filename: 'Grüsse.pdf', contentType: 'application/pdf', content: Buffer.from('ABC') },
      { filename: 'ü.txt', contentType: 'text/plain', content: Buffer.from('note') },
    ])
  })

  test('without a content type is text, in an unknown charset as good as it gets', () => {
    expect(read('Subject: S\n\nplain').text).toBe('plain')
    expect(read('Content-Type: text/plain; charset=x-unheard-of\n\nGrüße').text).toBe('Grüße')
  })

  test('joins repeated names, and takes any name', () => {
    const { headers } = read('Received: a\nreceived: b\n__proto__: c\n\n')
    expect(Object.entries(headers)).toEqual([
      ['Received', 'a, b'],
      ['__proto__', 'c'],
    ])
  })

  test('a longer boundary is not the shorter one, and an unclosed part is a part', () => {
    const parts = partsOf(octetsOf('--b \none\n--b1\ntwo\n--b\nthree'), 'b', 10)
    expect(parts.map(String)).toEqual(['one\r\n--b1\r\ntwo', 'three'])
  })

  test('stops at 200 parts and 20 levels', () => {
    const many = `Content-Type: multipart/mixed; boundary=b\n\n${'--b\nContent-Type: image/png\n\nx\n'.repeat(500)}--b--\n`
    expect(read(many).attachments.length).toBe(199)
    const deep = Array.from({ length: 500 }, (_, index) => `Content-Type: multipart/mixed; boundary=b${index}\n\n--b${index}\n`).join('')
    expect(read(`${deep}\ntext`).text).toBeUndefined()
  })

  test('quoted-printable: either case, soft breaks with white space, and text that is no code stays', () => {
    expect(decodeBody(Buffer.from('=c3=BC=  \r\n=\n a=zz= =4 \t\r\n='), 'quoted-printable').toString()).toBe('ü a=zz= =4\r\n=')
  })
})

describe('always', () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 200 }).map((text) => text.replace(/[\p{Cc}\p{Cs}]/gu, '').trim())
  const body = fc.option(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 500 }).map((text) => text.replace(/[\0\ufeff\p{Cs}]/gu, '') || 'x'),
    { nil: undefined },
  )
  const attachment = fc.record({ filename: line.map((name) => name || 'a'), content: fc.uint8Array({ maxLength: 300 }) })
  const lines = (text: string | undefined) => (text ?? '').replace(/\r\n|\r/g, '\n').trimEnd()

  test('a built message reads as an independent reader reads it', async () => {
    await fc.assert(
      fc.asyncProperty(line, body, body, fc.array(attachment, { maxLength: 3 }), async (subject, html, text, attachments) => {
        const parts: MessageParts = {
          from: parseMailbox('shop@example.com') as Mailbox,
          to: ['ann@example.org'],
          cc: [],
          subject,
          dateMs: 1_790_000_000_000,
          messageId: '<a@example.com>',
          html,
          text,
          headers: [],
          attachments: attachments.map((one) => ({
            filename: one.filename,
            contentType: 'application/pdf',
            content: Buffer.from(one.content),
          })),
          boundarySeed: 'seed',
        }
        const { octets } = buildMessage(parts)
        const ours = readMessage(octets)
        const theirs = await PostalMime.parse(octets)
        expect(ours.headers['Subject'] ?? '').toBe(theirs.subject ?? '')
        if (html !== undefined) expect(lines(ours.html)).toBe(lines(theirs.html))
        if (text !== undefined) expect(lines(ours.text)).toBe(lines(theirs.text))
        expect(ours.attachments.map((one) => [one.filename, one.content.toString('hex')])).toEqual(
          theirs.attachments.map((one) => [one.filename, Buffer.from(one.content as ArrayBuffer).toString('hex')]),
        )
      }),
      { numRuns: 60 },
    )
  })

  test('any octets are read', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        'Content-Type: multipart/mixed; boundary=b\n',
        '--b\n',
        '--b--',
        '\n',
        '=',
        "filename*0*=x'y'%zz;",
        'Content-Type: text/html; charset="\\',
      ),
      fc.constantFrom(
        'Content-Transfer-Encoding: base64\n',
        'Content-Transfer-Encoding: quoted-printable\n',
        '=?utf-16?b?/w==?=',
        ' ;',
        '"',
      ),
      fc.string({ unit: 'binary' }),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const message = readMessage(Buffer.from(pieces.join('')))
        expect(Array.isArray(message.attachments)).toBe(true)
      }),
      { numRuns: 300 },
    )
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => typeof readMessage(Buffer.from(octets)) === 'object'))
  })
})
