import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Refusal } from '#base'
import { splitAddresses } from '#vendors'
import { failureEnvelope } from './envelope.ts'
import { readMessageCall } from './read-message-call.ts'
import { readSendMessage } from './send-message.ts'
import { readSendRaw } from './send-raw.ts'

/** The result, or the refusal's envelope; any other error fails the test. */
function translated(read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { status } = JSON.parse(failureEnvelope(error, 'key', 0.1)) as { status: string }
    expect(['error', 'parameter-error']).toContain(status)
    return undefined
  }
}

const names = [
  'to',
  'cc',
  'bcc',
  'from',
  'sender',
  'subject',
  'tag',
  'reply_to',
  'plain_body',
  'html_body',
  'headers',
  'attachments',
  'bounce',
]
const others = ['rcpt_to', 'mail_from', 'data', 'id', '_expansions']

describe('the translation of any JSON', () => {
  test('gives a submission or a refusal in the form of Postal', () => {
    const parameters = fc.dictionary(fc.constantFrom(...names, ...others), fc.jsonValue())
    fc.assert(
      fc.property(parameters, (given) => {
        for (const read of [readSendMessage, readSendRaw, readMessageCall]) translated(() => read(given))
      }),
      { numRuns: 500 },
    )
  })

  test('keeps every part of a valid message', () => {
    const text = fc.string({ minLength: 1, maxLength: 40 }).filter((one) => one.trim() !== '')
    fc.assert(
      fc.property(text, fc.array(fc.emailAddress(), { minLength: 1, maxLength: 50 }), (body, to) => {
        const submission = readSendMessage({ to, from: 'a@b.example', plain_body: body })
        expect(submission).toMatchObject({ to: to.map((one) => one.trim()), from: 'a@b.example', text: body, subject: '' })
      }),
    )
  })
})

describe('lists of addresses as text', () => {
  test.each([
    ['a@b.example, c@d.example', ['a@b.example', 'c@d.example']],
    ['"Last, First" <a@b.example>,c@d.example,', ['"Last, First" <a@b.example>', 'c@d.example']],
    ['"a\\", b" <a@b.example>', ['"a\\", b" <a@b.example>']],
    ['', []],
  ])('%s', (text, parts) => expect(splitAddresses(text, 50)).toEqual(parts))

  test('joined parts without commas are split again', () => {
    const part = fc
      .string({ minLength: 1 })
      .map((one) => one.replace(/[",\\]/g, '').trim())
      .filter((one) => one !== '')
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        expect(splitAddresses(parts.join(','), parts.length)).toEqual(parts)
      }),
    )
  })

  test('a hostile list ends after one address more than the maximum', () => {
    expect(splitAddresses('a,'.repeat(100_000), 50)).toEqual(Array.from({ length: 51 }, () => 'a'))
    const send = (length: number) => () => readSendMessage({ to: 'a,'.repeat(length) })
    expect(send(24_000)).toThrow('maximum number of To addresses')
    expect(send(26_000)).toThrow('`to` is longer than 50000 characters')
  })
})
