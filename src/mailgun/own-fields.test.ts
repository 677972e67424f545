import { expect, test } from 'vitest'
import { readOwnFields } from './own-fields.ts'

const read = (...fields: string[]) => readOwnFields(Buffer.from(['From: a@shop.test', ...fields, '', 'Hi', ''].join('\r\n')), 0)

test('several fields of variables are combined, and the last value of a name counts', () => {
  const { variables } = read(
    'X-Mailgun-Variables: {"order": "4711", "twice": "first"}',
    'X-Mailgun-Variables: ',
    'x-mailgun-variables: {"lines": [1, 2], "twice": "last"}',
  )
  expect(variables).toEqual({ order: '4711', twice: 'last', lines: '[1,2]' })
  expect(() => read('X-Mailgun-Variables: {}', 'X-Mailgun-Variables: [1]')).toThrow('must be a JSON object')
  expect(() => read('X-Mailgun-Track: no', 'X-Mailgun-Track: no')).toThrow('occurs more than once')
})
