import { describe, expect, test } from 'vitest'
import type { Clock } from '#base'
import { systemClock } from '#base'
import type { Resolver } from '#net'
import { type AuthenticationDeps, addressOfPtr, authenticate } from './authenticate.ts'

const missing = async () => ({ kind: 'nxdomain' as const })
const nothing: AuthenticationDeps['resolver'] = { txt: missing, mx: missing, addresses: missing, ptr: missing, cname: missing }
const deps = (resolver: Partial<Resolver>, clock: Clock = systemClock): AuthenticationDeps => ({
  resolver: { ...nothing, ...resolver },
  clock,
  hostname: 'house.test',
})
const facts = { client: '192.0.2.1', greeting: 'mx.example.net', sender: 'ann@example.net', from: 'ann@example.net', signatures: [] }
const texts = (table: Record<string, string[]>): Partial<Resolver> => ({
  txt: async (name) => (table[name] ? { kind: 'found', value: table[name] } : { kind: 'nxdomain' }),
})

/** Processor time in milliseconds, the least of three runs, because other tests use the processor too. */
async function leastCpuMs(work: () => Promise<unknown>): Promise<number> {
  let least = Infinity
  for (let run = 0; run < 3; run++) {
    const before = process.cpuUsage()
    await work()
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / 1000)
  }
  return least
}

