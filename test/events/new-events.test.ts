import { expect, test } from 'vitest'
import { ensurePartitions, sql } from '#db'
import { eventTables, nextEventAfter } from '#events'
import { testDatabase, testTimeMs } from '../support/database.ts'

const nextEvent = nextEventAfter(sql.part`email_counts_position`)
const addEvents = sql`
  insert into events (tenant_id, at, kind, email_id, data)
  select 'shop', $1::timestamptz + (nth % 3) * interval '1 day', 'MessageSent', null, '{}'
  from generate_series(1, $2) as nth`
const moveTo = sql`
  update email_counts_position
  set (xact, id) = (select events.xact, events.id from events order by events.xact desc, events.id desc limit 1)`
const explain = sql<{ 'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }] }>`
  explain (analyze, buffers, format json) execute look`

test('a look for new events reads a few pages, at the end of a log of any length and with any statistics', async () => {
  await using database = await testDatabase()
  const { db } = database
  await ensurePartitions(db, eventTables, testTimeMs, 3)
  await db.run(addEvents, [new Date(testTimeMs), 60_000])
  for (const statistics of ['select 1', 'analyze events, email_counts_position']) {
    await db.script(statistics)
    // An open transaction of another test may hold the log back.
    await db.run(moveTo)
    await expect.poll(() => db.first(nextEvent), { timeout: 15_000 }).toBeUndefined()
    const pages = await db.transaction(async (tx) => {
      await tx.script(`prepare look as ${nextEvent.text}`)
      const row = await tx.first(explain)
      await tx.script('deallocate look')
      const plan = row?.['QUERY PLAN'][0]?.Plan
      return (plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0)
    })
    expect(pages).toBeLessThan(40)
  }
  await db.run(addEvents, [new Date(testTimeMs), 1])
  await expect.poll(() => db.first(nextEvent), { timeout: 15_000 }).toBeDefined()
})
