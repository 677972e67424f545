/**
 * Cost of every reader of external octets: it does not grow faster than the length. Repeats the earlier finds, runs a short search, and
 * checks that the search finds planted faults.
 */
import { afterAll, describe, expect, test } from 'vitest'
import { cook, draw, type Recipe } from './input-recipe.ts'
import { kept } from './known-findings.ts'
import { openMeasure } from './measure.ts'
import { readers as planted } from './planted-faults.ts'
import type { Reader } from './reader.ts'
import { everyExport, readersBySource } from './reader-coverage.ts'
import { noReaders, readers } from './readers.ts'
import { judge, search, told } from './search.ts'
import { openSeededRandom } from './seeded-random.ts'

/** Far more time than a test needs: the tests judge processor time only, and the machine may be busy. */
const maxMs = 120_000
const searchMs = 500
const shrinkMs = 2_000
/** `npm run growth` draws others. */
const seed = Number(process.env.GROWTH_SEED ?? 1)

const measure = openMeasure(new URL('./readers.ts', import.meta.url).href)
afterAll(() => measure.close())

const readerOf = (name: string) => {
  const reader = readers.find((one) => one.name === name)
  if (!reader) throw new Error(`there is no reader ${name}`)
  return reader
}

describe('the search', () => {
  const measurePlanted = openMeasure(new URL('./planted-faults.ts', import.meta.url).href)
  afterAll(() => measurePlanted.close())

  test.for([
    ['looks behind each comma to the end', /times as long|took/],
    ['backtracks without end', /times as long|took/],
    ['costs much for each octet', /took \d+ ms/],
  ] as const)('finds a reader that %s', { timeout: maxMs }, async ([name, why]) => {
    const reader = planted.find((one) => one.name === name)
    const endMs = performance.now() + 60_000
    const { find } = await search(reader ?? readerOf(name), {
      seed: 1,
      measure: measurePlanted,
      isOver: () => performance.now() > endMs,
      shrinkMs,
    })
    expect(find?.why).toMatch(why)
  })

  test.for(['is sound', 'begins late'])('finds nothing in a reader that %s', { timeout: maxMs }, async (name) => {
    const reader = planted.find((one) => one.name === name)
    const endMs = performance.now() + 2_000
    const { find, tried } = await search(reader ?? readerOf(name), {
      seed: 1,
      measure: measurePlanted,
      isOver: () => performance.now() > endMs,
      shrinkMs,
    })
    expect(find && told(find)).toBeUndefined()
    expect(tried).toBeGreaterThan(5)
  })

  test('does not take a long fixed text before linear work for growth', { timeout: maxMs }, async () => {
    const reader = planted.find((one) => one.name === 'works at each comma') as Reader
    const recipe = [
      { of: [['a', 57_000]], many: false },
      { of: [[',', 1]], many: true },
    ] satisfies Recipe
    expect(await judge(reader, recipe, measurePlanted)).toBeUndefined()
  })

  test('tries the same inputs for the same seed, and reaches the usual length of input of each reader', () => {
    for (const reader of readers) {
      const drawn = () => {
        const chance = openSeededRandom(7)
        return Array.from({ length: 20 }, () => draw(reader, chance))
      }
      expect(drawn()).toEqual(drawn())
      const size = Math.min(reader.longest, 100_000)
      const octets = cook([{ of: [['a', 1]], many: true }], size, reader.encoding)
      expect(octets.length).toBe(size)
    }
  })
})

describe('every reader of outside octets', () => {
  test('is searched, or is a listed exception with a reason', () => {
    const known = new Set([...readers.flatMap(({ reads }) => reads), ...Object.keys(noReaders)])
    expect(readersBySource().filter((one) => !known.has(one))).toEqual([])
    expect([...known].filter((one) => !everyExport().has(one))).toEqual([])
  })

  test.for(kept.map((one, at) => ({ ...one, at })))(
    'is quick with each input found in $reader ($at)',
    { timeout: maxMs },
    async ({ reader, recipe }) => {
      const why = await judge(readerOf(reader), recipe, measure)
      expect(why && told({ reader, recipe, why })).toBeUndefined()
    },
  )

  test.for(readers.map(({ name }) => name))(`costs no more than its length: %s, seed ${seed}`, { timeout: maxMs }, async (name) => {
    const endMs = performance.now() + searchMs
    const { find } = await search(readerOf(name), { seed, measure, isOver: () => performance.now() > endMs, shrinkMs })
    expect(find && told(find)).toBeUndefined()
  })
})
