import { expect, test } from 'vitest'
import { complainedEmail } from './complained-email.ts'

/** `p1` is the return path of email 1, `t1` its trace header. */
const idsIn = (text: string, letter: string) => [...text.matchAll(new RegExp(`${letter}(\\d)`, 'g'))].map(([, id = '']) => id)
const returnPaths = { readAll: (text: string) => idsIn(text, 'p'), readTraceHeaders: (text: string) => idsIn(text, 't') }

const byPath = (emailId: string) => ({ emailId, matchedBy: 'return path' })
const byTrace = (emailId: string) => ({ emailId, matchedBy: 'trace header' })

test.each<[string, string[], string[], object | undefined]>([
  ['without a name there is no email', [], ['a'], undefined],
  ['a return path in a field', ['p1'], [], byPath('1')],
  ['a trace header in a field', ['t1'], [], byTrace('1')],
  ['the first field with a name outweighs later fields and the text', ['a', 't1', 'p2'], ['p3'], byTrace('1')],
  ['in a text, a return path outweighs a trace header', [], ['t1', 'p2'], byPath('2')],
  ['a trace header in a text', [], ['a', 't1'], byTrace('1')],
  ['two emails in the first text with a name are unclear', [], ['a', 'p1 p2', 'p3'], undefined],
])('%s', (_, fields, texts, expected) => {
  expect(complainedEmail({ fields, texts }, returnPaths, 0)).toEqual(expected)
})
