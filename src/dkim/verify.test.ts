import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import fc from 'fast-check'
import { dkimSign } from 'mailauth/lib/dkim/sign.js'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { describe, expect, test } from 'vitest'
import { dnsText, makeEd25519Key, makeRsaKey } from './keys.ts'
import { signatureFields } from './sign.ts'
import { type FindTxt, verify } from './verify.ts'

const atMs = 1_790_000_000_000
const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()
const rsaOf = (modulusLength: number) => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength })
  return { privateKey: pem(privateKey), publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64') }
}
/** A valid pair whose public exponent is as long as its modulus: the exponents of an ordinary pair, the other way round. */
function longExponentPair() {
  const { e = '', d = '', ...numbers } = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
  const key = createPrivateKey({ key: { ...numbers, e: d, d: e, dp: e, dq: e }, format: 'jwk' })
  return { privateKey: pem(key), publicKey: createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64') }
}
const keys = { rsa: await makeRsaKey(), ed: makeEd25519Key(), small: rsaOf(768), long: longExponentPair(), other: await makeRsaKey() }
const records = new Map([
  ['rsa._domainkey.example.com', dnsText('rsa', keys.rsa.publicKey)],
  ['ed._domainkey.example.com', dnsText('ed25519', keys.ed.publicKey)],
  ['small._domainkey.example.com', dnsText('rsa', keys.small.publicKey)],
  ['long._domainkey.example.com', dnsText('rsa', keys.long.publicKey)],
  ['other._domainkey.example.com', dnsText('rsa', keys.rsa.publicKey)],
  ['revoked._domainkey.example.com', 'v=DKIM1; p='],
  ['trial._domainkey.example.com', `v=DKIM1; t=y; p=${keys.rsa.publicKey}`],
  ['strict._domainkey.example.com', `v=DKIM1; t=s; p=${keys.rsa.publicKey}`],
  ['chat._domainkey.example.com', `v=DKIM1; s=chat; p=${keys.rsa.publicKey}`],
  ['rsa._domainkey.example.net', dnsText('rsa', keys.rsa.publicKey)],
])
let asked = 0
const findTxt: FindTxt = (name) => {
  asked++
  const found = records.get(name)
  return Promise.resolve(found === undefined ? [] : [found])
}
const check = (message: Buffer, domain = 'example.com') => verify(message, domain, findTxt, atMs)

const head = 'From: Feedback <fbl@example.com>\r\nTo: us@example.org\r\nSubject:  two  spaces\r\n\tand a fold\r\n'
const report = (body = 'Hello  \t\r\n\r\nthere\r\n\r\n\r\n', fields = head) => Buffer.from(`${fields}\r\n${body}`, 'latin1')

interface By {
  selector?: keyof typeof keys | 'revoked' | 'chat' | 'trial' | 'strict'
  algorithm?: string
  form?: string
  domain?: string
  more?: object
}
/** Signed by an independent implementation. */
async function signedBy(
  message: Buffer,
  { selector = 'rsa', algorithm = 'rsa-sha256', form = 'relaxed/relaxed', domain = 'example.com', more = {} }: By = {},
) {
  const key = keys[selector as keyof typeof keys] ?? keys.rsa
  const one = { signingDomain: domain, selector, privateKey: key.privateKey, algorithm, canonicalization: form, ...more }
  const { signatures, errors } = await dkimSign(message, { ...one, signTime: new Date(atMs), signatureData: [one] })
  expect(errors).toEqual([])
  return Buffer.concat([Buffer.from(signatures as string, 'latin1'), message])
}

/** The verdict of an independent verifier. */
async function theirs(message: Buffer): Promise<boolean> {
  const resolver = (name: string) => {
    const found = records.get(name)
    return found === undefined ? Promise.reject(Object.assign(new Error(name), { code: 'ENOTFOUND' })) : Promise.resolve([[found]])
  }
  const { results } = (await dkimVerify(message, { resolver, curTime: new Date(atMs) })) as { results: { status: { result: string } }[] }
  return results.some((one) => one.status.result === 'pass')
}

describe('the signature of a report', () => {
  test.each(['relaxed/relaxed', 'relaxed/simple', 'simple/relaxed', 'simple/simple'])(
    'of another signer holds in the form %s',
    async (form) => {
      for (const body of ['', '\r\n', 'a\r\n', 'a b\t\r\n\r\n', 'no end']) {
        expect(await check(await signedBy(report(body), { form })), `rsa ${form}`).toBe('pass')
        expect(await check(await signedBy(report(body), { selector: 'ed', algorithm: 'ed25519-sha256', form })), `ed ${form}`).toBe('pass')
      }
    },
  )

  test("by Postrider's own signer holds, with either key", async () => {
    for (const [selector, algorithm] of [
      ['rsa', 'rsa'],
      ['ed', 'ed25519'],
    ] as const) {
      const key = { domain: 'example.com', selector, algorithm, privateKey: createPrivateKey(keys[selector].privateKey) }
      expect(await check(Buffer.concat([Buffer.from(await signatureFields(report(), [key], atMs)), report()]))).toBe('pass')
    }
  })

  test('by a key on trial proves nothing, by a strict one only the mail of its very domain', async () => {
    const below = (message: Buffer) => Buffer.from(message.toString('latin1').replace(/ d=/, ' i=@mail.example.com; d='), 'latin1')
    expect(await check(await signedBy(report(), { selector: 'trial' }))).toBe('fail')
    expect(await check(await signedBy(report(), { selector: 'strict' }))).toBe('pass')
    asked = 0
    expect(await check(below(await signedBy(report(), { selector: 'strict' })))).toBe('fail')
    expect(asked).toBe(1)
  })

  test('of a quarter of a million @ is judged in no time', async () => {
    const field = `DKIM-Signature: v=1; d=example.com; s=rsa; h=from; i=${'@'.repeat(250_000)}\r\n x; b=`
    expect(await check(Buffer.from(`${field}\r\n${report().toString('latin1')}`, 'latin1'))).toBe('fail')
  })

  test('is absent where there is none, and counts only for its own domain and those below', async () => {
    expect(await check(report())).toBe('none')
    expect(await check(Buffer.from('no header at all'))).toBe('none')
    const signed = await signedBy(report())
    expect(await check(signed, 'fbl.EXAMPLE.com')).toBe('pass')
    expect(await check(signed, 'badexample.com')).toBe('fail')
    expect(await check(signed, 'com')).toBe('fail')
    expect(await check(signed, 'example.net')).toBe('fail')
  })

  test.each<[string, By]>([
    ['a key under 1024 bits', { selector: 'small' }],
    ['a key whose exponent is over 32 bits', { selector: 'long' }],
    ['a key that was revoked', { selector: 'revoked' }],
    ['a key for other things than mail', { selector: 'chat' }],
    ['another key than DNS has', { selector: 'other' }],
    ['SHA-1', { algorithm: 'rsa-sha1' }],
    ['a time that is over', { more: { expires: new Date(atMs - 1000) } }],
    ['a part of the body only', { more: { maxBodyLength: 5 } }],
  ])('fails with %s', async (_, by) => {
    expect(await check(await signedBy(report(), by))).toBe('fail')
  })

  test('by a key with a long exponent is valid for a verifier that does not limit it', async () => {
    expect(await theirs(await signedBy(report(), { selector: 'long' }))).toBe(true)
  })

  test('fails with a second From, and among more than three only the first three are looked at', async () => {
    const signed = await signedBy(report())
    expect(await check(Buffer.concat([Buffer.from('From: eve@example.com\r\n'), signed]))).toBe('fail')
    const broken = (await signedBy(report('other\r\n'))).toString('latin1').split('From:')[0] ?? ''
    expect(await check(Buffer.concat([Buffer.from(broken.repeat(2), 'latin1'), signed]))).toBe('pass')
    asked = 0
    expect(await check(Buffer.concat([Buffer.from(broken.repeat(2000), 'latin1'), signed]))).toBe('fail')
    expect(asked).toBeLessThanOrEqual(3)
  })

  test('always: with any octet changed, dropped or put in, a signature that passes here passes another verifier too', async () => {
    const signed = await Promise.all(
      ['relaxed/relaxed', 'simple/simple'].flatMap((form) => [
        signedBy(report(), { form }),
        signedBy(report(), { form, selector: 'ed', algorithm: 'ed25519-sha256' }),
      ]),
    )
    const change = fc.tuple(fc.nat(3), fc.nat(4000), fc.constantFrom('', ' ', 'x', '\r\n', '\r\n ', ';', '='), fc.nat(1))
    let passed = 0
    await fc.assert(
      fc.asyncProperty(change, async ([which, place, put, drop]) => {
        const whole = signed[which] as Buffer
        const at = place % whole.length
        const message = Buffer.concat([whole.subarray(0, at), Buffer.from(put), whole.subarray(at + drop)])
        // SMTP does not accept such a message.
        fc.pre(!/\r(?!\n)|(?<!\r)\n/.test(message.toString('latin1')))
        if ((await check(message)) !== 'pass') return
        passed++
        expect(await theirs(message)).toBe(true)
      }),
      { numRuns: 1000 },
    )
    expect(passed).toBeGreaterThan(20)
  })

  test('always: is read from anything without a fault', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), fc.string(), async (value, rest) => {
        await check(Buffer.from(`DKIM-Signature: ${value}\r\nFrom: a@example.com\r\n\r\n${rest}`))
        expect(await verify(await signedBy(report()), 'example.com', () => Promise.resolve([value]), atMs)).toBe('fail')
      }),
    )
  })
})
