/** Input of Postal's API: parameters of its endpoints, as JSON. */

import { readMessageCall } from '../../../../src/postal/read-message-call.ts'
import { readSendMessage } from '../../../../src/postal/send-message.ts'
import { readSendRaw } from '../../../../src/postal/send-raw.ts'
import { splitAddresses } from '../../../../src/vendors/split-addresses.ts'
import { type Reader, reader } from '../reader.ts'

const maxBody = 262_144
const addresses = ['ann@a.example', 'b{i}@b.example, ', '"Ann', '" <', '>', ',', '\\\\"', '\\\\', ' ', 'é']
const json = ['"a{i}":"b",', '"a":', '[', ']', '{', '}', ',', '"', '\\u0000', '\\n']
const parametersOf = (octets: Buffer) => JSON.parse(octets.toString()) as Record<string, unknown>

export const postalReaders: readonly Reader[] = [
  reader({
    name: 'list of addresses for Postal',
    longest: maxBody,
    reads: ['src/vendors/split-addresses.ts splitAddresses'],
    units: addresses,
    nests: [['"', '"']],
    read: (octets) => splitAddresses(octets.toString(), Number.POSITIVE_INFINITY),
  }),
  reader({
    name: 'message for Postal',
    longest: maxBody,
    reads: ['src/postal/send-message.ts readSendMessage', 'src/postal/read-message-call.ts readMessageCall'],
    frames: [
      ['{"to":["a@b.example"],"from":"', '","plain_body":"a"}'],
      ['{"to":"', '","from":"a@b.example","plain_body":"a"}'],
      ['{"to":["a@b.example"],"from":"a@b.example","sender":"', '","plain_body":"a"}'],
      ['{"to":["a@b.example"],"from":"a@b.example","plain_body":"a","headers":{', '"z":"z"}}'],
      ['{"to":["a@b.example"],"from":"a@b.example","plain_body":"a","attachments":[{"name":"', '","data":"YQ=="}]}'],
      ['{"to":["a@b.example"],"from":"a@b.example","plain_body":"a","attachments":[{"name":"a","content_type":"', '","data":"YQ=="}]}'],
      ['{"to":["a@b.example"],"from":"a@b.example","plain_body":"a","attachments":[{"name":"a","data":"', '"}]}'],
      ['{"id":"', '","_expansions":true}'],
      ['{"id":1,"_expansions":[', '1]}'],
    ],
    units: [...addresses, ...json, '"status",', 'text/plain; ', '/', 'YWJj', 'YWJj\\r\\n'],
    read: (octets) => {
      const parameters = parametersOf(octets)
      return 'id' in parameters ? readMessageCall(parameters) : readSendMessage(parameters)
    },
  }),
  reader({
    name: 'raw message for Postal',
    longest: maxBody,
    reads: ['src/postal/send-raw.ts readSendRaw'],
    frames: [
      ['', ''],
      ['From: a@b.example\r\n', '\r\n\r\na'],
      ['From: a@b.example\r\nX-Postal-Tag: ', '\r\n\r\na'],
      ['From: ', '\r\n\r\na'],
    ],
    units: [...addresses, 'X-Postal-Tag: a\r\n', 'X-a{i}: b\r\n', '\r\n ', '=?utf-8?q?a?= ', '=?', '?=', '\r\n'],
    read: (octets) => readSendRaw({ rcpt_to: ['a@b.example'], mail_from: 'a@b.example', data: octets.toString('base64') }),
  }),
]
