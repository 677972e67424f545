/** TLS handshakes with which a server occupies its clients, against real servers. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { connect as connectTcp, createServer } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { CostlyHandshakes } from '#net'
import { makeAuthority } from '../support/certificate-authority.ts'
import { type FakeMx, type FakeMxOptions, startFakeMx } from '../support/fake-mx.ts'
import { makeLongChain } from '../support/long-chain.ts'
import { open, tryConnect } from './send-message.ts'

const chain = makeLongChain(['mx.example.test'])
const refusal = { ok: false, failure: { stage: 'tls', kind: 'tls', message: expect.stringContaining('cost too much processor time') } }

async function peer(options: FakeMxOptions): Promise<FakeMx> {
  const mx = await startFakeMx({ starttls: true, ...options })
  onTestFinished(() => mx.close())
  return mx
}

async function listening(server: ReturnType<typeof createServer>): Promise<{ port: number }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  return { port: typeof address === 'object' && address ? address.port : 0 }
}

function movedClock(): { clock: Clock; move: (ms: number) => void } {
  let aheadMs = 0
  const move = (ms: number) => void (aheadMs += ms)
  return { clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }, move }
}

test('after a chain of 41 certificates, an address has no further handshake for six hours', async () => {
  const mx = await peer({ tls: chain })
  const { clock, move } = movedClock()
  const costlyHandshakes = new CostlyHandshakes(clock)
  const options = { clock, costlyHandshakes }
  expect((await open(mx, options)).secure).toBe(true)
  for (const tls of ['opportunistic', 'old', 'require'] as const) expect(await tryConnect(mx, { ...options, tls })).toMatchObject(refusal)
  expect(await tryConnect(mx, { ...options, tls: 'implicit' })).toMatchObject(refusal)
  expect((await open(mx, { ...options, tls: 'none' })).secure).toBe(false)
  move(6 * 3_600_000)
  expect((await open(mx, options)).secure).toBe(true)
})

test('a server that sends such a chain and does not end the handshake has no further one', async () => {
  const server = createTlsServer(makeLongChain(['mx.example.test'], 90), (socket) => socket.on('error', () => undefined)).on(
    'tlsClientError',
    () => undefined,
  )
  const { port } = await listening(server)
  // Passes on the beginning of the server's flight, which contains most of the chain.
  const cut = createServer((socket) => {
    const onward = connectTcp({ port, host: '127.0.0.1' })
    let left = 34_000
    socket.on('error', () => onward.destroy()).pipe(onward)
    onward
      .on('error', () => socket.destroy())
      .on('data', (octets) => {
        socket.write(octets.subarray(0, left))
        left = Math.max(0, left - octets.length)
        if (left === 0) socket.end()
      })
  })
  const at = await listening(cut)
  const options = { tls: 'implicit' as const, costlyHandshakes: new CostlyHandshakes(systemClock) }
  expect(await tryConnect(at, options)).toMatchObject({ ok: false, failure: { message: expect.stringContaining('handshake failed') } })
  expect(await tryConnect(at, options)).toMatchObject(refusal)
})

test('usual handshakes, and failed ones, are not remembered', async () => {
  const costlyHandshakes = new CostlyHandshakes(systemClock)
  const long = makeLongChain(['mx.example.test'], 9)
  for (const tls of [undefined, long]) {
    const mx = await peer(tls ? { tls } : {})
    for (let n = 0; n < 2; n++) expect((await open(mx, { costlyHandshakes })).secure).toBe(true)
  }
  const other = await peer({ tls: { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT:@SECLEVEL=0' } })
  for (let n = 0; n < 2; n++)
    expect(await tryConnect(other, { costlyHandshakes })).toMatchObject({ ok: false, failure: { mayBeOldTls: true } })
})

test('a chain of a few keys with long exponents counts, and one of large keys does not', () => {
  const { e, d, ...numbers } = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
  const long = createPrivateKey({ key: { ...numbers, e: d, d: e, dp: e, dq: e } as typeof numbers, format: 'jwk' })
  const usual = generateKeyPairSync('rsa', { modulusLength: 4096 }).privateKey
  const [one, other] = [
    { address: '192.0.2.1', name: 'mx.example.test' },
    { address: '192.0.2.2', name: 'mx.example.test' },
  ]
  for (const [privateKey, isCostly] of [
    [long, true],
    [usual, false],
  ] as const) {
    const costlyHandshakes = new CostlyHandshakes(systemClock)
    costlyHandshakes.note(one, 9000, () => [makeAuthority('One', { privateKey }).certificate])
    expect(costlyHandshakes.has(one)).toBe(isCostly)
    costlyHandshakes.note(other, 5000, () => [makeAuthority('One', { privateKey }).certificate])
    expect(costlyHandshakes.has(other)).toBe(false)
  }
})

test('one name of an address does not keep others from TLS, and three names do', () => {
  const { clock, move } = movedClock()
  const costlyHandshakes = new CostlyHandshakes(clock)
  const has = (name: string, address = '192.0.2.1') => costlyHandshakes.has({ address, name })
  const fail = (name: string, octets = 33_000) => costlyHandshakes.note({ address: '192.0.2.1', name }, octets, undefined)
  fail('shop.example', 24_000)
  expect(has('shop.example')).toBe(false)
  fail('one.example')
  expect([has('one.example'), has('shop.example'), has('one.example', '192.0.2.2')]).toEqual([true, false, false])
  fail('two.example')
  expect(has('shop.example')).toBe(false)
  move(3_600_000)
  fail('three.example')
  expect([has('shop.example'), has('shop.example', '192.0.2.2')]).toEqual([true, false])
  move(5 * 3_600_000)
  expect([has('shop.example'), has('one.example'), has('three.example')]).toEqual([false, false, true])
})

test('a server cannot choose the group of the key exchange: DHE is not offered, in old TLS either', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const { cert, key } = makeAuthority('Test', { privateKey }).issue({ names: ['mx.example.test'], privateKey })
  const tls: TlsOptions = { cert, key, maxVersion: 'TLSv1.2', dhparam: 'auto', ciphers: 'DHE-RSA-AES128-GCM-SHA256' }
  const mx = await peer({ tls })
  expect(await tryConnect(mx)).toMatchObject({ ok: false, failure: { stage: 'tls', mayBeOldTls: true } })
  expect(await tryConnect(mx, { tls: 'old' })).toMatchObject({ ok: false, failure: { stage: 'tls' } })
  const rsa = await peer({ tls: { ...tls, ciphers: 'AES128-GCM-SHA256' } })
  expect((await open(rsa)).tls?.version).toBe('TLSv1.2')
})
