import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readQueryForm } from './query-form.ts'

const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown

test('names with dots become objects, and numbered members lists in order', async () => {
  const form =
    'Action=SendEmail&A.member.10=z&A.member.2=%C3%A9+%2B&B.C.Data=&B.D=&Empty=&E.member.1.Name=n&E.member.1.Value=v&x=%zz&__proto__.a=b'
  expect(plain(await readQueryForm(Buffer.from(form)))).toEqual({
    Action: 'SendEmail',
    A: ['é +', 'z'],
    B: { C: { Data: '' } },
    E: [{ Name: 'n', Value: 'v' }],
    x: '%zz',
    ['__proto__']: { a: 'b' },
  })
})

test('any value is decoded as URLSearchParams does', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.stringMatching(/^[A-Za-z]{1,9}$/), fc.string({ minLength: 1, unit: 'grapheme' }), { maxKeys: 5 }),
      async (given) => {
        const text = new URLSearchParams(given).toString()
        expect(plain(await readQueryForm(Buffer.from(text)))).toEqual(Object.fromEntries(new URLSearchParams(text)))
      },
    ),
  )
})

test.each([
  ['a=1&a=2', 'twice'],
  ['a=1&a.b=2', 'structure'],
  ['a.b=1&a=2', 'twice'],
  ['a.member.0=1', 'number'],
  ['a.b.c.d.e.f.g.h.i=1', 'parts'],
  [`${'a'.repeat(300)}=1`, 'longer'],
  [Array.from({ length: 1001 }, (_, n) => `a${n}=1`).join('&'), 'more than 1000'],
  [Array.from({ length: 201 }, (_, n) => `a.member.${n + 1}=1`).join('&'), 'more than 200'],
])('%.30s is refused: %s', async (form, problem) => {
  await expect(readQueryForm(Buffer.from(form))).rejects.toThrow(problem)
})
