import { describe, expect, test } from 'vitest'
import { findMessageFault, isFitForCommand, mailCommand } from './mail-command.ts'
import type { Extensions, Transaction } from './types.ts'

const everything: Extensions = { size: 1000, pipelining: true, eightBitMime: true, smtpUtf8: true }
const plain: Extensions = { size: null, pipelining: false, eightBitMime: false, smtpUtf8: false }

const transaction = (changes: Partial<Transaction> = {}): Transaction => ({
  returnPath: 'a@b.example',
  recipients: ['c@d.example'],
  data: Buffer.from('Subject: x\r\n'),
  needs8bit: false,
  needsSmtpUtf8: false,
  mayCommitTransaction: () => true,
  ...changes,
})

describe('the MAIL command', () => {
  test.each<[string, Partial<Transaction>, Extensions, string]>([
    ['has no parameters for a peer without extensions', {}, plain, 'MAIL FROM:<a@b.example>'],
    ['has an empty null return path', { returnPath: '' }, plain, 'MAIL FROM:<>'],
    ['has the size with the fields on top', { fieldsOnTop: Buffer.from('A: b\r\n') }, everything, 'MAIL FROM:<a@b.example> SIZE=18'],
    ['announces 8-bit content', { needs8bit: true }, everything, 'MAIL FROM:<a@b.example> SIZE=12 BODY=8BITMIME'],
    [
      'has the size without stuffed dots where these exceed the limit',
      { data: Buffer.from('..a: x\r\n..\r\n...\r\n') },
      { ...everything, size: 15 },
      'MAIL FROM:<a@b.example> SIZE=14',
    ],
    ['requests SMTPUTF8 for a recipient', { recipients: ['ü@d.example'] }, everything, 'MAIL FROM:<a@b.example> SIZE=12 SMTPUTF8'],
  ])('%s', (_name, changes, extensions, line) => {
    expect(mailCommand(transaction(changes), extensions)).toBe(line)
  })
})

describe('a message', () => {
  test.each<[string, Partial<Transaction>, Extensions, string | undefined]>([
    ['without needs fits any peer', {}, plain, undefined],
    ['with every need fits a peer with every extension', { needs8bit: true, needsSmtpUtf8: true }, everything, undefined],
    ['of any size fits a peer with SIZE and no limit', {}, { ...plain, size: 0 }, undefined],
    ['over the size limit does not fit', {}, { ...plain, size: 11 }, 'size'],
    ['over the size limit only with its stuffed dots fits', { data: Buffer.from('..x\r\n..\r\n') }, { ...plain, size: 7 }, undefined],
    ['over the size limit without its stuffed dots does not fit', { data: Buffer.from('..x\r\n..\r\n') }, { ...plain, size: 6 }, 'size'],
    ['that ends without CRLF does not fit', { data: Buffer.from('x\n') }, everything, 'protocol'],
    ['with a space in its return path does not fit', { returnPath: 'a b@c.example' }, everything, 'protocol'],
    ['with a recipient beyond ASCII needs SMTPUTF8', { recipients: ['ü@d.example'] }, plain, 'smtputf8'],
    ['with 8-bit content needs 8BITMIME', { needs8bit: true }, plain, 'eightbitmime'],
    ['reports its size before its other needs', { needs8bit: true }, { ...plain, size: 1 }, 'size'],
  ])('%s', (_name, changes, extensions, kind) => {
    expect(findMessageFault(transaction(changes), extensions)?.kind).toBe(kind)
  })
})

test('an address with a line end or control character, or with a space or bracket outside quotes, is not fit for a command', () => {
  const unfit = [
    'a\r\nQUIT',
    'a b',
    'a>',
    '<a',
    'a\u2028b',
    'a\x7f',
    'a'.repeat(513),
    '"a\r\nb"@c.example',
    '"a" b@c.example',
    '"a\\"@c>.example',
  ]
  for (const one of [...unfit, 'a"b c"@d.example', '"a b"', '"a b"@c.example> SIZE=1']) expect(isFitForCommand(one)).toBe(false)
  expect(isFitForCommand('ü@example.com')).toBe(true)
})
