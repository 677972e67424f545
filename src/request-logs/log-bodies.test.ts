import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openSecrets, systemRandom } from '#base'
import { openPairs, sealAnew, sealGroups } from './log-bodies.ts'
import type { NumberedEntry } from './log-entry.ts'
import { holdBody } from './redact.ts'

const secrets = openSecrets('a secret for tests only', systemRandom)
const newYear = Date.UTC(2026, 0, 1)
const dayMs = 86_400_000
const wordsMax = 30_000

const given = fc.record({
  tenantId: fc.constantFrom(null, 'tnt_a', 'tnt_b'),
  day: fc.constantFrom(0, 1),
  request: fc.option(fc.string({ unit: 'grapheme', maxLength: 100 }), { nil: null }),
  times: fc.constantFrom(1, 1, 10, 20_000, wordsMax),
  /** Without members: fast-check likes the name "key", whose value is redacted. */
  response: fc.option(
    fc.array(fc.oneof(fc.string(), fc.double(), fc.constantFrom(true, null))).map((values) => JSON.stringify(values)),
    { nil: null },
  ),
})
type Given = typeof given extends fc.Arbitrary<infer One> ? One : never

const textOf = ({ request, times }: Given) =>
  request && JSON.stringify(request.repeat(Math.ceil(Math.min(times, wordsMax / request.length))))
const entryOf = (one: Given, nth: number): NumberedEntry =>
  ({
    requestId: `req_${String(nth).padStart(20, '0')}`,
    tenantId: one.tenantId,
    at: new Date(newYear + one.day * dayMs + nth),
    nth,
    request: { size: null, body: textOf(one) === null ? null : holdBody(textOf(one) as string), isBroken: false },
    response: one.response === null ? null : holdBody(one.response),
  }) as NumberedEntry

const shown = (body: Buffer | null | undefined) => (body ? body.toString().slice(0, 200) : body)

test('bodies sealed together open as they were, in groups of one tenant and day', () => {
  fc.assert(
    fc.property(fc.array(given, { maxLength: 40 }), (all) => {
      const entries = all.map(entryOf)
      const groups = sealGroups(entries, secrets)
      const found = groups.flatMap((group) => {
        expect(new Set(group.entries.map(({ tenantId, at }) => `${tenantId ?? ''} ${at.toISOString().slice(0, 10)}`))).toHaveLength(1)
        expect(group.entries[0]?.tenantId ?? '').toBe(group.tenantId)
        const pairs = openPairs({ ...group, bodies: sealAnew(group, secrets) }, secrets)
        expect(pairs).toHaveLength(group.entries.length)
        return group.entries.map(({ nth }, at) => [nth, pairs[at]?.map(shown)])
      })
      const expected = all.flatMap((one, nth) => {
        const [request, response] = [textOf(one), one.response]
        const start = (text: string | null) => shown(text === null ? null : Buffer.from(text))
        return request === null && response === null ? [] : [[nth, [start(request), start(response)]]]
      })
      expect(found.toSorted(([a], [b]) => Number(a) - Number(b))).toEqual(expected)
    }),
    { numRuns: 200 },
  )
})

test('a group stays small, because reading one entry opens all of it', () => {
  const entries = Array.from({ length: 100 }, (_, nth) =>
    entryOf({ tenantId: 'tnt_a', day: 0, request: 'a', times: 20_000, response: null }, nth),
  )
  const sizes = sealGroups(entries, secrets).map((group) => group.entries.length)
  expect(Math.max(...sizes)).toBe(7)
  expect(sizes.reduce((sum, one) => sum + one)).toBe(100)
})
