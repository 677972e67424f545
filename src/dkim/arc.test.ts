import { createPrivateKey } from 'node:crypto'
import fc from 'fast-check'
import type { ARCData } from 'mailauth'
import { arc, sealMessage } from 'mailauth/lib/arc/index.js'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { describe, expect, test } from 'vitest'
import { arcChainOf, type ChainStatus, chainStatus } from './arc-chain.ts'
import { arcSetFields, sealableOf, takesAnotherSet } from './arc-seal.ts'
import { dnsText, makeEd25519Key, makeRsaKey, type SigningKey } from './keys.ts'
import type { FindTxt } from './verify.ts'

const atMs = 1_790_000_000_000
const rsa = await makeRsaKey()
const ed25519 = makeEd25519Key()
const records = new Map([
  ['pr-a._domainkey.example.com', dnsText('rsa', rsa.publicKey)],
  ['pr-a-ed._domainkey.example.com', dnsText('ed25519', ed25519.publicKey)],
  ['s._domainkey.other.test', `v=DKIM1; t=y; p=${rsa.publicKey}`],
])
const key: SigningKey = { domain: 'example.com', selector: 'pr-a', algorithm: 'rsa', privateKey: createPrivateKey(rsa.privateKey) }
const edKey: SigningKey = { ...key, selector: 'pr-a-ed', algorithm: 'ed25519', privateKey: createPrivateKey(ed25519.privateKey) }

let asked: string[] = []
const findTxt: FindTxt = async (name) => {
  asked.push(name)
  return [records.get(name) ?? []].flat()
}
const chainOf = (message: Buffer) => arcChainOf(message, atMs)
const statusOf = (message: Buffer) => chainStatus(chainOf(message), findTxt)

/** By Postrider. */
async function sealed(message: Buffer, by = key, status?: ChainStatus): Promise<Buffer> {
  const sealable = sealableOf(message, [])
  if (!sealable) throw new Error('not sealable')
  const facts = {
    chain: chainOf(message),
    status: status ?? (await statusOf(message)),
    results: 'mx.example.com;\r\n\tspf=pass',
    key: by,
    atMs,
  }
  return Buffer.concat([Buffer.from(await arcSetFields(sealable, facts)), message])
}

/** By an independent implementation. */
async function sealedByOther(message: Buffer, cv: ChainStatus): Promise<Buffer> {
  const seal = { signingDomain: 'other.test', selector: 's', privateKey: rsa.privateKey, authResults: 'mx.other.test; dkim=none', cv }
  return Buffer.concat([await sealMessage(message, { ...seal, signTime: new Date(atMs) }), message])
}

/** The status by an independent implementation. */
async function theirs(message: Buffer): Promise<string> {
  const resolver = (name: string) => {
    const found = records.get(name)
    return found === undefined ? Promise.reject(Object.assign(new Error(name), { code: 'ENOTFOUND' })) : Promise.resolve([[found]])
  }
  const read = await dkimVerify(message, { resolver, curTime: new Date(atMs) })
  return (await arc((read as unknown as { arc: ARCData }).arc, { resolver })).status.result
}

const head =
  'DKIM-Signature: v=1; d=example.net\r\nDate: Sat, 21 Nov 2026 00:19:40 +0000\r\nFrom: Ann <ann@example.net>\r\nTo: bob@example.org\r\nSubject: A  subject\r\n folded\r\nMessage-ID: <1@example.net>\r\n'
const plain = Buffer.from(`${head}\r\nHello  \t world \r\n\r\n\r\n`)
const changed = (message: Buffer, from: string, to: string) => {
  const text = message.toString('latin1')
  expect(text).toContain(from)
  return Buffer.from(text.replace(from, to), 'latin1')
}
const changes = [
  ['Hello', 'hello'],
  ['Ann <', 'Eve <'],
  ['Subject: A', 'Subject: B'],
  ['Subject: A', 'Subject: B\r\nSubject: A'],
  ['spf=pass', 'spf=fail'],
  ['d=example.net', 'd=example.org'],
] as const

