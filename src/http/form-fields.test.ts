import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type FormFile, formKind, readFormFields } from './form-fields.ts'

const limits = { json: ['json'], hidden: ['hidden'], bounds: { depth: 4, keys: 4, values: 8, keyOctets: 100 } }

const read = (octets: Buffer, type: string) => readFormFields(octets, formKind(type) ?? { kind: 'urlencoded' }, limits)
const readText = (text: string, type = 'multipart/form-data; boundary=b') => read(Buffer.from(text, 'latin1'), type).body

/** Several values of a name as an array. */
const grouped = (pairs: readonly (readonly [string, unknown])[]) =>
  Object.fromEntries(
    [...Map.groupBy(pairs, ([name]) => name)].map(([name, list]) => [name, list.length === 1 ? list[0]?.[1] : list.map(([, one]) => one)]),
  )

const name = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter((one) => one !== 'json' && one !== 'hidden' && one.trim() === one && !/[\r\n"%\\]/.test(one))
const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('\r\n', '--', '\r\n--b', '=?utf-8?q?a?='))

test('a form reads as Node writes it, multipart or urlencoded', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(name, value), { maxLength: 8 }), async (given) => {
      const pairs = given.map(([one, text]) => [one, text.replace(/\r\n|\r|\n/g, '\r\n')] as const)
      const form = new FormData()
      for (const [one, text] of pairs) form.append(one, text)
      const multipart = new Response(form)
      const type = multipart.headers.get('content-type') ?? ''
      expect(read(Buffer.from(await multipart.arrayBuffer()), type).body).toEqual(grouped(pairs))
      const urlencoded = new URLSearchParams(pairs.map(([one, text]): [string, string] => [one, text]))
      expect(read(Buffer.from(urlencoded.toString()), 'application/x-www-form-urlencoded').body).toEqual(grouped(pairs))
    }),
    { numRuns: 200 },
  )
})

test('files keep every octet, and the log gets their size alone', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (octets) => {
      const form = new FormData()
      form.append('file', new Blob([octets], { type: 'image/png' }), 'ä "b".png')
      const response = new Response(form)
      const { body, shown } = read(Buffer.from(await response.arrayBuffer()), response.headers.get('content-type') ?? '')
      const content = Buffer.from(octets).toString('base64')
      expect(body).toEqual({ file: { filename: 'ä "b".png', contentType: 'image/png', content } satisfies FormFile })
      expect(JSON.parse(shown.toString())).toEqual({ file: { filename: 'ä "b".png', contentType: 'image/png', size: octets.length } })
    }),
    { numRuns: 100 },
  )
})

test('the log gets the text of fields, cut, but not that of hidden ones', () => {
  const form = new URLSearchParams({ hidden: 'secret', a: 'x'.repeat(40_000), b: 'y' })
  const { body, shown } = read(Buffer.from(form.toString()), 'application/x-www-form-urlencoded')
  expect(body).toEqual({ hidden: 'secret', a: 'x'.repeat(40_000), b: 'y' })
  expect(JSON.parse(shown.toString())).toEqual({ hidden: { size: 6 }, a: 'x'.repeat(32_768), b: 'y' })
})

const part = (head: string, text: string) => `--b\r\n${head}\r\n\r\n${text}\r\n`

test.each([
  ['a preamble and an epilogue', `before\r\n${part('Content-Disposition: form-data; name="a"', 'x')}--b--\r\nafter`, { a: 'x' }],
  ['padding of a delimiter', '--b  \r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b--', { a: 'x' }],
  ['text like a delimiter', `${part('content-disposition: form-data; name="a"', 'x\r\n--bc\r\n--b x')}--b--`, { a: 'x\r\n--bc\r\n--b x' }],
  ['an empty value', '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n--b--', { a: '' }],
  ['a plain encoding', `${part('Content-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: 8bit', 'x')}--b--`, { a: 'x' }],
  [
    'a name of RFC 2231',
    `${part("Content-Disposition: form-data; name=a; filename*=utf-8''%C3%A4", 'x')}--b--`,
    { a: { filename: 'ä', contentType: '', content: 'eA==' } },
  ],
  ['JSON', `${part('Content-Disposition: form-data; name="json"', '{"a":[1]}')}--b--`, { json: { a: [1] } }],
  ['a name of an object', `${part('Content-Disposition: form-data; name="__proto__"', 'x')}--b--`, JSON.parse('{"__proto__":"x"}')],
])('reads %s', (_, text, body) => {
  expect(readText(text)).toEqual(body)
})

test.each([
  ['no parts', ''],
  ['no end', part('Content-Disposition: form-data; name="a"', 'x')],
  ['no name', `${part('Content-Disposition: form-data', 'x')}--b--`],
  ['another disposition', `${part('Content-Disposition: attachment; name="a"', 'x')}--b--`],
  ['an encoding', `${part('Content-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64', 'eA==')}--b--`],
  ['a long header', `--b\r\n${'x'.repeat(9000)}\r\n\r\n--b--`],
  ['a long name', `${part(`Content-Disposition: form-data; name="${'x'.repeat(1025)}"`, 'x')}--b--`],
  ['text that is not UTF-8', `${part('Content-Disposition: form-data; name="a"', '\xff')}--b--`],
  ['deep JSON', `${part('Content-Disposition: form-data; name="json"', '[[[[[1]]]]]')}--b--`],
  ['many parts', `${part('Content-Disposition: form-data; name="a"', 'x').repeat(2501)}--b--`],
  ['a JSON field twice', `${part('Content-Disposition: form-data; name="json"', '{}').repeat(2)}--b--`],
])('refuses a form with %s', (_, text) => {
  expect(() => readText(text)).toThrow(expect.objectContaining({ code: 'validation_error' }))
})

test('any octets are read or refused', () => {
  const piece = fc.constantFrom(
    '--b',
    '\r\n',
    '--',
    'Content-Disposition: form-data; name="a"',
    '; filename="x"',
    ':',
    'x',
    '&',
    '=',
    '%',
    '\xff',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.boolean(), (pieces, isMultipart) => {
      try {
        readText(pieces.join(''), isMultipart ? 'multipart/form-data; boundary=b' : 'application/x-www-form-urlencoded')
      } catch (error) {
        expect(error).toMatchObject({ status: 400 })
      }
    }),
    { numRuns: 2000 },
  )
})
