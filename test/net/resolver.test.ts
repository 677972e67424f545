import { describe, expect, test, vi } from 'vitest'
import { completeAnswer } from '#net'
import { type Misbehaviour, startTestDns, type TestDns } from '../support/test-dns.ts'
import { asking } from './test-resolver.ts'

const asked = (dns: TestDns, type: string) => dns.questions.filter((question) => question.type === type).length

describe('an answer', () => {
  test('brings mail servers, addresses, texts and aliases as they were published', async () => {
    await using dns = await startTestDns({
      'a.test': {
        MX: ['20 mx2.a.test', '10 mx1.a.test'],
        TXT: ['v=spf1 -all', ['v=DKIM1; ', 'p=', 'abc']],
        A: ['192.0.2.1', '192.0.2.2'],
        AAAA: ['2001:db8::1'],
      },
      'alias.a.test': { CNAME: ['a.test'] },
    })
    const { resolver } = asking(dns)
    expect(await resolver.mx('A.test.')).toEqual({
      kind: 'found',
      value: [
        { exchange: 'mx1.a.test', priority: 10 },
        { exchange: 'mx2.a.test', priority: 20 },
      ],
    })
    expect(await resolver.txt('a.test')).toEqual({ kind: 'found', value: ['v=spf1 -all', 'v=DKIM1; p=abc'] })
    expect(await resolver.addresses('a.test')).toEqual({ kind: 'found', value: ['2001:db8::1', '192.0.2.1', '192.0.2.2'] })
    expect(await resolver.cname('alias.a.test')).toEqual({ kind: 'found', value: ['a.test'] })
    expect(await resolver.mx('alias.a.test')).toMatchObject({ kind: 'found', value: [{ exchange: 'mx1.a.test' }, {}] })
    expect(await resolver.addresses('192.0.2.9')).toEqual({ kind: 'found', value: ['192.0.2.9'] })
  })

  test('follows a chain of aliases, and a wildcard covers names below it', async () => {
    await using dns = await startTestDns({
      'a.test': { CNAME: ['b.test'] },
      'b.test': { CNAME: ['c.test'] },
      'c.test': { A: ['192.0.2.1'] },
      '*.w.test': { TXT: ['wild'] },
    })
    const { resolver } = asking(dns)
    expect(await resolver.addresses('a.test')).toEqual({ kind: 'found', value: ['192.0.2.1'] })
    expect(await resolver.txt('deep.down.w.test')).toEqual({ kind: 'found', value: ['wild'] })
    expect(await resolver.txt('w.test')).toEqual({ kind: 'none' })
  })

  test('joins a text of 2,000 octets, which comes over TCP', async () => {
    const text = 'k'.repeat(2000)
    await using dns = await startTestDns({ 'a.test': { TXT: [text] } })
    const { resolver } = asking(dns)
    expect(await resolver.txt('a.test')).toEqual({ kind: 'found', value: [text] })
    expect(dns.questions.map(({ over }) => over)).toEqual(['udp', 'tcp'])
  })

  test('distinguishes a name without the record from no such name', async () => {
    await using dns = await startTestDns({ 'a.test': { A: ['192.0.2.1'] } })
    const { resolver } = asking(dns)
    for (const ask of ['mx', 'txt', 'cname'] as const) {
      expect(await resolver[ask]('a.test')).toEqual({ kind: 'none' })
      expect(await resolver[ask]('b.test')).toEqual({ kind: 'nxdomain' })
    }
    expect(await resolver.addresses('b.test')).toEqual({ kind: 'nxdomain' })
    expect(await resolver.mx(`${'x'.repeat(64)}.test`)).toEqual({ kind: 'nxdomain' })
    expect(await resolver.mx('a..test')).toEqual({ kind: 'nxdomain' })
  })

  test.each<[Misbehaviour, string]>([
    ['SERVFAIL', 'SERVFAIL'],
    ['REFUSED', 'REFUSED'],
  ])('of %s is trouble', async (how, code) => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'], A: ['192.0.2.1'] } })
    dns.fail('a.test', how)
    const { resolver } = asking(dns)
    expect(await resolver.mx('a.test')).toEqual({ kind: 'trouble', code })
    expect(await resolver.addresses('a.test')).toEqual({ kind: 'trouble', code })
  })

  test.each<Misbehaviour>(['pointer loop', 'garbage'])('that is no DNS (%s) is trouble', async (how) => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] } })
    dns.fail('a.test', how)
    const { resolver, clock } = asking(dns)
    const answer = resolver.mx('a.test')
    // Some forms get an immediate result, others are ignored until the timeout: both end.
    await expect.poll(() => dns.questions.length).toBeGreaterThan(0)
    await Promise.race([answer, new Promise((resolve) => setImmediate(resolve))])
    clock.advance(20_000)
    expect(await answer).toMatchObject({ kind: 'trouble' })
  })

  test.each<Misbehaviour>(['pointer loop', 'garbage'])('that is no DNS (%s) spoils no other question that waits', async (how) => {
    const names = Array.from({ length: 100 }, (_, index) => `n${index}.test`)
    await using dns = await startTestDns(Object.fromEntries(names.map((name) => [name, { MX: [`10 mx.${name}`] }])))
    dns.fail('a.test', how)
    const { resolver } = asking(dns)
    void resolver.mx('a.test')
    const answers = await Promise.all(names.map((name) => resolver.mx(name)))
    expect(answers.filter(({ kind }) => kind !== 'found')).toEqual([])
  })

  test('to one of thousands of questions is not lost because all are asked at once', async () => {
    const names = Array.from({ length: 2000 }, (_, index) => `n${index}.test`)
    await using dns = await startTestDns({ '*.test': { MX: ['10 mx.a.test'] } })
    const { resolver } = asking(dns)
    const answers = names.map((name) => resolver.mx(name))
    await vi.waitUntil(() => dns.questions.length > 0, { timeout: 10_000, interval: 0 })
    expect(dns.questions.length).toBeLessThanOrEqual(64)
    expect((await Promise.all(answers)).filter(({ kind }) => kind !== 'found')).toEqual([])
    expect(dns.questions).toHaveLength(names.length)
  })

  test('is not waited for in vain by others: a question without an answer soon makes room', async () => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] } })
    const { resolver, clock } = asking(dns)
    for (let nth = 0; nth < 1000; nth++) {
      dns.fail(`silent${nth}.test`, 'silence')
      void resolver.mx(`silent${nth}.test`)
    }
    const answer = resolver.mx('a.test')
    for (let asked = 64; asked < 1001; asked += 64) {
      await vi.waitUntil(() => dns.questions.length === asked, { timeout: 10_000, interval: 1 })
      clock.advance(200)
    }
    expect(await answer).toMatchObject({ kind: 'found' })
  })

  test.each<Misbehaviour>(['forged id first', 'forged question first', 'forged source first'])(
    'is refused when it is forged (%s)',
    async (how) => {
      await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] } })
      dns.fail('a.test', how)
      expect(await asking(dns).resolver.mx('a.test')).toEqual({ kind: 'found', value: [{ exchange: 'mx.a.test', priority: 10 }] })
    },
  )

  test('truncated over UDP is asked for over TCP', async () => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] } })
    dns.fail('a.test', 'truncated')
    expect(await asking(dns).resolver.mx('a.test')).toMatchObject({ kind: 'found' })
    expect(dns.questions.map(({ over }) => over)).toEqual(['udp', 'tcp'])
  })

  test('of a server that does not support EDNS is asked for without it', async () => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] } })
    dns.fail('a.test', 'no EDNS')
    expect(await asking(dns).resolver.mx('a.test')).toMatchObject({ kind: 'found' })
    expect(asked(dns, 'MX')).toBe(2)
  })

  test('of a server that cannot be reached at all is trouble, and the next is asked', async () => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] } })
    // A link-local address without an interface: `connect` refuses it.
    const unreachable = { address: '[fe80::1]:53' }
    expect(await asking(unreachable).resolver.mx('a.test')).toMatchObject({ kind: 'trouble', code: expect.not.stringMatching('TIMEOUT') })
    expect(await asking(unreachable, dns).resolver.mx('a.test')).toMatchObject({ kind: 'found' })
  })

  test('of a server that does not answer with EDNS is asked for without it, and the next at once so', async () => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] }, 'b.test': { MX: ['10 mx.b.test'] } })
    dns.fail('a.test', 'EDNS dropped')
    dns.fail('b.test', 'EDNS dropped')
    const { resolver, clock } = asking(dns)
    const first = resolver.mx('a.test')
    await expect.poll(() => dns.questions.length).toBe(1)
    clock.advance(5000)
    expect(await first).toMatchObject({ kind: 'found' })
    expect(await resolver.mx('b.test')).toMatchObject({ kind: 'found' })
    clock.advance(600_000)
    const later = resolver.mx('a.test', 'fresh')
    await expect.poll(() => dns.questions.length).toBe(4)
    clock.advance(5000)
    expect(await later).toMatchObject({ kind: 'found' })
  })

  test('costs the time of a silent server once a minute, not each time', async () => {
    const names = ['a.test', 'b.test', 'c.test', 'd.test']
    const zones = Object.fromEntries(names.map((name) => [name, { MX: [`10 mx.${name}`] }]))
    await using silent = await startTestDns(zones)
    for (const name of names) silent.fail(name, 'silence')
    await using dns = await startTestDns(zones)
    const { resolver, clock } = asking(silent, dns)
    const waited = async (name: string) => {
      const before = silent.questions.length
      const answer = resolver.mx(name)
      await expect.poll(() => silent.questions.length).toBe(before + 1)
      clock.advance(5000)
      return answer
    }
    expect(await waited('a.test')).toMatchObject({ kind: 'found' })
    for (const name of ['b.test', 'c.test']) expect(await resolver.mx(name)).toMatchObject({ kind: 'found' })
    expect(silent.questions).toHaveLength(1)
    clock.advance(60_000)
    expect(await waited('d.test')).toMatchObject({ kind: 'found' })
    for (const name of names) silent.mend(name)
    clock.advance(60_000)
    await resolver.mx('a.test', 'fresh')
    await resolver.mx('b.test', 'fresh')
    expect(silent.questions.slice(2).map(({ name }) => name)).toEqual(['a.test', 'b.test'])
  })

  test('does not wait for those of a thousand names without answers', async () => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] } })
    const names = Array.from({ length: 1000 }, (_, index) => `n${index}.test`)
    for (const name of names) dns.fail(name, 'silence')
    const { resolver, clock } = asking(dns)
    const silent = names.map((name) => resolver.mx(name))
    // Sixty-four at a time; the first have not timed out when the last are sent.
    for (let asked = 0; asked < names.length; clock.advance(200)) {
      asked = Math.min(asked + 64, names.length)
      await expect.poll(() => dns.questions.length).toBe(asked)
    }
    expect(await resolver.mx('a.test')).toMatchObject({ kind: 'found' })
    clock.advance(20_000)
    expect(await Promise.all(silent)).toEqual(names.map(() => ({ kind: 'trouble', code: 'TIMEOUT' })))
  })

  test.each<Misbehaviour>(['silence', 'truncated for good'])('that never comes (%s) is trouble within 20 s', async (how) => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] } })
    dns.fail('a.test', how)
    const { resolver, clock } = asking(dns)
    const answer = resolver.mx('a.test')
    await expect.poll(() => dns.questions.length).toBeGreaterThan(0)
    clock.advance(20_000)
    expect(await answer).toMatchObject({ kind: 'trouble' })
  })

  test('holds 100 mail servers and 40 addresses at most', async () => {
    await using dns = await startTestDns({
      'a.test': {
        MX: Array.from({ length: 1000 }, (_, index) => `${1000 - index} mx${index}.a.test`),
        A: Array.from({ length: 2000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`),
        AAAA: Array.from({ length: 1500 }, (_, index) => `2001:db8::${(index + 1).toString(16)}`),
      },
    })
    const { resolver } = asking(dns)
    const mx = await resolver.mx('a.test')
    expect(mx.kind === 'found' && mx.value.length).toBe(100)
    expect(mx.kind === 'found' && mx.value[0]).toEqual({ exchange: 'mx999.a.test', priority: 1 })
    const addresses = await resolver.addresses('a.test')
    expect(addresses.kind === 'found' && addresses.value.length).toBe(40)
  })

  test('of one address family is enough when the other has trouble, but is not kept', async () => {
    await using dns = await startTestDns({ 'a.test': { A: ['192.0.2.1'] } })
    dns.fail('a.test', 'SERVFAIL', 'AAAA')
    const { resolver, clock } = asking(dns)
    const incomplete = await resolver.addresses('a.test')
    expect(incomplete).toEqual({ kind: 'found', value: ['192.0.2.1'], lostCode: 'SERVFAIL' })
    expect(completeAnswer(incomplete)).toEqual({ kind: 'trouble', code: 'SERVFAIL' })
    dns.mend('a.test')
    dns.set('a.test', 'AAAA', ['2001:db8::1'])
    clock.advance(5000)
    const complete = await resolver.addresses('a.test')
    expect(complete).toEqual({ kind: 'found', value: ['2001:db8::1', '192.0.2.1'] })
    expect(completeAnswer(complete)).toBe(complete)
  })
})

describe('the cache', () => {
  test('shares one query among questions at the same time', async () => {
    await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'] } })
    const { resolver, clock } = asking(dns)
    await Promise.all(Array.from({ length: 50 }, () => resolver.mx('a.test')))
    expect(asked(dns, 'MX')).toBe(1)
    expect(clock.waiting).toBe(0)
  })

  test.each<[string, number, number]>([
    ['found', 300_000, 0],
    ['none', 60_000, 0],
    ['nxdomain', 60_000, 0],
    ['trouble', 5000, 0],
  ])('keeps %s mail servers for %i ms and no longer', async (kind, lifeMs) => {
    await using dns = await startTestDns({ 'found.test': { MX: ['10 mx.a.test'] }, 'none.test': { A: ['192.0.2.1'] } })
    dns.fail('trouble.test', 'SERVFAIL')
    const { resolver, clock } = asking(dns)
    expect(await resolver.mx(`${kind}.test`)).toMatchObject({ kind })
    clock.advance(lifeMs - 1)
    await resolver.mx(`${kind}.test`)
    expect(asked(dns, 'MX')).toBe(1)
    clock.advance(1)
    await resolver.mx(`${kind}.test`)
    expect(asked(dns, 'MX')).toBe(2)
  })

  const lives = [
    [0, 5000],
    [120, 120_000],
    [2 ** 31 - 1, 86_400_000],
  ] as const
  const ofOurs = [...lives, [2 ** 31, 86_400_000] as const].flatMap(([ttlS, lifeMs]) => [
    ['mx', ttlS, lifeMs, 'MX', '10 mx.a.test'] as const,
    ['txt', ttlS, lifeMs, 'TXT', 'v=spf1 -all'] as const,
  ])
  test.each(ofOurs)('keeps %s with a time to live of %i s for %i ms', async (ask, ttlS, lifeMs, type, value) => {
    await using dns = await startTestDns()
    dns.set('a.test', type, [value], ttlS)
    const { resolver, clock } = asking(dns)
    await resolver[ask]('a.test')
    clock.advance(lifeMs - 1)
    await resolver[ask]('a.test')
    expect(asked(dns, type)).toBe(1)
    clock.advance(1)
    await resolver[ask]('a.test')
    expect(asked(dns, type)).toBe(2)
  })

  test('keeps the target of an alias no longer than the alias', async () => {
    await using dns = await startTestDns()
    dns.set('alias.test', 'CNAME', ['a.test'], 20)
    dns.set('a.test', 'MX', ['10 mx.a.test'], 3600)
    const { resolver, clock } = asking(dns)
    await resolver.mx('alias.test')
    clock.advance(20_000)
    await resolver.mx('alias.test')
    expect(asked(dns, 'MX')).toBe(2)
  })

  test.each(lives)('keeps addresses with a time to live of %i s for %i ms', async (ttlS, lifeMs) => {
    await using dns = await startTestDns()
    dns.set('a.test', 'A', ['192.0.2.1'], ttlS)
    const { resolver, clock } = asking(dns)
    await resolver.addresses('a.test')
    clock.advance(lifeMs - 1)
    await resolver.addresses('a.test')
    expect(asked(dns, 'A')).toBe(1)
    clock.advance(1)
    await resolver.addresses('a.test')
    expect(asked(dns, 'A')).toBe(2)
  })

  test('is passed by on request', async () => {
    await using dns = await startTestDns()
    const { resolver } = asking(dns)
    await resolver.mx('a.test')
    dns.set('a.test', 'MX', ['10 mx.a.test'])
    expect(await resolver.mx('a.test')).toEqual({ kind: 'nxdomain' })
    expect(await resolver.mx('a.test', 'fresh')).toMatchObject({ kind: 'found' })
    expect(await resolver.mx('a.test')).toMatchObject({ kind: 'found' })
  })
})
