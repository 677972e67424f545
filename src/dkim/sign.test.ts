import { createPrivateKey } from 'node:crypto'
import fc from 'fast-check'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { beforeAll, describe, expect, test } from 'vitest'
import { relaxedHeader } from './canonical.ts'
import { dnsText, makeEd25519Key, makeRsaKey, type SigningKey } from './keys.ts'
import { signatureFields } from './sign.ts'

const atMs = 1_790_000_000_000
const records = new Map<string, string>()
let keys: SigningKey[] = []

beforeAll(async () => {
  const rsa = await makeRsaKey()
  const ed25519 = makeEd25519Key()
  records.set('pr-a._domainkey.example.com', dnsText('rsa', rsa.publicKey))
  records.set('pr-a-ed._domainkey.example.com', dnsText('ed25519', ed25519.publicKey))
  keys = [
    { domain: 'example.com', selector: 'pr-a', algorithm: 'rsa', privateKey: createPrivateKey(rsa.privateKey) },
    { domain: 'example.com', selector: 'pr-a-ed', algorithm: 'ed25519', privateKey: createPrivateKey(ed25519.privateKey) },
  ]
})

/** The verdict of an independent verifier on each signature. */
async function verdicts(message: Buffer): Promise<string[]> {
  const resolver = (name: string) => Promise.resolve([[records.get(name) ?? '']])
  const { results } = (await dkimVerify(message, { resolver, curTime: new Date(atMs) })) as { results: { status: { result: string } }[] }
  return results.map((one) => one.status.result)
}

const head =
  'Date: Sat, 21 Nov 2026 00:19:40 +0000\r\nFrom: Ann <ann@example.com>\r\nTo: bob@example.org\r\nSubject: A  subject\r\n folded\r\nMIME-Version: 1.0\r\n'
const signed = async (body: string, fields = head) => {
  const message = Buffer.from(`${fields}\r\n${body}`, 'latin1')
  return Buffer.concat([Buffer.from(await signatureFields(message, keys, atMs)), message])
}

describe('a DKIM signature', () => {
  test('passes an independent verifier for RSA and for Ed25519', async () => {
    expect(await verdicts(await signed('Hello  \t world \r\n\r\n\r\n'))).toEqual(['pass', 'pass'])
  })

  test('covers an empty body', async () => {
    expect(await verdicts(await signed(''))).toEqual(['pass', 'pass'])
  })

  test('always passes, with any spaces and empty lines in the body', async () => {
    const piece = fc.constantFrom('a', ' ', '  ', '\t', '\r\n', '\r\n\r\n', '.', 'x y ', '=', 'end')
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 40 }), async (pieces) => {
        expect(await verdicts(await signed(`${pieces.join('')}\r\n`))).toEqual(['pass', 'pass'])
      }),
      { numRuns: 150 },
    )
  })

  test.each(['From: eve@example.net', 'Subject: another', 'To: eve@example.net', 'Reply-To: eve@example.net'])(
    'fails when a second field is put in front: %s',
    async (field) => {
      const message = await signed('Hello\r\n')
      expect(await verdicts(Buffer.concat([Buffer.from(`${field}\r\n`), message]))).not.toContain('pass')
    },
  )

  test('fails when a word of the body changes', async () => {
    const message = (await signed('Pay 10 euros\r\n')).toString('latin1').replace('10 euros', '99 euros')
    expect(await verdicts(Buffer.from(message, 'latin1'))).not.toContain('pass')
  })

  test('is the same octets for the same message, keys and time', async () => {
    expect(await signed('Hello\r\n')).toEqual(await signed('Hello\r\n'))
  })

  test('has no line over 998 octets and only CRLF line ends', async () => {
    const message = (await signed('Hello\r\n')).toString('latin1')
    expect(message.split('\r\n').every((line) => line.length <= 998 && !/[\r\n]/.test(line))).toBe(true)
  })

  test('covers octet A0 at the end of a field, which is no space but half of a letter', () => {
    expect(relaxedHeader({ name: 'subject', value: ' \t voil\u00c3\u00a0\r\n ' })).toBe('subject:voil\u00c3\u00a0')
  })
})
