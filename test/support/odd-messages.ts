/** Odd messages, as strangers send them: the same ones on every run. Headers and MIME trees with faults that real programs make. */
import { openSeededRandom, type SeededRandom } from '../faults/growth/seeded-random.ts'

const headers = [
  'From: a@b.test',
  'From: "a, b" <a@b.test>',
  'From: a@b.test, c@d.test',
  'From:',
  'from : a@b.test',
  'From: =?utf-8?b?4pyTIOKckw==?= <a@b.test>',
  'From: =?utf-8?q?=ED=A0=80?= <a@b.test>',
  'Subject: =?unknown-8bit?q?=FF=FE?=',
  'Subject: =?utf-8?q?a?= =?utf-8?q?b?=',
  'Subject: a\r\n\tb\r\n c',
  'Subject: \u0000\u0001\u001b[2J',
  `Subject: ${'long '.repeat(4000)}`,
  'Message-ID: <a@b>, <c@d>',
  'Message-ID: no brackets',
  'In-Reply-To: <<<a>>>',
  `References: ${'<a@b.test> '.repeat(500)}`,
  'Date: yesterday',
  'Content-Type: text/html; charset=utf-16',
  'Content-Type: text/plain; charset="no such charset"',
  'Content-Type: multipart/mixed',
  'Content-Type: multipart/mixed; boundary=""',
  'Content-Type: ;;;',
  'Content-Transfer-Encoding: uuencode',
  "Content-Disposition: attachment; filename*=utf-8''%E2%9C%93.txt",
  'Content-Disposition: attachment; filename="../../etc/passwd"',
  `X-Long: ${'x'.repeat(3000)}`,
  'X-\u00e9: raw',
  'Auto-Submitted: auto-replied',
  ' a continuation of nothing',
  'no colon at all',
]

const bodies = [
  'Hello\r\n',
  '',
  '=C3=28 =ZZ = \r\n=\r\n',
  'YWJj=\r\n!!!!YWJj',
  '<p>Hi<script>alert(1)</script>',
  '\u0000\u0001\u0002\u0080\u00ff',
  '.\r\n..\r\n',
  'bare\nline\nends',
  'x'.repeat(5000),
]

const types = [
  'text/plain',
  'text/html',
  'text/plain; charset=iso-2022-jp',
  'image/png; name="a\\"b.png"',
  'message/rfc822',
  'application/x; name==?utf-8?q?a?=',
]
const encodings = ['7bit', '8bit', 'base64', 'quoted-printable', 'x-unknown', '']

function part(draw: SeededRandom, depth: number): string {
  const isNested = depth < 25 && draw.upTo(4) === 0
  if (!isNested) return `Content-Type: ${draw.of(types)}\r\nContent-Transfer-Encoding: ${draw.of(encodings)}\r\n\r\n${draw.of(bodies)}`
  const boundary = draw.of(['b', `b${depth}`, 'a b', '--', "b'()+_,-./:=?"])
  const inner = Array.from({ length: draw.upTo(5) }, () => `--${boundary}\r\n${part(draw, depth + 1)}\r\n`).join('')
  return `Content-Type: multipart/${draw.of(['mixed', 'alternative', 'x'])}; boundary="${boundary}"\r\n\r\n${inner}${draw.of([`--${boundary}--`, ''])}`
}

/** With CRLF line ends in their headers; some are not messages at all. */
export function oddMessages(count: number): Buffer[] {
  const draw = openSeededRandom(1)
  return Array.from({ length: count }, (_, nth) => {
    const lines = Array.from({ length: 1 + draw.upTo(6) }, () => draw.of(headers))
    const whole = `X-Nth: ${nth}\r\n${lines.join('\r\n')}\r\n${draw.upTo(2) === 0 ? part(draw, 0) : `\r\n${draw.of(bodies)}`}`
    return Buffer.from(whole, draw.upTo(2) === 0 ? 'utf8' : 'latin1')
  })
}
