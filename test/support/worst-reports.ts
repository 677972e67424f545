/** Worst-case input for the reader of reports, as a stranger would write it: repeated units, alone or in parts. */

export const repeated = (unit: string, octets: number) => unit.repeat(Math.ceil(octets / unit.length))

const person = 'From: joe@evil.example\r\nSubject: fwd\r\n'
const program = 'From: mailer-daemon@x.example\r\nSubject: Undelivered\r\n'
const status = `${program}Content-Type: message/delivery-status\r\n`
const passedOn = 'From: mailer-daemon\r\nSubject: x\r\n\r\n'
const group = 'Final-Recipient: rfc822; a@b.c\r\n'

const text = (head: string, unit: string) => (octets: number) => Buffer.from(`${head}\r\n${repeated(unit, octets)}`)
/** Units that differ by a number. */
const numbered = (head: string, unit: (number: number) => string) => (octets: number) => {
  let body = ''
  for (let number = 0; body.length < octets; number++) body += unit(number)
  return Buffer.from(`${head}\r\n${body}`)
}
const parts = (count: number, head: string, unit: string) => (octets: number) => {
  const part = `--b\r\n${head}\r\n${repeated(unit, octets / count)}\r\n`
  return Buffer.from(`${person}Content-Type: multipart/mixed; boundary=b\r\n\r\n${part.repeat(count)}--b--\r\n`)
}
/** An attached message written by a person, with its text in a multipart. */
const attached = 'Content-Type: message/rfc822\r\n\r\nFrom: joe@evil.example\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n'

export const passedOnAsText = text(person, passedOn)
export const attachedAsText = (count: number) => parts(count, attached, passedOn)
export const recipients = text(status, group)

export const worstReports: Record<string, (octets: number) => Buffer> = {
  'From: mailer-daemon': passedOnAsText,
  'From: mailer-daemon, quoted': text(person, '> From: mailer-daemon\r\n> \r\n'),
  'From: mailer-daemon without a header of its own': text(person, 'From: mailer-daemon\r\n'),
  'From and spaces': (octets) => Buffer.from(`${person}\r\nFrom${repeated(' ', octets)}x`),
  'eight such texts attached': attachedAsText(8),
  '195 such texts attached': attachedAsText(195),
  'Final-Recipient': recipients,
  'Final-Recipient in a text': text(program, group),
  'Final-Recipient and a reason': text(status, `${group}Diagnostic-Code: smtp; 550 5.1.1 user unknown\r\n\r\n`),
  'Final-Recipient, each of another address': numbered(
    program,
    (n) => `Final-Recipient: rfc822; a${n}@b.c\r\nStatus: 5.1.${n % 900}\r\n\r\n`,
  ),
  'Status behind empty lines': numbered(status, (n) => `Status: 5.1.1\r\nX-${n}: y\r\n\r\n`),
  'dates of brackets': text(status, `Arrival-Date: ${'('.repeat(8_000)}\r\n\r\n`),
  'addresses, each another': numbered(program, (n) => `failed: a${n}@b.example\r\n`),
  'addresses, twenty on a line': numbered(program, (n) => `a${n}@b.example${n % 20 === 0 ? '\r\n' : ' '}`),
  'Message-ID of at signs': text(program, `message-id <${'a@'.repeat(250)}`),
  'blocks of fields': text(program, 'Subject: x\r\nReceived: y\r\nStatus: z\r\n\r\n'),
  ligatures: text(`${program}Content-Type: text/plain; charset=utf-8\r\n`, '\ufdfa'),
  'boundaries of spaces': text(person, `--${' '.repeat(300)}\r\n`),
  'boundaries of spaces in parts': parts(195, 'Content-Type: text/plain\r\n', `--${' '.repeat(300)}\r\n`),
  'parts of text with fields of a report': parts(195, 'Content-Type: text/plain\r\n', 'Final-Recipient: x\r\n'),
  'parts of html': parts(195, 'Content-Type: text/html\r\n', '<p>x &amp; y</p>'),
  'parts of fields': parts(195, 'Content-Type: message/delivery-status\r\n', 'Reporting-MTA: x\r\n\r\n'),
  'marks that are no boundary': (octets) =>
    Buffer.from(
      `${Array.from({ length: 19 }, (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}\r\n`).join('')}${repeated('--b1x\r\n', octets)}`,
    ),
  'messages in messages, encoded': (octets) =>
    Buffer.from(
      `${'Content-Type: message/rfc822\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n'.repeat(20)}${repeated('x=3D', octets)}`,
    ),
  'return carriages': text(program.replaceAll('\n', ''), '\r'),
}
