/** A part of a list is removed in little time, also where the database does not know yet how large the list is. */
import { expect, onTestFinished, test } from 'vitest'
import { sql } from '#db'
import { importSuppressions, removeSuppressionsOfOrigin } from '#suppressions'
import { testDatabase, testTimeMs } from '../support/database.ts'

const addTenant = sql`
  insert into tenants (id, name, status, metadata, is_default, created_at, updated_at)
  values ($1, $1, 'active', '{}', false, now(), now())`
const analyze = sql`analyze suppressions`

const entriesOf = (count: number) =>
  Array.from({ length: count }, (_, nth) => ({
    address: `a${nth}@one.example`,
    createdAt: new Date(0),
    reason: 'bounce' as const,
    source: 'automatic' as const,
    keepUntil: null,
  }))

test('of a list of which there are no statistics, exactly as many entries as wanted', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  for (const tenantId of ['known', 'unknown']) {
    await db.run(addTenant, [tenantId])
    await importSuppressions(db, tenantId, entriesOf(3000))
    // From now on the database takes each further list for an empty one.
    if (tenantId === 'known') await db.run(analyze)
  }
  const removed: number[] = []
  for (let after: string | undefined = '', round = 0; after !== undefined && round < 9; round++) {
    const chosen = { origin: 'bounce', addresses: undefined, after, most: 1000 } as const
    const part: { removed: number; last: string | undefined } = await removeSuppressionsOfOrigin(db, 'unknown', chosen, testTimeMs)
    removed.push(part.removed)
    after = part.last
  }
  expect(removed).toEqual([1000, 1000, 1000, 0])
})

test('entries of another origin between them stay, and so do all that are not named', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  await db.run(addTenant, ['mixed'])
  const entries = entriesOf(9).map((one, nth) => (nth % 3 === 0 ? { ...one, reason: 'complaint' as const } : one))
  await importSuppressions(db, 'mixed', entries)
  const remove = (addresses: readonly string[] | undefined, after = '') =>
    removeSuppressionsOfOrigin(db, 'mixed', { origin: 'bounce', addresses, after, most: 2 }, testTimeMs)
  expect(await remove(['A1@one.example', 'a1@one.example', 'a0@one.example', 'unlisted@one.example', 'no address'])).toMatchObject({
    removed: 1,
  })
  expect(await remove(undefined)).toEqual({ removed: 2, last: 'a4@one.example' })
  expect(await remove(undefined, 'a4@one.example')).toEqual({ removed: 2, last: 'a7@one.example' })
  expect(await remove(undefined, 'a7@one.example')).toEqual({ removed: 1, last: 'a8@one.example' })
  expect(await remove(undefined, 'a8@one.example')).toEqual({ removed: 0, last: undefined })
  expect(await db.rows(sql<{ address: string }>`select address from suppressions order by address`)).toEqual(
    ['a0', 'a3', 'a6'].map((name) => ({ address: `${name}@one.example` })),
  )
})
