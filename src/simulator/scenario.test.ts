/**
 * Scenarios: parsing, invalid files, and repeatable random choices.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readScenario, type Scenario, simulate, waitFraction } from './simulator.ts'

const world = (hosts: object, seed = 7) => readScenario(JSON.stringify({ seed, hosts }))
const codes = (scenario: Scenario, recipient: string, attempts: number, elapsedMs = 0) =>
  Array.from({ length: attempts }, (_, index) => {
    const result = simulate({ recipient, attempt: index + 1, elapsedMs }, scenario)
    return result.kind === 'reply' ? result.reply.code : 'timeout'
  })

describe('a host', () => {
  test('answers each attempt with its reply, and stays with the last', () => {
    const scenario = world({ 'moody.example': { replies: ['451 4.3.2 Busy', 'timeout', '250 2.0.0 Ok'] } })
    expect(codes(scenario, 'a@Moody.example', 5)).toEqual([451, 'timeout', 250, 250, 250])
    expect(codes(scenario, 'a@other.example', 1)).toEqual([250])
    expect(codes(scenario, 'hardfail@simulator.test', 1)).toEqual([550])
  })

  test('that greylists defers until its time has passed since acceptance', () => {
    const scenario = world({ '*': { greylistMinutes: 10 } })
    expect(codes(scenario, 'a@b.example', 3, 599_999)).toEqual([451, 451, 451])
    expect(codes(scenario, 'a@b.example', 1, 600_000)).toEqual([250])
  })

  test('refuses about as often as its chance', () => {
    const scenario = world({ '*': { sometimes: [{ chance: 0.25, reply: '550 5.1.1 No' }] } })
    const refused = Array.from({ length: 2000 }, (_, n) => codes(scenario, `r${n}@b.example`, 1)[0]).filter((code) => code === 550)
    expect(refused.length).toBeGreaterThan(420)
    expect(refused.length).toBeLessThan(580)
  })

  test('takes its time and reports within the bounds given', () => {
    const later = [{ chance: 1, kind: 'bounce', afterSeconds: [60, 90] }]
    const result = simulate({ recipient: 'a@b.example', attempt: 1, elapsedMs: 0 }, world({ '*': { delayMs: [200, 800], later } }))
    expect(result.delayMs).toBeGreaterThanOrEqual(200)
    expect(result.delayMs).toBeLessThanOrEqual(800)
    const [bounce] = result.kind === 'reply' ? result.followUps : []
    expect(bounce?.kind).toBe('bounce')
    expect(bounce?.afterMs).toBeGreaterThanOrEqual(60_000)
    expect(bounce?.afterMs).toBeLessThanOrEqual(90_000)
  })
})

test.each([
  ['[]', 'must be an object'],
  ['{"seed":1.5,"hosts":{}}', 'seed'],
  ['{"seed":1,"hosts":{},"more":1}', 'an unknown field more'],
  ['{"seed":1,"hosts":{"a.example":{"reply":"x"}}}', 'hosts.a.example has an unknown field reply'],
  ['{"seed":1,"hosts":{"a.example":{"replies":["999 no"]}}}', 'hosts.a.example.replies[0]'],
  ['{"seed":1,"hosts":{"a.example":{"replies":["250 a\\nb"]}}}', 'hosts.a.example.replies[0]'],
  ['{"seed":1,"hosts":{"a.example":{"delayMs":[5,1]}}}', 'must not end before it starts'],
  ['{"seed":1,"hosts":{"a.example":{"later":[{"chance":2,"kind":"open","afterSeconds":[0,1]}]}}}', 'later[0].chance'],
])('%s is refused with the place of the fault', (text, message) => {
  expect(() => readScenario(text)).toThrow(message)
})

describe('always', () => {
  const anyHost = {
    sometimes: [{ chance: 0.5, reply: '451 4.7.1 Later' }],
    delayMs: [0, 500],
    later: [{ chance: 0.5, kind: 'open', afterSeconds: [1, 99] }],
  }

  test('the same seed gives the same history, in any order of questions', () => {
    fc.assert(
      fc.property(fc.integer(), fc.uniqueArray(fc.nat({ max: 500 }), { minLength: 2, maxLength: 30 }), (seed, people) => {
        const history = (order: number[]) =>
          new Map(
            order.map((n) => [
              n,
              [1, 2, 3].map((attempt) => simulate({ recipient: `p${n}@b.example`, attempt, elapsedMs: 0 }, world({ '*': anyHost }, seed))),
            ]),
          )
        const [forward, backward] = [history(people), history(people.toReversed())]
        for (const n of people) expect(JSON.stringify(forward.get(n))).toBe(JSON.stringify(backward.get(n)))
      }),
    )
  })

  test('the wait before the next attempt has its chance from the seed, the recipient and the attempt', () => {
    const of = (seed: number, recipient: string, attempt: number) => waitFraction(world({ '*': anyHost }, seed), { recipient, attempt })
    const all = [of(1, 'a@b.example', 1), of(2, 'a@b.example', 1), of(1, 'c@b.example', 1), of(1, 'a@b.example', 2)]
    expect(new Set(all).size).toBe(4)
    for (const one of all) expect(one >= 0 && one < 1).toBe(true)
    expect(of(1, 'A@B.example', 1)).toBe(all[0])
  })

  test('another seed gives another one', () => {
    const of = (seed: number) =>
      JSON.stringify(Array.from({ length: 50 }, (_, n) => codes(world({ '*': anyHost }, seed), `p${n}@b.example`, 3)))
    expect(of(1)).not.toBe(of(2))
  })
})
