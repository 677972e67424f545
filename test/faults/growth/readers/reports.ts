/** Incoming reports of every kind, with their trace headers and signatures. */
import { openSecrets, systemClock, systemRandom } from '#base'
import { classify, readReport } from '#bounces'
import { arcChainOf, chainStatus, unjudged, verifySignatures } from '#dkim'
import { openReturnPaths } from '#emails'
import type { ReceivedReport } from '#returns'
import { readingOf } from '../../../../src/returns/read-returned-mail.ts'
import { headingOf } from '../../../../src/returns/report-summary.ts'
import { type Reader, reader } from '../reader.ts'

const maxMessage = 26_214_400
const all = (...names: string[]) => names.map((name) => `src/bounces/${name.endsWith('.json') ? `rules/${name}` : `${name}.ts`}`)
const readsReport = ['src/bounces/parse-report.ts readReport']

const secrets = openSecrets('0123456789abcdef0123456789abcdef', systemRandom)
const returnPaths = openReturnPaths(secrets)
const emailId = `${'0'.repeat(8)}${'A'.repeat(14)}`
const returnPath = returnPaths.make(emailId, 'rp.example.com', systemClock.nowMs())
const mark = returnPaths.traceHeader(emailId, systemClock.nowMs())

const program = 'From: MAILER-DAEMON@mx.example.org\r\nSubject: Undelivered Mail Returned to Sender\r\n'
const person = 'From: Ann <ann@example.org>\r\nSubject: Fwd: Undelivered\r\n'
const html = 'Content-Type: text/html\r\n'
const part = (type: string) =>
  `MIME-Version: 1.0\r\nContent-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nSorry\r\n--b\r\nContent-Type: ${type}\r\n\r\n`

const aComplaint = (): ReceivedReport => ({
  kind: 'complaint',
  recipient: null,
  status: null,
  classification: null,
  classificationCode: null,
  fault: null,
  permanent: false,
  originalMessageId: null,
  reason: null,
})

const rsaKey =
  'v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDFZ9Mz2cJ4q0oY0S8lYkJqJ7mTt0eB4m1l0c6m2v2f3h1q3r5s7t9u1w3x5y7z9A1C3E5G7I9K1M3O5Q7S9U1W3Y5a7c9e1g3i5k7m9o1q3s5u7w9y1A3C5E7G9I1K3M5O7Q9S1U3W5Y7wIDAQAB'

const failure = [
  '550 5.1.1 <ann{i}@example.org>: User unknown',
  'ann{i}@example.org',
  '<ann{i}@example.org>',
  'said: 550 5.1.1 no such user',
  'could not be delivered',
  'will be retried',
  'Reason: ',
  'Message-ID: <a@b.example>',
  '>>> RCPT TO:',
  '5.1.1',
  '550 ',
  '4.4.7 ',
  '----- Original message follows -----',
  '\n\n',
  '\n',
  '> ',
  '@',
  '...',
  '--',
]
const header = [
  'Received: from a by b',
  'Message-ID: <{i}@b.example>',
  'Return-Path: <a@b.example>',
  'To: a{i}@b.example, ',
  'Subject: =?utf-8?q?a?=',
  ' =?utf-8?b?YQ==?= ',
  'X-a{i}: b',
  '\r\n',
  '\r\n ',
  'Date: ',
  'Content-Type: text/plain; ',
  'name="a.eml"',
]

