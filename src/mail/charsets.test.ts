import { afterEach, expect, test, vi } from 'vitest'
import { decodeCharset } from './charsets.ts'
import { fieldText } from './parse-fields.ts'

afterEach(() => void vi.unstubAllGlobals())

/** The labels of the decoders that `work` makes, or tries to make. */
function decodersOf(work: () => void): string[] {
  const made: string[] = []
  vi.stubGlobal(
    'TextDecoder',
    class extends TextDecoder {
      constructor(label?: string) {
        made.push(String(label))
        super(label)
      }
    },
  )
  work()
  return made
}

test('charsets that alternate cost one decoder each, and unknown ones none', () => {
  const words = '=?a?q?=e9?= =?ibm866?q?=8f?= =?A?q?=c3=a9?= =?IBM866*ru?q?=8f?= =?b?q?x?= '
  const many = Array.from({ length: 100 }, (_, index) => `=?x-${index}?q?x?=`).join('')
  let text = ''
  expect(decodersOf(() => (text = fieldText(words.repeat(100) + many)))).toEqual(['ibm866'])
  expect(text).toBe('éПéПx'.repeat(100) + 'x'.repeat(100))
})

test('a decoder that is used again begins anew', () => {
  const unfinished = Buffer.from('\u001b$B$3', 'latin1')
  for (let times = 0; times < 2; times++) {
    expect(decodeCharset(unfinished, 'iso-2022-jp')).toBe('こ')
    expect(decodeCharset(Buffer.from('$3'), 'ISO-2022-JP')).toBe('$3')
    expect(decodeCharset(Buffer.from([0xe3, 0x81]), 'utf-8')).toBe('\ufffd')
    expect(decodeCharset(Buffer.from([0x81]), 'shift_jis')).toBe('\ufffd')
    expect(decodeCharset(Buffer.from('\ufeffa'), 'utf-8')).toBe('a')
  }
})

test('a label may have a language, white space and capitals, and may be empty', () => {
  for (const label of ['KOI8-R', ' koi8-r\t', 'koi8-r*ru']) expect(decodeCharset(Buffer.from([0xc1]), label)).toBe('а')
  expect(decodeCharset(Buffer.from('é'), '')).toBe('é')
})
