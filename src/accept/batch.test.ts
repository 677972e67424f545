import { expect, test } from 'vitest'
import { Refusal, systemClock } from '#base'
import type { Db } from '#db'
import { checkBatch, prepareBatch } from './batch.ts'

/** Runs `work`, which calls `note` once for each element, and returns the number of elements in each turn of the event loop. */
async function elementsInTurns(work: (note: () => void) => Promise<void>): Promise<number[]> {
  let turn = 0
  const count = () => {
    turn++
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  const turns: number[] = []
  await work(() => turns.push(turn))
  clearImmediate(counting)
  expect(turns).toHaveLength(100)
  return [...Map.groupBy(turns, (one) => one).values()].map((all) => all.length)
}

const replyTo = Array.from({ length: 50 }, (_, nth) => `"Shop" <r${nth}@shop.example>`)
const elements = Array.from({ length: 100 }, (_, nth) => ({
  submission: { from: 'a@shop.example', to: [`ann${nth}@one.example`], subject: 'x', text: 'x', vendor: { replyTo, bounce: false } },
}))

test('a batch lets the event loop take a turn after every eighth element, however few octets it has', async () => {
  const inTurns = await elementsInTurns(async (note) => {
    // Refused after the validation, which takes the most time.
    const factsOf = async () => {
      note()
      throw new Refusal('domain_not_verified', { message: 'not verified', suggestion: 'Verify it' })
    }
    const { results } = await prepareBatch(elements, factsOf, { db: {} as Db, clock: systemClock })
    expect(results).toHaveLength(100)
  })
  expect(Math.max(...inTurns)).toBeLessThanOrEqual(8)
})

test('a batch that is only checked takes the same turns', async () => {
  const inTurns = await elementsInTurns(async (note) => {
    const noting = elements.map(({ submission }) => ({
      submission: {
        ...submission,
        get from() {
          note()
          return submission.from
        },
      },
    }))
    expect(await checkBatch(noting, 100)).toHaveLength(100)
  })
  expect(Math.max(...inTurns)).toBeLessThanOrEqual(8)
})
