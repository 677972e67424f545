/**
 * Changing html inside finished messages: independent parsers find the new html, and no other octet has changed.
 */
import PostalMime from 'postal-mime'
import { describe, expect, test } from 'vitest'
import { encodeBase64, encodeQuotedPrintable } from './encode-body.ts'
import { changeHtml } from './replace-html.ts'

const longer = `https://t.example/${'x'.repeat(1200)}`
const change = (html: Buffer) => {
  const text = html.toString('latin1')
  return text.includes('LINK') ? Buffer.from(text.replaceAll('LINK', longer), 'latin1') : undefined
}
const message = (...lines: string[]) => Buffer.from(lines.join('\r\n'), 'latin1')
const changed = (octets: Buffer) => changeHtml(octets, change).toString('latin1')
const html = '<p>Gr\u00fc\u00dfe</p>\r\n<a href="LINK">x</a>'
const expected = html.replace('LINK', longer)
const head = ['From: a@a.example', 'MIME-Version: 1.0']
const read = async (octets: Buffer) => (await PostalMime.parse(changeHtml(octets, change))).html?.replaceAll('\r\n', '\n').trimEnd()
const longestLineOf = (text: string) => Math.max(...text.split('\r\n').map((line) => line.length))

describe('html is changed', () => {
  test.each([
    ['8bit', html],
    ['quoted-printable', encodeQuotedPrintable(Buffer.from(html, 'latin1')).toString('latin1')],
    ['base64', encodeBase64(Buffer.from(html, 'latin1')).toString('latin1')],
  ])('in a message that is all html, in %s', async (encoding, body) => {
    const octets = message(...head, 'Content-Type: text/html; charset=iso-8859-1', `Content-Transfer-Encoding: ${encoding}`, '', body, '')
    expect(await read(octets)).toBe(expected.replaceAll('\r\n', '\n'))
    expect(longestLineOf(changed(octets))).toBeLessThanOrEqual(998)
  })

  test('where it is inside alternatives and related parts, and every octet around it stays', async () => {
    const before = [
      ...head,
      'Content-Type: multipart/mixed; boundary="m"',
      '',
      'preamble',
      '--m ',
      'Content-Type: multipart/related; boundary=r',
      '',
      '--r',
      'Content-Type: multipart/alternative; boundary=a',
      '',
      '--a',
      'Content-Type: text/plain',
      '',
      'LINK',
      '--a',
      'Content-Type:\r\n text/html; charset=us-ascii',
      'X-Part: kept',
      '',
    ]
    const after = ['--a--', '--r', 'Content-Type: image/gif', '', 'LINK', '--r--', '--m', 'Content-Type: text/html; name=page.html', '']
    const end = [
      '<a href="LINK">',
      '--m',
      'Content-Disposition: attachment',
      'Content-Type: text/html',
      '',
      'LINK',
      '--m--',
      'epilogue',
      '',
    ]
    const octets = message(...before, '<a href="LINK">', ...after, ...end)
    const text = changed(octets)
    expect(text.startsWith(before.slice(0, -2).join('\r\n'))).toBe(true)
    expect(text.endsWith(`\r\n${[...after, ...end].join('\r\n')}`)).toBe(true)
    expect(text).toContain('X-Part: kept\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<a href=3D')
    expect(await read(octets)).toContain(longer)
  })

  test('whose line ends are not CRLF inside its encoding, and they stay so', () => {
    const octets = message(
      ...head,
      'Content-Type: text/html',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      'a=0Ab=0D<a href=3DLINK>',
      '',
    )
    const body = changed(octets).split('\r\n\r\n')[1] ?? ''
    expect(Buffer.from(body, 'base64').toString()).toBe(`a\nb\r<a href=${longer}>\r\n`)
  })
})

describe('the same octets come back', () => {
  const part = (type: string) => ['--b', type, '', '<a href="LINK">', '--b--', '']
  test.each([
    ['of html that stays as it is', message(...head, 'Content-Type: text/html', '', 'x', '')],
    ['of plain text', message(...head, 'Content-Type: text/plain', '', 'LINK', '')],
    ['of text without a type', message(...head, '', 'LINK', '')],
    [
      'of signed mail (S/MIME, PGP)',
      message(...head, 'Content-Type: multipart/signed; boundary=b', '', ...part('Content-Type: text/html')),
    ],
    ['of encrypted mail', message(...head, 'Content-Type: multipart/encrypted; boundary=b', '', ...part('Content-Type: text/html'))],
    ['of mail signed by DKIM already', message('DKIM-Signature: v=1', ...head, 'Content-Type: text/html', '', 'LINK', '')],
    ['of clear-signed html', message(...head, 'Content-Type: text/html', '', '<pre>-----BEGIN PGP SIGNED MESSAGE-----', 'LINK', '')],
    ['of an enclosed message', message(...head, 'Content-Type: message/rfc822', '', 'Content-Type: text/html', '', 'LINK', '')],
    ['of an encoding nobody knows', message(...head, 'Content-Type: text/html', 'Content-Transfer-Encoding: x-uuencode', '', 'LINK', '')],
    ['of a multipart without a boundary', message(...head, 'Content-Type: multipart/mixed', '', ...part('Content-Type: text/html'))],
  ])('%s', (_, octets) => {
    expect(changeHtml(octets, change)).toBe(octets)
  })
})