describe('an ARC set', () => {
  test('passes an independent verifier, and no longer once the message or the results change', async () => {
    for (const by of [key, edKey]) {
      const message = await sealed(plain, by)
      expect(await theirs(message)).toBe('pass')
      expect(await statusOf(message)).toBe('pass')
      for (const [from, to] of changes) {
        const other = changed(message, from, to)
        expect([await theirs(other), await statusOf(other)], to).toEqual(['fail', 'fail'])
      }
    }
  })

  test('stays valid below further trace fields and signatures', async () => {
    const more = Buffer.from('DKIM-Signature: v=1; d=example.com\r\nReceived: from a by b\r\n')
    const message = Buffer.concat([more, await sealed(plain)])
    expect([await theirs(message), await statusOf(message)]).toEqual(['pass', 'pass'])
  })

  test('continues the chain of another sealer, and another continues ours', async () => {
    const first = await sealedByOther(plain, 'none')
    expect(await statusOf(first)).toBe('pass')
    const second = await sealed(first)
    expect(second.toString()).toMatch(/^ARC-Seal: i=2; a=rsa-sha256; cv=pass;/)
    expect(await theirs(second)).toBe('pass')
    const third = await sealedByOther(second, 'pass')
    expect([chainOf(third).highest, await statusOf(third), await theirs(third)]).toEqual([3, 'pass', 'pass'])
    for (const i of [1, 2, 3]) {
      const other = changed(third, `ARC-Authentication-Results: i=${i};`, `ARC-Authentication-Results: i=${i}; none;`)
      expect([await theirs(other), await statusOf(other)], `i=${i}`).toEqual(['fail', 'fail'])
    }
  })

  test('of a failed chain records the failure and covers only itself, and no set follows it', async () => {
    const broken = changed(await sealed(plain), 'Hello', 'hello')
    expect(takesAnotherSet(chainOf(broken))).toBe(true)
    const message = await sealed(broken)
    expect(message.toString()).toMatch(/^ARC-Seal: i=2; a=rsa-sha256; cv=fail;/)
    expect([chainOf(message).state, takesAnotherSet(chainOf(message))]).toEqual(['ended', false])
    expect([await statusOf(message), await theirs(message)]).toEqual(['fail', 'fail'])
  })

  test('is the last one at instance 50, and each key is looked up once', { timeout: 30_000 }, async () => {
    let message: Buffer = plain
    for (let instance = 1; instance <= 50; instance++) message = await sealed(message, key, instance === 1 ? 'none' : 'pass')
    expect(await theirs(message)).toBe('pass')
    asked = []
    expect(await statusOf(message)).toBe('pass')
    expect(asked).toEqual(['pr-a._domainkey.example.com'])
    expect(takesAnotherSet(chainOf(message))).toBe(false)
    expect(await statusOf(await sealed(message, key, 'pass'))).toBe('fail')
  })
})

describe('a chain', () => {
  test('gives other work a turn between the signatures of its sets', async () => {
    let message: Buffer = plain
    for (let instance = 1; instance <= 5; instance++) message = await sealed(message, key, instance === 1 ? 'none' : 'pass')
    let turns = 0
    let isDone = false
    const count = () => {
      if (isDone) return
      turns++
      setImmediate(count)
    }
    setImmediate(count)
    expect(await statusOf(message)).toBe('pass')
    isDone = true
    expect(turns).toBeGreaterThanOrEqual(4)
  })

  test.each([
    ['without a seal', /ARC-Seal: [^:]*?(?=ARC-)/, ''],
    ['with a set twice', /^/, 'ARC-Seal: i=1; cv=none; a=rsa-sha256; d=example.com; s=pr-a; b=AA\r\n'],
    ['that begins at 2', /i=1;/g, 'i=2;'],
    ['with the status of a later set', /cv=none/, 'cv=pass'],
    ['with h= in its seal', /cv=none;/, 'cv=none; h=from;'],
    ['with an unknown instance', /^/, 'ARC-Seal: i=51; cv=pass; a=rsa-sha256; d=example.com; s=pr-a; b=AA\r\n'],
    ['of a message with two authors', /^/, 'From: eve@example.org\r\n'],
  ])('%s fails without a lookup', async (_, from, to) => {
    const message = Buffer.from((await sealed(plain)).toString('latin1').replace(from, to), 'latin1')
    asked = []
    expect(await statusOf(message)).toBe('fail')
    expect(asked).toEqual([])
  })

  test('without instances takes no set, because there is nothing to continue', () => {
    const chain = chainOf(Buffer.concat([Buffer.from('ARC-Seal: i=x; cv=none\r\n'), plain]))
    expect([chain.state, takesAnotherSet(chain)]).toEqual(['fail', false])
  })

  test('of a failed lookup has no status: the error is passed on', async () => {
    const lookup = () => Promise.reject(new Error('SERVFAIL'))
    await expect(chainStatus(chainOf(await sealed(plain)), lookup)).rejects.toThrow('SERVFAIL')
  })

  test('with any octets changed passes only if an independent verifier passes it', async () => {
    const whole = await sealed(await sealedByOther(plain, 'none'))
    await fc.assert(
      fc.asyncProperty(
        fc.nat(whole.length - 1),
        fc.nat(3),
        fc.constantFrom('', ' ', ';', '=', 'a', 'A', '2', '\r\n ', '\r\n', ':', ',', '\r\nARC-Seal: i=3; cv=pass;'),
        async (at, length, put) => {
          const message = Buffer.concat([whole.subarray(0, at), Buffer.from(put), whole.subarray(at + length)])
          if ((await statusOf(message)) === 'pass') expect(await theirs(message), message.toString()).toBe('pass')
        },
      ),
      { numRuns: 300 },
    )
  })
})

test('a message with hundreds of signed fields is not sealed', () => {
  const many = Buffer.concat([Buffer.from('To: bob@example.org\r\n'.repeat(300)), plain])
  expect(sealableOf(many, [])).toBeUndefined()
})