describe('a message', () => {
  test('is judged by all kinds of records of the sender', async () => {
    const spfOf = async (record: string, resolver: Partial<Resolver> = {}) =>
      (await authenticate(deps({ ...texts({ 'example.net': [record] }), ...resolver }), facts)).spf.result
    const addresses: Resolver['addresses'] = async (name) =>
      name === 'mx.example.net' ? { kind: 'found', value: ['2001:db8::1', '192.0.2.1'] } : { kind: 'nxdomain' }
    const mx: Resolver['mx'] = async () => ({ kind: 'found', value: [{ priority: 10, exchange: 'mx.example.net' }] })
    expect(await spfOf('v=spf1 ip4:192.0.2.1 -all')).toBe('pass')
    expect(await spfOf('v=spf1 a:mx.example.net -all', { addresses })).toBe('pass')
    expect(await spfOf('v=spf1 mx -all', { addresses, mx })).toBe('pass')
    expect(await spfOf('v=spf1 ptr:example.net -all', { addresses, ptr: async () => ({ kind: 'found', value: ['mx.example.net'] }) })).toBe(
      'pass',
    )
    expect(await spfOf('v=spf1 a:other.example.net -all', { addresses })).toBe('fail')
    expect(await spfOf('v=spf1 include:none.example.net -all')).toBe('permerror')
  })

  test('without any record has no results to go by', async () => {
    expect(await authenticate(deps({}), facts)).toEqual({
      spf: { result: 'none', domain: 'example.net' },
      dkim: [],
      dmarc: { result: 'none', domain: 'example.net', policy: null },
    })
    expect((await authenticate(deps({}), { ...facts, from: '' })).dmarc).toEqual({ result: 'permerror', domain: '', policy: null })
    expect((await authenticate(deps({}), { ...facts, sender: '' })).spf.domain).toBe('mx.example.net')
  })

  test('gets temperror while DNS does not answer, and does not wait for it', async () => {
    const trouble = async () => ({ kind: 'trouble' as const, code: 'ESERVFAIL' })
    const signatures = [{ domain: 'example.net', selector: 's', tags: new Map([['d', 'example.net']]), octets: new Uint8Array(1) }]
    const failed = await authenticate(deps({ txt: trouble }), { ...facts, signatures })
    expect(failed).toMatchObject({ spf: { result: 'temperror' }, dkim: [{ result: 'temperror' }], dmarc: { result: 'temperror' } })
    const silent = deps({ txt: () => new Promise<never>(() => {}) }, { ...systemClock, after: (_ms, call) => systemClock.after(0, call) })
    expect(await authenticate(silent, { ...facts, signatures })).toEqual(failed)
  })

  test('whose records are endless or huge costs a limited number of queries', async () => {
    let queries = 0
    const count = async (name: string) => {
      queries++
      return { kind: 'found' as const, value: [`v=spf1 include:a.${name} include:b.${name} -all`] }
    }
    expect((await authenticate(deps({ txt: count }), facts)).spf.result).toBe('permerror')
    expect(queries).toBeLessThanOrEqual(120)
    const huge = texts({ 'example.net': [`v=spf1 ${'ip4:192.0.2.1 '.repeat(3000)}-all`] })
    expect((await authenticate(deps(huge), facts)).spf.result).toBe('temperror')
  })

  test('whose record has more than 200 terms is not evaluated', async () => {
    const spfOf = async (networks: number) => {
      const record = `v=spf1 ${'ip4:192.0.2.9 '.repeat(networks)}ip4:192.0.2.1 -all`
      return (await authenticate(deps(texts({ 'example.net': [record] })), facts)).spf.result
    }
    expect(await spfOf(197)).toBe('pass')
    expect(await spfOf(198)).toBe('permerror')
  })

  test('is evaluated in steps, of which each turn of the event loop has one for all messages together', async () => {
    let turn = 0
    let isOver = false
    const countTurns = () => {
      turn++
      if (!isOver) setImmediate(countTurns)
    }
    setImmediate(countTurns)
    const queries: number[] = []
    const txt = async (name: string) => {
      queries.push(turn)
      return name.length > 40
        ? { kind: 'found' as const, value: ['v=spf1 ip4:192.0.2.1 -all'] }
        : { kind: 'found' as const, value: [`v=spf1 include:next.${name} -all`] }
    }
    const found = await Promise.all(Array.from({ length: 30 }, () => authenticate(deps({ txt }), facts)))
    isOver = true
    expect(found.map((one) => one.spf.result)).toEqual(Array(30).fill('pass'))
    const later = queries.filter((one) => one > 0)
    expect(later.length).toBeGreaterThan(100)
    // The chain of answers and the count may share a turn at different places in it.
    for (const one of new Set(later)) expect(later.filter((other) => other === one).length).toBeLessThanOrEqual(2)
  })

  test('whose records expand to long names costs little time, and no useful record is refused', async () => {
    const { result } = (await authenticate(deps(texts({ 'example.net': ['v=spf1 exists:%{ir}.%{v}.%{l1r-}.%{d2} ~all'] })), facts)).spf
    expect(result).toBe('softfail')
    const long = { ...facts, sender: `${'a'.repeat(64)}@example.net`, greeting: 'a'.repeat(16_000) }
    const records = [
      `v=spf1 redirect=x.${'%{l}'.repeat(500)}_`,
      `v=spf1 redirect=x.${'%{l}'.repeat(8)}${'a'.repeat(260)}_`,
      `v=spf1 redirect=x.%{h}${'%{l}'.repeat(7)}_`,
      `\tv=spf1 redirect=x.${'a'.repeat(8_000)}_`,
      `v=spf1 ${`redirect=x.${'a'.repeat(280)}_ `.repeat(27)}`,
      `v=spf1 ${`a=${'%{S}'.repeat(8)} `.repeat(200)}`,
    ]
    for (const record of records) {
      const judged = async () => {
        const found = await authenticate(deps(texts({ 'example.net': [record] })), long)
        expect(found.spf.result).toBe('permerror')
      }
      expect(await leastCpuMs(judged)).toBeLessThan(50)
    }
    for (const far of ['a'.repeat(16_000), `${'a'.repeat(16_000)}.net`, `${'a.'.repeat(8_000)}net`]) {
      const judged = async () => {
        await authenticate(deps({}), { ...facts, sender: '', greeting: far })
        await authenticate(deps({}), { ...facts, sender: `${far}@${far}`, greeting: far })
      }
      expect(await leastCpuMs(judged)).toBeLessThan(50)
    }
  })
})

test('the name of a reverse lookup gives its address', () => {
  expect(addressOfPtr('1.2.0.192.in-addr.arpa')).toBe('192.0.2.1')
  expect(addressOfPtr(`${'1.'.padEnd(48, '0.')}8.b.d.0.1.0.0.2.ip6.arpa`)).toBe('2001:0db8:0000:0000:0000:0000:0000:0001')
  expect(addressOfPtr('example.net')).toBe('example.net')
})
