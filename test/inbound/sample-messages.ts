/** Messages of the kinds that programs send, as octets: signed ones, odd boundaries, 8-bit, deep nesting, long lines, empty ones. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Letter {
  kind: string
  octets: Buffer
  /** Contains lines over 998 octets or NULs, which servers need not accept: the content arrives re-encoded. */
  isRewritten: boolean
}

const crlf = (text: string) => text.replace(/\r?\n/g, '\r\n')

function multipart(boundary: string, parts: string[], type = 'mixed'): string {
  const quoted = /^[A-Za-z0-9'()+_,./:=?-]+$/.test(boundary) && !/[()<>@,;:\\"/[\]?=]/.test(boundary) ? boundary : `"${boundary}"`
  return `Content-Type: multipart/${type};\n\tboundary=${quoted}\n\n${parts.map((part) => `--${boundary}\n${part}`).join('\n')}\n--${boundary}--\n`
}

const text = (body: string) => `Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n${body}`
const nested = (depth: number): string =>
  depth === 0 ? text('innermost') : multipart(`level ${depth} =_${'x'.repeat(depth)}`, [text(`at ${depth}`), nested(depth - 1)])

const pgpSignature =
  '-----BEGIN PGP SIGNATURE-----\n\niHUEABYKAB0WIQTgDPXkkXC2nGkwlFZ6xVv1kR6c9gUCZz8=\n=abcd\n-----END PGP SIGNATURE-----\n'

const kinds: Record<string, (n: number) => string> = {
  plain: (n) => `\nHello number ${n}\n`,
  'empty body': () => '\n',
  'header only': () => '',
  'blank lines': (n) => `\n${'\n'.repeat(n % 7)}`,
  'eight bits': (n) => `Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nGrüße, ${n} × naïve café — ½ 日本語\n`,
  'latin-1': () => `Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n\nGr\u00fc\u00dfe \u0080\u00ff\n`,
  'UTF-8 header': (n) => `X-Name: Jörg ${n}\nContent-Type: text/plain; charset=utf-8\n\nHi\n`,
  dots: () => '\n.\n..\n.hidden\n...\n. \n.\n',
  'trailing white space': () => 'X-Space: a \t\n\nword  \nword\t\n   \n',
  'folded header': (n) => `X-Folded: one\n two\n\tthree ${'w'.repeat(n)}\nX-Empty:\nX-Again: 1\nX-Again: 2\n\nHi\n`,
  'colon and case': () => 'x-lower:no space\nX-UPPER:   three spaces\n\nHi\n',
  'lines of 998': (n) => `\n${`${'x'.repeat(998)}\n`.repeat(1 + (n % 5))}`,
  'lines of 2000': (n) => `\n${`${'long '.repeat(400)}\n`.repeat(1 + (n % 3))}`,
  'a long base64 line': () =>
    `Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n${Buffer.alloc(3000, 7).toString('base64')}\n`,
  'quoted-printable': () =>
    'Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n<p>Gr=C3=BC=\n=C3=9Fe</p>=20\n',
  'odd boundary': (n) =>
    multipart(['=_?:', "it's (a) b,c", '-', '--', 'x'.repeat(70), 'a b c'][n % 6] as string, [text('one'), text('Zwei ä')]),
  'boundary within boundary': () => multipart('outer', [multipart('outer1', [text('a')]), text('--outerx\n--outer1--')]),
  'preamble and epilogue': () =>
    multipart('b', [text('x')])
      .replace('\n\n--b', '\n\nThis is a message in MIME format.\n\n--b')
      .concat('\nAfter the end.\n'),
  'thirty levels': () => nested(30),
  'unclosed multipart': () => 'Content-Type: multipart/mixed; boundary=open\n\n--open\n\npart\n',
  'message in a message': () =>
    multipart('m', [`Content-Type: message/rfc822\n\nFrom: a@b.test\nBcc: kept@b.test\nX-Postrider-Tag: kept\n\ninner\n`]),
  'PGP/MIME': (n) =>
    multipart('pgp', [text(`Signed ${n}, trailing  \n-- \nsig`), `Content-Type: application/pgp-signature\n\n${pgpSignature}`], 'signed'),
  'inline PGP': () => `\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n- -- dash\n${pgpSignature}`,
  attachment: (n) =>
    multipart('att', [
      text('See attached'),
      `Content-Type: application/octet-stream; name*=utf-8''r%C3%A9sum%C3%A9.bin\nContent-Transfer-Encoding: base64\n\n${(
        Buffer.alloc(5000 + n, n)
          .toString('base64')
          .match(/.{1,76}/g) ?? []
      ).join('\n')}\n`,
    ]),
  'a NUL': () => '\na\0b\n',
  large: (n) => `\n${`${String(n).repeat(70)}\n`.repeat(4000)}`,
}

const rewritten = new Set(['lines of 2000', 'a long base64 line', 'a NUL'])

/** `count` letters, one kind after another; the last header field before the kind's own is `X-Case: {n}`. */
export function letters(count: number, from: string): Letter[] {
  const names = Object.keys(kinds)
  return Array.from({ length: count }, (_, n) => {
    const kind = names[n % names.length] as string
    const rest = kinds[kind]?.(Math.floor(n / names.length)) ?? ''
    const head = `From: Shop <${from}>\nTo: ann@example.test\nSubject: ${kind}\nDate: Sat, 21 Nov 2026 08:00:00 +0000\nMessage-ID: <case-${n}@shop.test>\nMIME-Version: 1.0\nX-Case: ${n}\n`
    return { kind, octets: Buffer.from(crlf(head + rest), kind === 'latin-1' ? 'latin1' : 'utf8'), isRewritten: rewritten.has(kind) }
  })
}

/** A message with a real S/MIME signature, and a function to verify it. */
export function signedLetter(from: string): { octets: Buffer; verify(octets: Buffer): boolean; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-smime-'))
  const file = (name: string) => join(folder, name)
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: ['ignore', 'pipe', 'pipe'] })
  const subject = [
    '-subj',
    '/CN=signer',
    '-days',
    '30',
    '-addext',
    'extendedKeyUsage=emailProtection',
    '-addext',
    'keyUsage=digitalSignature',
  ]
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', file('k.pem'), '-out', file('c.pem'), ...subject)
  writeFileSync(
    file('in'),
    crlf('Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nUnterschrieben: Grüße  \n.\n\n'),
  )
  openssl('cms', '-sign', '-in', file('in'), '-signer', file('c.pem'), '-inkey', file('k.pem'), '-out', file('signed'), '-crlfeol')
  const signed = crlf(readFileSync(file('signed'), 'latin1'))
  const head = crlf(
    `From: ${from}\nTo: ann@example.test\nSubject: signed\nDate: Sat, 21 Nov 2026 08:00:00 +0000\nMessage-ID: <signed@shop.test>\nX-Case: signed\n`,
  )
  return {
    octets: Buffer.from(head + signed, 'latin1'),
    verify(octets) {
      writeFileSync(file('arrived'), octets)
      try {
        openssl('cms', '-verify', '-in', file('arrived'), '-CAfile', file('c.pem'), '-out', file('out'))
        return true
      } catch {
        return false
      }
    },
    remove: () => rmSync(folder, { recursive: true }),
  }
}