export const reportReaders: Reader[] = [
  reader({
    name: 'report in words',
    longest: maxMessage,
    reads: readsReport,
    words: all(
      'free-text-report',
      'text-report-kind',
      'original-message',
      'classify-report',
      'report-types',
      'report-addresses',
      'phrases.json',
      'auto-responses',
    ),
    frames: [
      [`${program}\r\n`, ''],
      [`${program}${html}\r\n`, ''],
      [`${person}\r\n`, ''],
      [`${program}In-Reply-To: <a@b.example>\r\n\r\n`, '\n550 5.1.1 no'],
    ],
    units: failure,
    nests: [
      ['<', '>'],
      ['(', ')'],
      ['> ', '\n'],
    ],
    read: readReport,
  }),
  reader({
    name: 'report forwarded',
    longest: maxMessage,
    reads: readsReport,
    words: all('forwarded-report'),
    frames: [
      [`${person}\r\n`, ''],
      [`${person}\r\nSee:\n`, '\nSubject: Undelivered\n\n550 5.1.1 no'],
      [`${person}${part('message/rfc822')}`, '\r\n--b--'],
    ],
    units: [
      'From: mailer-daemon@mx.example.org\n',
      '> From: postmaster\n',
      'Von: Mail Delivery System\n',
      'Subject: Undelivered\n',
      '\n\n',
      '> ',
      '>',
      '|',
      '*',
      'To: a@b.example\n',
      'From: ',
      'Content-Type: message/rfc822\r\n\r\n',
      'From: MAILER-DAEMON\r\n',
      ...failure.slice(0, 4),
    ],
    nests: [
      ['Content-Type: message/rfc822\r\n\r\n', ''],
      ['From: MAILER-DAEMON\n\n', ''],
    ],
    read: readReport,
  }),
  reader({
    name: 'delivery status',
    longest: maxMessage,
    reads: readsReport,
    words: all('delivery-status', 'dsn-report', 'classify-report'),
    frames: [
      [`${program}${part('message/delivery-status')}`, '\r\n--b--\r\n'],
      [`${program}${part('message/delivery-status')}Reporting-MTA: dns; a\r\n\r\n`, ''],
      [`${program}\r\n`, ''],
      [`${program}\r\nReporting-MTA: dns; a\n\n`, ''],
    ],
    units: [
      'Final-Recipient: rfc822; a{i}@b.example\n',
      'Original-Recipient: rfc822; a{i}@b.example\n',
      'Action: failed\n',
      'Status: 5.1.1\n',
      'Diagnostic-Code: smtp; 550 5.1.1 no\n',
      'Remote-MTA: dns; mx\n',
      'Reporting-MTA: dns; a\n',
      'Arrival-Date: (a) ',
      'X-a{i}: b\n',
      '\n',
      '\n\n',
      '  ',
      '> ',
      'rfc822;',
      'utf-8; \\x{40}',
      '+40',
      '\\40',
      '(',
    ],
    nests: [
      ['(', ')'],
      ['<', '>'],
    ],
    read: readReport,
  }),
  reader({
    name: 'feedback report',
    longest: maxMessage,
    reads: readsReport,
    words: all('complaint-report', 'original-message'),
    frames: [
      [`${person}${part('message/feedback-report')}`, '\r\n--b--\r\n'],
      [
        `${person}${part('message/feedback-report')}Feedback-Type: abuse\r\n`,
        '\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nFrom: a@b.example\r\n\r\n\r\n--b--',
      ],
      [`${person}${part('message/rfc822')}`, '\r\n--b--'],
      [`${person}\r\n`, '\nFeedback-Type: abuse'],
    ],
    units: [
      'Feedback-Type: abuse\r\n',
      'Original-Rcpt-To: a{i}@b.example\r\n',
      'User-Agent: a\r\n',
      'Arrival-Date: (',
      'Source-IP: 192.0.2.1\r\n',
      ...header,
    ],
    nests: [['(', ')']],
    read: readReport,
  }),
  reader({
    name: 'report in parts',
    longest: maxMessage,
    reads: [...readsReport, 'src/bounces/mime-parts.ts readParts', 'src/bounces/mime-parts.ts readPartFields'],
    words: all('mime-parts', 'auto-responses'),
    frames: [
      ['MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n', '\r\n--b--'],
      ['Content-Type: multipart/mixed\r\n\r\n', ''],
      ['Content-Type: text/html\r\n\r\n', ''],
      ['', '\r\n\r\nSorry'],
      ['From a\n', ''],
    ],
    units: [
      '--b\r\n',
      '--b--\r\n',
      '--c{i}\n',
      '--',
      'Content-Type: text/plain\r\n\r\n',
      'Content-Type: text/html; charset=big5\r\n\r\n',
      'Content-Type: message/rfc822\r\n\r\n',
      'Content-Type: multipart/mixed; boundary=c{i}\r\n\r\n',
      'Content-Transfer-Encoding: quoted-printable\r\n',
      'Content-Transfer-Encoding: base64\r\n',
      '=20',
      '=\r\n',
      '<p>',
      '<a',
      '<script>',
      '</',
      '<!--',
      '&amp;',
      '&#64;',
      '<a@b',
      '<table><tr><td>',
      ...header,
    ],
    nests: [
      ['Content-Type: message/rfc822\r\n\r\n', ''],
      ['Content-Type: multipart/mixed; boundary=b{i}\r\n\r\n--b{i}\r\n', '\r\n--b{i}--'],
      ['<div>', '</div>'],
    ],
    read: readReport,
  }),
  reader({
    name: 'heading of a report',
    longest: maxMessage,
    reads: ['src/returns/report-summary.ts headingOf'],
    words: ['src/mail/parse-fields.ts'],
    frames: [
      ['', '\r\n\r\n'],
      ['Message-ID: ', '\r\n\r\n'],
      ['From: ', '\r\n\r\n'],
      ['Subject: ', '\r\n\r\n'],
    ],
    units: [...header, '<', '>', '@', '"'],
    nests: [
      ['<', '>'],
      ['"', '"'],
    ],
    read: headingOf,
  }),
  reader({
    name: 'whose complaint it is',
    longest: maxMessage,
    reads: ['src/returns/read-returned-mail.ts readingOf', 'src/emails/return-path.ts openReturnPaths'],
    frames: [['From: a@b.example\r\n', '']],
    units: [
      returnPath,
      mark,
      `Return-Path: <${returnPath}>\r\n`,
      `X-Message-Mark: ${mark}\r\n`,
      'Return-Path:',
      'Original-Mail-From:',
      'X-Message-Mark: ',
      `b${'a2'.repeat(25)}a@`,
      `m${'a2'.repeat(25)}a `,
      '\r\n',
      '=\r\n',
      ' b',
      'b',
      'm',
      '@',
      'DKIM-Signature: v=1; d=b.example\r\n',
    ],
    read(octets) {
      const { complaint } = readingOf(octets, { atMs: 0 }, aComplaint)
      const { fields = [], texts = [] } = complaint?.names ?? {}
      return [...fields, ...texts].map((text) => [returnPaths.readAll(text, 0), returnPaths.readTraceHeaders(text, 0)])
    },
  }),
  reader({
    name: 'DKIM signature',
    longest: maxMessage,
    reads: [
      'src/dkim/verify.ts verifySignatures',
      'src/dkim/verify.ts unjudged',
      'src/dkim/verify.ts verify',
      'src/dkim/canonical.ts headerFields',
    ],
    words: ['src/dkim/canonical.ts'],
    frames: [
      ['From: a@b.example\r\nDKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=b.example; s=s; h=from', '; bh=; b=\r\n\r\n'],
      [
        'From: a@b.example\r\nDKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=b.example; s=s; h=from; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AA\r\n',
        '\r\n\r\n',
      ],
      ['From: a@b.example\r\nDKIM-Signature: v=1; a=rsa-sha256; c=relaxed/simple; d=b.example; s=s; h=from; bh=; b=\r\n\r\n', ''],
      ['', '\r\n\r\n'],
    ],
    units: [
      'DKIM-Signature: v=1; a=rsa-sha256; d=b.example; s=s; h=from; bh=; b=\r\n',
      ':from',
      ':a{i}',
      ': ',
      ';',
      '; b=',
      '; a{i}=',
      '=',
      '\r\n',
      '\r\n ',
      ' ',
      '\t',
      'From: a@b.example\r\n',
      'a{i}: b\r\n',
      'b=',
      '. ',
    ],
    read: (octets) => verifySignatures(unjudged(octets, 'b.example', 0), async () => [rsaKey]),
  }),
  reader({
    name: 'ARC chain',
    longest: maxMessage,
    reads: ['src/dkim/arc-chain.ts arcChainOf', 'src/dkim/arc-chain.ts chainStatus'],
    words: ['src/dkim/arc-chain.ts'],
    frames: [
      ['From: a@b.example\r\nARC-Seal: i=1; a=rsa-sha256; cv=none; d=b.example; s=s', '; b=AA\r\n\r\n'],
      [
        'From: a@b.example\r\nARC-Seal: i=1; a=rsa-sha256; cv=none; d=b.example; s=s; b=AA\r\nARC-Message-Signature: i=1; a=rsa-sha256; c=relaxed/relaxed; d=b.example; s=s; h=from; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AA\r\nARC-Authentication-Results: i=1; ',
        '\r\n\r\n',
      ],
      ['', '\r\n\r\n'],
    ],
    units: [
      'ARC-Seal: i={i}; a=rsa-sha256; cv=pass; d=b.example; s=s; b=AA\r\n',
      'ARC-Message-Signature: i={i}; a=rsa-sha256; d=b.example; s=s; h=from; bh=; b=AA\r\n',
      'ARC-Authentication-Results: i={i}; a\r\n',
      'ARC-Authentication-Results: ',
      'i=1;',
      'i',
      ':from',
      ';',
      '; b=',
      '; a{i}=',
      '=',
      '\r\n ',
      ' ',
      '\t',
      '1',
    ],
    read: (octets) => chainStatus(arcChainOf(octets, 0), async () => [rsaKey]),
  }),
  reader({
    name: 'DKIM key',
    longest: 65_535,
    reads: ['src/dkim/verify.ts verifySignatures', 'src/dkim/verify.ts unjudged', 'src/dkim/verify.ts verify'],
    frames: [
      ['v=DKIM1; p=', ''],
      ['v=DKIM1; ', '; p=AA'],
    ],
    units: ['v=DKIM1', ';', '=', ' ', 'k=rsa; ', 'p=AA', 'h=sha256:', 's=email:*', 't=y:s', 'a{i}=', ':', '\t'],
    read: (octets) =>
      verifySignatures(
        unjudged(
          Buffer.from(
            'From: a@b.example\r\nDKIM-Signature: v=1; a=rsa-sha256; d=b.example; s=s; h=from; bh=frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY=; b=AA\r\n\r\n\r\n',
          ),
          'b.example',
          0,
        ),
        async () => [octets.toString('latin1')],
      ),
  }),
  reader({
    name: 'classification of a reply',
    longest: 65_536,
    reads: ['src/bounces/classify-reply.ts classify'],
    words: all(
      'normalise-reply',
      'reply-patterns',
      'block-lists.json',
      'synonyms.json',
      'content.json',
      'recipient.json',
      'sender.json',
      'providers.json',
      'codes.json',
    ),
    frames: [
      ['550 5.1.1 ', ''],
      ['', ''],
      ['451 ', ''],
    ],
    units: [
      '550-5.1.1 ',
      '\n550-',
      'no such user',
      'a@b.example',
      'https://a.example/',
      'mx.a.example',
      "can't ",
      '5.1.1',
      '.',
      'a.',
      '-',
      'a-',
      '_',
      ':',
      '가',
      'ﷺ',
      'é',
      '汉',
      '#5.1.0',
      '(#5.1.1)',
    ],
    read: (octets) => classify({ code: 550, enhanced: null, text: octets.toString() }),
  }),
]
