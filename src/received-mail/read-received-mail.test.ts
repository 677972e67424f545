import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readReceivedMail } from './read-received-mail.ts'

const read = (text: string) => readReceivedMail(Buffer.from(text), 0)

describe('a received message', () => {
  test('is read into its parts', () => {
    const parts = read(
      [
        'Received: by a; now',
        'From: =?utf-8?q?J=C3=B6rg?= <Joerg@example.net>',
        'To: help@shop.test, other@shop.test',
        'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=',
        'Message-ID: <1@example.net>',
        'In-Reply-To: <first@shop.test>',
        'References: <oldest@shop.test> <newest@shop.test>',
        'Auto-Submitted: Auto-Replied; by="vacation"',
        'Content-Type: multipart/mixed; boundary=b',
        '',
        '--b',
        'Content-Type: multipart/alternative; boundary=c',
        '',
        '--c',
        'Content-Type: text/plain; charset=iso-8859-1',
        'Content-Transfer-Encoding: quoted-printable',
        '',
        'Gr=FC=DFe',
        '--c',
        'Content-Type: text/html',
        '',
        '<p>Hi</p>',
        '--c--',
        '--b',
        'Content-Type: image/png; name=a.png',
        'Content-Transfer-Encoding: base64',
        '',
        'YWJj',
        '--b--',
        '',
      ].join('\r\n'),
    )
    expect(parts).toMatchObject({
      facts: {
        from: 'Joerg@example.net',
        fromName: 'Jörg',
        to: 'help@shop.test, other@shop.test',
        subject: 'Grüße',
        messageId: '1@example.net',
        autoSubmitted: 'auto-replied',
        hops: 1,
        attachments: [{ filename: 'a.png', contentType: 'image/png', sizeOctets: 3 }],
        attachmentCount: 1,
        truncated: false,
      },
      text: 'Grüße',
      html: '<p>Hi</p>',
      references: ['first@shop.test', 'newest@shop.test', 'oldest@shop.test'],
    })
    expect(parts.facts.headers[3]).toEqual({ name: 'Subject', value: 'Grüße' })
  })

  test('has no sender if From has several addresses, or occurs twice', () => {
    for (const from of ['From: a@b.test, c@d.test', 'From: a@b.test\r\nFrom: c@d.test', 'X: y'])
      expect(read(`${from}\r\nSubject: s\r\n\r\nx`).facts.from, from).toBe('')
  })

  test('with long parts is cut and marked as truncated', () => {
    const { facts, text } = read(`From: a@b.test\r\n${'X-A: b\r\n'.repeat(100)}\r\n${'word '.repeat(60_000)}`)
    expect(text).toHaveLength(200_000)
    expect(facts).toMatchObject({ truncated: true })
    expect(facts.headers).toHaveLength(60)
  })

  test('of any octets is read', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (octets) => {
        expect(readReceivedMail(Buffer.from(octets), 0).facts.attachments.length).toBeLessThanOrEqual(50)
      }),
    )
  })
})
