import { expect, test } from 'vitest'
import { Refusal, systemClock } from '#base'
import type { Db } from '#db'
import { prepareBatch } from './batch.ts'

test('a batch lets the event loop take a turn after every eighth element, however few octets it has', async () => {
  let turn = 0
  const count = () => {
    turn++
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  const turns: number[] = []
  const replyTo = Array.from({ length: 50 }, (_, nth) => `"Shop" <r${nth}@shop.example>`)
  const elements = Array.from({ length: 100 }, (_, nth) => ({
    submission: { from: 'a@shop.example', to: [`ann${nth}@one.example`], subject: 'x', text: 'x', vendor: { replyTo, bounce: false } },
  }))
  // Refused after the validation, which takes the most time.
  const factsOf = async () => {
    turns.push(turn)
    throw new Refusal('domain_not_verified', { message: 'not verified', suggestion: 'Verify it' })
  }
  const { results } = await prepareBatch(elements, factsOf, { db: {} as Db, clock: systemClock })
  clearImmediate(counting)
  expect([results.length, turns.length]).toEqual([100, 100])
  for (const all of Map.groupBy(turns, (one) => one).values()) expect(all.length).toBeLessThanOrEqual(8)
})
