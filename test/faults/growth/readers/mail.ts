/** Messages and their contents: parts, fields, addresses, HTML. Tenants write them, and so do strangers whose mail bounces. */
import { openSecrets, systemRandom } from '#base'
import {
  changeHtml,
  decodeBody,
  fieldText,
  linksOf,
  parseAddress,
  parseDomain,
  parseMailbox,
  parseSender,
  partsOf,
  prepareRaw,
  readFields,
  readMessage,
  readRaw,
  splitMessage,
  structured,
  textFromHtml,
  toSevenBit,
  withoutFields,
} from '#mail'
import { openTokens, trackHtml, trackHtmlOctets } from '#tracking'
import { isMailboxListField, parseMailboxField } from '../../../../src/mail/mailbox-field.ts'
import { readOriginators } from '../../../../src/mail/originators.ts'
import { parseFields } from '../../../../src/mail/parse-fields.ts'
import { readReceivedMail } from '../../../../src/received-mail/read-received-mail.ts'
import { type Reader, reader } from '../reader.ts'

const maxMessage = 26_214_400
const maxHtml = 5_242_880

const tokens = openTokens(openSecrets('0123456789abcdef0123456789abcdef', systemRandom))
const tracking = { origin: 'https://track.example.com', clicks: true, opens: true, excluded: ['b.example'] }
const recipient = { tenantId: 'main'.padEnd(25, '0'), emailId: '0'.repeat(22) }

const fields = [
  'From: a@b.example\r\n',
  'To: a{i}@b.example, ',
  'Subject: ',
  'X-a{i}: b\r\n',
  'X-a: b\r\n',
  '\r\n ',
  '\r\n\t',
  '\r\n',
  '\n',
  '\r',
  ':',
  '=?utf-8?q?a?=',
  '=?utf-8?b?YQ==?= ',
  '=?utf-8?q?',
  // An unknown charset, a new one each time, and another known one.
  '=?a?q??=',
  '=?a{i}?q??=',
  '=?big5?q??=',
  '=?',
  '?=',
  ' ',
  'Content-Type: text/plain; charset=utf-8',
  '; ',
  'name*{i}="a"',
  "name*=utf-8''%61",
  'boundary=',
  '"',
  '\\',
  '=',
  '*',
  'é',
]
const parts = [
  '--b\r\n',
  '--b--\r\n',
  '--b',
  '--',
  '--b \t',
  '--c{i}\r\n',
  'Content-Type: text/html\r\n\r\n',
  'Content-Type: multipart/mixed; boundary=c{i}\r\n\r\n',
  'Content-Type: message/rfc822\r\n\r\n',
  'Content-Transfer-Encoding: base64\r\n',
  'Content-Transfer-Encoding: quoted-printable\r\n',
  'Content-Disposition: attachment; filename=a\r\n',
  '=20',
  '=\r\n',
  '= ',
  '=',
  'YQ==',
  ' ',
  '\t',
  '\r',
  '\n',
  'é',
  '\0',
  '-----BEGIN PGP',
]
const nestedParts = [
  ['Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n', '\r\n--b--\r\n'],
  ['Content-Type: multipart/mixed; boundary=b{i}\r\n\r\n--b{i}\r\n', '\r\n--b{i}--\r\n'],
  ['Content-Type: message/rfc822\r\n\r\n', ''],
] as const
const message = ['From: a@b.example\r\n', '\r\n\r\nHello\r\n'] as const
const multipart = [
  'From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n',
  '\r\n--b--\r\n',
] as const
const htmlMessage = [
  'From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n',
  '\r\n',
] as const

const html = [
  '<a href="https://a.example/{i}">',
  '<a href=https://a.example/>',
  "<a href='",
  '<a ',
  '</a>',
  '<p>',
  '<br>',
  '<img src="',
  '<!--',
  '-->',
  '--',
  '<!',
  '<?',
  '</',
  '<',
  '>',
  '"',
  "'",
  '=',
  '<script>',
  '</script>',
  '<script',
  '<style>',
  '</style',
  '<title>',
  '<textarea>',
  '<template>',
  '</template>',
  '<body>',
  '</body>',
  '<plaintext>',
  '<table><tr><td>',
  '<blockquote>',
  '<ul><li>',
  '<ol>',
  '<pre>',
  '<h1>',
  '&amp;',
  '&#64;',
  '&',
  '&a',
  'href=',
  ' href="',
  'data-no-track',
  'http://',
  'mailto:',
  'https://a.example/',
  ')',
  ' ',
  '\n',
  '\u00a0',
  'é',
]
const htmlNests = [
  ['<div>', '</div>'],
  ['<blockquote>', '</blockquote>'],
  ['<ul><li>', '</li></ul>'],
  ['<ol><li>', '</li></ol>'],
  ['<table><tr><td>', '</td></tr></table>'],
  ['<template>', '</template>'],
  ['<b>', ''],
  ['<span>', '</span>'],
  ['<p>', '</p>'],
  ['<pre>', '</pre>'],
  ['<h1>', '</h1>'],
  ['<a href="https://a.example/">', '</a>'],
] as const

