/** SMTP from both sides: commands that clients send to the listeners, and replies of the servers that Postrider sends to. */
import type { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import { SMTPConnection as Connection } from 'smtp-server/lib/smtp-connection.js'
import { classify } from '#bounces'
import { readFields } from '#mail'
import { parseScheduledTime } from '../../../../src/accept/scheduled-time.ts'
import { readControlFields } from '../../../../src/inbound/control-fields.ts'
import { readFutureRelease } from '../../../../src/inbound/future-release.ts'
import { StrictStream } from '../../../../src/inbound/strict-stream.ts'
import { parseExtensions } from '../../../../src/smtp/ehlo-extensions.ts'
import { openReplyReader } from '../../../../src/smtp/reply-parser.ts'
import { defaultLimits, type Reply } from '../../../../src/smtp/types.ts'
import { type Reader, reader } from '../reader.ts'

const maxMessage = 26_214_400
const maxCommand = 16_384
/** Size of the pieces in which the network delivers a stream. */
const packetOctets = 1_448

const parser = Object.assign(Object.create(Connection.prototype) as SMTPConnection, {
  _server: { options: {}, logger: { error() {} } },
  session: {},
}) as unknown as { _parseAddressCommand(name: string, command: string): unknown }

async function stream(octets: Buffer, isData: boolean): Promise<unknown> {
  let refused = false
  const to = new StrictStream(maxCommand, () => {
    refused = true
  })
  to.oncommand = (command, next) => {
    const text = String(command)
    if (/^mail/i.test(text)) parser._parseAddressCommand('mail from', text)
    if (/^rcpt/i.test(text)) parser._parseAddressCommand('rcpt to', text)
    next?.()
  }
  to.on('error', () => {
    refused = true
  })
  const startData = () =>
    to
      .startDataMode()
      .on('data', () => {})
      .on('end', () => to.continue())
  for (let at = 0; at < octets.length && !refused; at += packetOctets)
    await new Promise<void>((resolve) => {
      const piece = octets.subarray(at, at + packetOctets)
      if (isData && !to._dataMode) startData()
      to._write(piece, 'buffer', () => resolve())
    })
  return refused
}

export const smtpReaders: Reader[] = [
  reader({
    name: 'SMTP commands',
    longest: maxMessage,
    reads: ['src/inbound/strict-stream.ts StrictStream'],
    frames: [
      ['EHLO a\r\n', ''],
      ['MAIL FROM:', '\r\n'],
      ['RCPT TO:<', '>\r\n'],
      ['AUTH PLAIN ', '\r\n'],
    ],
    units: [
      'EHLO a\r\n',
      'MAIL FROM:<a@b.example> SIZE=1\r\n',
      'RCPT TO:<a{i}@b.example>\r\n',
      'NOOP\r\n',
      'RSET\r\n',
      'X\r\n',
      '\r\n',
      '<',
      '>',
      '@',
      '@a,',
      '@a.example,',
      ':',
      '@a:',
      ' ',
      'a=b ',
      'a{i}=+41 ',
      '+',
      '"',
      '\\',
      '.',
      '[IPv6:',
      '1:',
      'xn--',
      'é',
      '\0',
    ],
    nests: [['<', '>']],
    read: (octets) => stream(octets, false),
  }),
  reader({
    name: 'SMTP data',
    longest: maxMessage,
    reads: ['src/inbound/strict-stream.ts StrictStream'],
    units: ['.', '..', '\r\n.', '\r\n..', '\r\n', 'a', 'a\r\n', '\r\n.\r', '.\r\n', ' '],
    read: (octets) => stream(octets, true),
  }),
  reader({
    name: 'control fields of a submission',
    longest: 262_144,
    reads: ['src/inbound/control-fields.ts readControlFields'],
    words: ['src/mail/parse-fields.ts'],
    frames: [
      ['X-Postrider-Tag: ', '\r\n\r\n'],
      ['X-Postrider-Metadata: {', '}\r\n\r\n'],
      ['X-Postrider-Idempotency-Key: ', '\r\n\r\n'],
      ['', '\r\n\r\n'],
    ],
    units: ['X-Postrider-Tag: a\r\n', 'X-a{i}: b\r\n', '"a{i}":"b",', '\r\n ', '=?utf-8?q?a?= ', '=?', '?=', '[', '{"a":', '"', ',', '\\'],
    nests: [
      ['[', ']'],
      ['{"a":', '}'],
    ],
    read: (octets) => readControlFields(readFields(octets) ?? []),
  }),
  reader({
    name: 'scheduled time',
    longest: maxCommand,
    reads: ['src/accept/scheduled-time.ts parseScheduledTime', 'src/inbound/future-release.ts readFutureRelease'],
    units: ['2030-01-31', 'T', ' ', '09:30', ':00', '.', '000', 'Z', '+01:00', '-', '0', '9', 'é'],
    read(octets) {
      const text = octets.toString()
      return [parseScheduledTime(text), readFutureRelease({ HOLDUNTIL: text }, 0), readFutureRelease({ HOLDFOR: text }, 0)]
    },
  }),
  reader({
    name: 'SMTP replies',
    longest: maxMessage,
    reads: ['src/smtp/reply-parser.ts openReplyReader', 'src/smtp/ehlo-extensions.ts parseExtensions'],
    words: ['src/smtp/ehlo-extensions.ts'],
    frames: [
      ['250-mx.example.org\r\n', '250 a\r\n'],
      ['', ''],
      ['550-', '\r\n550 a\r\n'],
      ['250 ', '\r\n'],
    ],
    units: [
      '250-SIZE 1\r\n',
      '250-AUTH PLAIN LOGIN\r\n',
      '250-AUTH=LOGIN\r\n',
      '250-a{i}\r\n',
      '250 a\r\n',
      '550-5.1.1 no\r\n',
      '550 5.1.1 no\r\n',
      '\r\n',
      '\n',
      '\r',
      '-',
      ' ',
      '\0',
      'é',
      '\u202e',
      '250',
      'a a ',
      '5.1.1',
    ],
    read(octets) {
      const replies: Reply[] = []
      const replyReader = openReplyReader(defaultLimits, (reply) => replies.push(reply) < 100)
      for (let at = 0; at < octets.length; at += packetOctets)
        if (replyReader.push(octets.subarray(at, at + packetOctets)) !== undefined) break
      return replies.slice(0, 3).map((reply) => [parseExtensions(reply.text), classify(reply)])
    },
  }),
]
