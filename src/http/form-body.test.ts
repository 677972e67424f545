import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonInForm } from './form-body.ts'

const textOf = (form: string) => jsonInForm(Buffer.from(form))?.toString()

test('the field of a form reads as URLSearchParams reads it', () => {
  const value = fc.string({ unit: 'grapheme' })
  fc.assert(
    fc.property(value, fc.array(fc.tuple(fc.string(), value)), (json, others) => {
      const form = new URLSearchParams([...others.filter(([name]) => name !== 'params'), ['params', json], ['params', 'a second']])
      expect(textOf(form.toString())).toBe(form.get('params'))
    }),
  )
})

test.each([
  ['no field', 'a=b&paramsx=1&xparams=2', ''],
  ['an empty field', 'params=', ''],
  ['incomplete escapes', 'params=%7B%2&x=1', '{%2'],
  ['an escape across the end of the field', 'params=%2&2=1', '%2'],
  ['plus signs', 'params=a+b%2Bc', 'a b+c'],
  ['nothing', '', ''],
])('a form with %s', (_, form, json) => {
  expect(textOf(form)).toBe(json)
})

test('a form of over 1 MiB is not read', () => {
  expect(jsonInForm(Buffer.alloc(1_048_577, 'params={}&'))).toBeUndefined()
})
