import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  blockRateUp,
  complaintRateHigh,
  dmarcPassRateDown,
  findChanges,
  findingBounds,
  findingSubject,
  type ShareChange,
  tlsShareDown,
} from './findings.ts'

const shares = fc.nat(5000).chain((whole) => fc.nat(whole).map((part) => ({ part, whole })))
const names = fc.constantFrom('shop.example', 'news.example', 'mail.example')
const changes: fc.Arbitrary<ShareChange> = fc.record({
  tenantId: fc.constantFrom('ta', 'tb', null),
  day: fc.constant('2026-03-02'),
  domain: names,
  source: fc.constant(null),
  provider: fc.constantFrom('gmail', 'others', null),
  before: shares,
  now: shares,
})
const change = (before: [number, number], now: [number, number]): ShareChange => ({
  tenantId: 'ta',
  day: '2026-03-02',
  domain: 'shop.example',
  source: null,
  provider: 'gmail',
  before: { part: before[0], whole: before[1] },
  now: { part: now[0], whole: now[1] },
})
const rateOf = ({ part, whole }: { part: number; whole: number }) => (whole === 0 ? 0 : part / whole)
const judges = [blockRateUp, tlsShareDown, dmarcPassRateDown, complaintRateHigh]

describe('a finding', () => {
  test('needs enough mail: small numbers change by chance', () => {
    fc.assert(
      fc.property(changes, (one) => {
        const { minAttempts, minBlocked, minAccepted, minComplaints } = findingBounds
        if (one.now.whole < minAttempts || one.now.part < minBlocked) expect(blockRateUp(one)).toBeUndefined()
        if (one.now.whole < minAccepted || one.before.whole < minAccepted) expect(tlsShareDown(one)).toBeUndefined()
        if (one.now.part < minComplaints) expect(complaintRateHigh(one)).toBeUndefined()
      }),
    )
  })

  test('is never about a day that is as good as the one before', () => {
    fc.assert(
      fc.property(changes, (one) => {
        const same = { ...one, before: one.now }
        expect([blockRateUp(same), tlsShareDown(same), dmarcPassRateDown(same)].filter((found) => found && found.before !== null)).toEqual(
          [],
        )
      }),
    )
  })

  test('stays when the day gets worse, and its severity does not fall', () => {
    const order = [undefined, 'warning', 'problem']
    fc.assert(
      fc.property(changes, fc.nat(200), (one, more) => {
        const blocked = { ...one, now: { part: one.now.part + more, whole: one.now.whole + more } }
        expect(order.indexOf(blockRateUp(blocked)?.severity)).toBeGreaterThanOrEqual(order.indexOf(blockRateUp(one)?.severity))
        const annoyed = { ...one, now: { part: Math.min(one.now.whole, one.now.part + more), whole: one.now.whole } }
        expect(order.indexOf(complaintRateHigh(annoyed)?.severity)).toBeGreaterThanOrEqual(order.indexOf(complaintRateHigh(one)?.severity))
        const open = { ...one, now: { part: Math.max(0, one.now.part - more), whole: one.now.whole } }
        expect(order.indexOf(tlsShareDown(open)?.severity)).toBeGreaterThanOrEqual(order.indexOf(tlsShareDown(one)?.severity))
      }),
    )
  })

  test('names the shares that it compares, between 0 and 1', () => {
    fc.assert(
      fc.property(changes, (one) => {
        for (const judge of judges) {
          const found = judge(one)
          if (!found) continue
          expect(found.now).toBe(rateOf(one.now))
          expect(found.before === null || found.before === rateOf(one.before)).toBe(true)
          expect(found).toMatchObject({ tenantId: one.tenantId, day: one.day, domain: one.domain, provider: one.provider })
          expect(found.text).not.toMatch(/NaN|Infinity|undefined|null/)
        }
      }),
    )
  })
})

describe('blocks', () => {
  test.each<[string, [number, number], [number, number], string | undefined]>([
    ['twice the rate of yesterday', [10, 1000], [20, 1000], 'warning'],
    ['a tenth of all attempts', [10, 1000], [100, 1000], 'problem'],
    ['less than twice', [10, 1000], [19, 1000], undefined],
    ['twice a rate that is small', [2, 1000], [8, 1000], undefined],
    ['five of a hundred, without a day before', [0, 0], [5, 100], 'warning'],
    ['four of a hundred, without a day before', [0, 0], [4, 100], undefined],
  ])('%s', (_, before, now, severity) => {
    expect(blockRateUp(change(before, now))?.severity).toBe(severity)
  })

  test('name the place, and the numbers of today and yesterday', () => {
    expect(blockRateUp(change([10, 1000], [25, 1000]))?.text).toBe(
      "shop.example at gmail: 2.5% of today's attempts are blocked, 1% yesterday",
    )
    const ofSource = { ...change([0, 0], [60, 100]), domain: null, source: '' }
    expect(blockRateUp(ofSource)?.text).toBe("the usual address at gmail: 60% of today's attempts are blocked")
  })
})

test.each<[[number, number], string | undefined]>([
  [[5, 5000], 'warning'],
  [[5, 5001], undefined],
  [[4, 100], undefined],
  [[15, 5000], 'problem'],
  [[14, 5000], 'warning'],
])('the limits for %j complaints and emails give %s', (now, severity) => {
  expect(complaintRateHigh(change([0, 0], now))?.severity).toBe(severity)
})

describe('all findings', () => {
  const facts = fc.record({
    blocks: fc.array(changes, { maxLength: 8 }),
    complaints: fc.array(changes, { maxLength: 8 }),
    tls: fc.array(changes, { maxLength: 8 }),
    dmarc: fc.array(changes, { maxLength: 8 }),
    listings: fc.array(
      fc.record({
        zone: fc.constantFrom('bl.example', 'other.example'),
        address: fc.constantFrom('192.0.2.1', '2001:db8::1'),
        codes: fc.constant(['127.0.0.2']),
        day: fc.constant('2026-03-02'),
      }),
      { maxLength: 4 },
    ),
  })
  const shape = (given: ReturnType<typeof findChanges>) =>
    given.map((one) => `${one.severity} ${one.kind} ${one.tenantId} ${findingSubject(one)}`)

  test('have the problems first, and the same order for facts in any order', () => {
    fc.assert(
      fc.property(facts, (given) => {
        const found = findChanges(given)
        expect(found.findLastIndex(({ severity }) => severity === 'problem')).toBe(
          found.filter(({ severity }) => severity === 'problem').length - 1,
        )
        const reversed = Object.fromEntries(Object.entries(given).map(([key, list]) => [key, [...list].reverse()])) as typeof given
        expect(shape(findChanges(reversed))).toEqual(shape(found))
        expect(found.filter(({ kind }) => kind === 'blocklist_new')).toHaveLength(given.listings.length)
      }),
    )
  })
})
