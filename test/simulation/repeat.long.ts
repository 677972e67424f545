/** A few seeds of the simulation. `npm run simulate -- --seeds 1000` plays more; seeds.long.ts has the mutants and more seeds. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { simulate } from './run-seed.ts'
import { openStore, type Store, startServer } from './seed-databases.ts'

let server: Awaited<ReturnType<typeof startServer>>
let store: Store
beforeAll(async () => {
  server = await startServer()
  store = await openStore(server.url)
})
afterAll(async () => {
  await store.close()
  await server.stop()
})

test('a week of a seed breaks no promise, and is the same again', { timeout: 240_000 }, async () => {
  const first = await simulate(4, store)
  expect(first.violations).toEqual([])
  expect(first.simulatedDays).toBeGreaterThanOrEqual(7)
  const again = await simulate(4, store)
  expect(again.story.join('\n')).toBe(first.story.join('\n'))
})

// Each of these seeds once broke a guarantee.
test.each([111, 217, 229])('seed %s breaks no promise', { timeout: 240_000 }, async (seed) => {
  expect((await simulate(seed, store)).violations).toEqual([])
})