const address = [
  'a@b.example',
  '<a@b.example>',
  'a{i}@b.example',
  '"',
  '\\"',
  '\\',
  '<',
  '>',
  '(',
  ')',
  ',',
  ';',
  ':',
  '@',
  '.',
  'a.',
  '"a"',
  '"a" ',
  'xn--',
  '-',
  'é',
  'münchen',
  '汉',
  '\u200b',
  ' ',
  '\t',
  '=?utf-8?q?a?= ',
  '=?a?q?a?= ',
  '=?a{i}?q?a?= ',
  '=?big5?q?a?= ',
  '[127.0.0.1]',
  '1.',
  '\r\n ',
]

export const mailReaders: Reader[] = [
  reader({
    name: 'message',
    longest: maxMessage,
    reads: [
      'src/mail/read-message.ts readMessage',
      'src/mail/read-message.ts readHeaders',
      'src/mail/read-message.ts partsOf',
      'src/mail/read-message.ts decodeBody',
      'src/mail/parse-fields.ts splitMessage',
      'src/mail/parse-fields.ts parseFields',
    ],
    words: ['src/mail/parse-fields.ts'],
    frames: [message, multipart, htmlMessage, ['', '']],
    units: [...fields, ...parts],
    nests: nestedParts,
    read: readMessage,
  }),
  reader({
    name: 'message for a route',
    longest: maxMessage,
    reads: ['src/received-mail/read-received-mail.ts readReceivedMail'],
    words: ['src/received-mail/read-received-mail.ts'],
    frames: [
      ['From: a@b.example\r\nReferences: ', '\r\n\r\n'],
      ['From: ', '\r\n\r\n'],
      ['From: a@b.example\r\nDKIM-Signature: v=1; a=rsa-sha256; d=b.example; s=s; h=from; bh=YQ==; b=YQ==\r\n', '\r\n\r\n'],
      ['From: a@b.example\r\nARC-Seal: i=1; cv=none; d=b.example; s=s; b=YQ==\r\n', '\r\n\r\n'],
      multipart,
    ],
    units: [...fields, ...parts, '<a@b.example>', '<', '> ', 'DKIM-Signature: v=1; d=b{i}.example; h=from:from\r\n', 'Received: a\r\n'],
    nests: nestedParts,
    read: (octets) => readReceivedMail(octets, 1_700_000_000_000),
  }),
  reader({
    name: 'message for seven bits',
    longest: maxMessage,
    reads: ['src/mail/seven-bit.ts toSevenBit'],
    frames: [
      ['From: é@b.example\r\n', '\r\n\r\né\r\n'],
      [`é: \r\n${multipart[0]}`, 'é\r\n--b--\r\n'],
      [multipart[0], `é${multipart[1]}`],
    ],
    units: [...parts, ...fields],
    nests: nestedParts,
    read: toSevenBit,
  }),
  reader({
    name: 'message as a tenant wrote it',
    longest: maxMessage,
    reads: [
      'src/mail/raw-message.ts readRaw',
      'src/mail/raw-message.ts readFields',
      'src/mail/raw-message.ts prepareRaw',
      'src/mail/raw-message.ts withoutFields',
    ],
    words: ['src/mail/parse-fields.ts', 'src/mail/line-endings.ts'],
    frames: [
      message,
      multipart,
      ['From: ', '\r\nTo: a@b.example\r\n\r\n'],
      ['', message.join('')],
      ['From: a@b.example\r\nMessage-ID: ', '\r\n\r\n'],
    ],
    units: [...fields, ...address, 'Bcc: a@b.example\r\n', 'X-Postrider-Tag: a\r\n', 'Message-ID: <a@b>\r\n', ...parts],
    nests: [
      ['(', ')'],
      ['<', '>'],
      ['"', '"'],
    ],
    read(octets) {
      const facts = readRaw(octets)
      readFields(octets)
      const left = withoutFields(octets, 'x-postrider-')
      return typeof facts === 'string' ? facts : prepareRaw(left, { dateMs: 0, messageId: '<a@b>' })
    },
  }),
  reader({
    name: 'field of a message',
    longest: 262_144,
    reads: [
      'src/mail/parse-fields.ts fieldText',
      'src/mail/parse-fields.ts structured',
      'src/mail/parse-fields.ts parseFields',
      'src/mail/parse-fields.ts splitMessage',
      'src/mail/charsets.ts decodeCharset',
    ],
    frames: [
      ['', ''],
      ['text/plain; ', ''],
      ['=?utf-8?q?', '?='],
      ['a: ', '\r\n\r\n'],
    ],
    units: fields,
    nests: [
      ['"', '"'],
      ['=?utf-8?q?', '?='],
    ],
    read(octets) {
      const text = octets.toString('latin1')
      fieldText(text)
      structured(text)
      return parseFields(splitMessage(octets).head)
    },
  }),
  reader({
    name: 'body in a transfer encoding',
    longest: maxMessage,
    reads: ['src/mail/read-message.ts decodeBody', 'src/mail/read-message.ts partsOf'],
    units: parts,
    read(octets) {
      decodeBody(octets, 'quoted-printable')
      decodeBody(octets, 'base64')
      return partsOf(octets, 'b', 200)
    },
  }),
  reader({
    name: 'address',
    longest: 1000,
    reads: [
      'src/mail/mailbox.ts parseMailbox',
      'src/mail/mailbox.ts parseSender',
      'src/mail/address.ts parseAddress',
      'src/mail/address.ts parseDomain',
    ],
    frames: [
      ['', ''],
      ['', ' <a@b.example>'],
      ['', '@b.example'],
      ['a@', '.example'],
    ],
    units: address,
    nests: [
      ['(', ')'],
      ['<', '>'],
      ['"', '"'],
    ],
    read(octets) {
      const text = octets.toString()
      return [parseMailbox(text), parseSender(text), parseAddress(text.slice(0, 254)), parseDomain(text.slice(0, 253))]
    },
  }),
  reader({
    name: 'field of addresses',
    longest: 262_144,
    reads: [
      'src/mail/mailbox-field.ts parseMailboxField',
      'src/mail/mailbox-field.ts isMailboxListField',
      'src/mail/originators.ts readOriginators',
    ],
    frames: [
      ['', ''],
      ['', ' <a@b.example>'],
      ['a: ', ';'],
    ],
    units: address,
    nests: [
      ['(', ')'],
      ['<', '>'],
      ['"', '"'],
      ['a: ', ';'],
    ],
    read(octets) {
      const value = octets.toString('latin1')
      return [
        parseMailboxField(value),
        isMailboxListField(value),
        readOriginators([
          { name: 'From', value },
          { name: 'Reply-To', value },
        ]),
      ]
    },
  }),
  reader({
    name: 'html made into text',
    longest: maxHtml,
    reads: ['src/mail/html-text.ts textFromHtml'],
    units: html,
    nests: htmlNests,
    read: (octets) => textFromHtml(octets.toString()),
  }),
  reader({
    name: 'html with tracking',
    longest: maxHtml,
    reads: ['src/tracking/rewrite-html.ts trackHtml', 'src/tracking/html-scanner.ts scanHtml'],
    words: ['src/tracking/rewrite-html.ts'],
    frames: [
      ['', ''],
      ['<a href="https://a.example/', '">'],
      ['<script>', '</script>'],
    ],
    units: html,
    nests: htmlNests,
    read: (octets) => trackHtml(octets.toString(), tracking, recipient, tokens),
  }),
  reader({
    name: 'html of a message',
    longest: maxMessage,
    reads: ['src/mail/replace-html.ts changeHtml', 'src/tracking/rewrite-html.ts trackHtmlOctets'],
    frames: [multipart, htmlMessage, ['From: a@b.example\r\nContent-Type: text/html\r\n\r\n', '']],
    units: [...parts, ...html],
    nests: [...nestedParts, ...htmlNests],
    read: (octets) => changeHtml(octets, (inside, charset) => trackHtmlOctets(inside, charset, tracking, recipient, tokens)),
  }),
  reader({
    name: 'links of a message',
    longest: maxHtml,
    reads: ['src/mail/links.ts linksOf'],
    frames: [
      ['', ''],
      ['<a href="', '">'],
    ],
    units: html,
    nests: htmlNests,
    read(octets) {
      const text = octets.toString()
      return linksOf({ html: text, text })
    },
  }),
]
