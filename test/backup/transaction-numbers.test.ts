/** Transaction numbers in a backup: the numbers change, and every comparison between them keeps its result. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '#db'
import { copyText, findMarks, highestNumber, readCatalogue } from '../../src/db/backup-catalog.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  await database.db.script(`create table a_log (id integer, xact xid8 default pg_current_xact_id());
    create table a_place (id integer, xact xid8, since pg_snapshot);
    create table b_log (id integer, xact xid8);
    create table b_place (id integer, xact xid8, since pg_snapshot)`)
})
afterAll(() => database.close())

const relations = sql<{ before: (boolean | number | null)[]; after: (boolean | number | null)[]; highest: number }>`
  select
    (select array_agg(row(sign(a_log.xact::text::bigint - a_place.xact::text::bigint), pg_visible_in_snapshot(a_log.xact, a_place.since))::text order by a_log.id, a_place.id)
     from a_log, a_place) as before,
    (select array_agg(row(sign(b_log.xact::text::bigint - b_place.xact::text::bigint), pg_visible_in_snapshot(b_log.xact, b_place.since))::text order by b_log.id, b_place.id)
     from b_log, b_place) as after,
    (select max(xact::text::bigint) from b_log) as highest`

const number = fc.integer({ min: 1, max: 40 })
const snapshot = fc.tuple(number, fc.uniqueArray(number, { maxLength: 4 }), number).map(
  ([from, some, wide]) =>
    `${from}:${from + wide}:${some
      .filter((one) => one > from && one < from + wide)
      .sort((a, b) => a - b)
      .join(',')}`,
)

describe('transaction numbers', () => {
  test('in a backup compare with every position and every snapshot as they did, and are small', async () => {
    const { db } = database
    await fc.assert(
      fc.asyncProperty(
        fc.array(number, { minLength: 1, maxLength: 12 }),
        fc.array(fc.tuple(fc.option(number), fc.option(snapshot)), { minLength: 1, maxLength: 5 }),
        async (log, places) => {
          // Far beyond the count of a new server.
          const far = (text: string) => text.replace(/\d+/g, (one) => String(7_000_000_000 + Number(one) * 1000))
          const text = (value: string | number | null) => (value === null ? 'null' : `'${far(String(value))}'`)
          await db.script(`truncate a_log, a_place, b_log, b_place;
            insert into a_log select nth, given::xid8 from unnest(array[${log.map(text).join(',')}]::text[]) with ordinality as one (given, nth);
            ${places.map(([xact, since], nth) => `insert into a_place values (${nth}, ${text(xact)}::text::xid8, ${text(since)}::text::pg_snapshot)`).join(';')}`)
          const session = await db.session()
          try {
            const all = await readCatalogue(session)
            const catalogue = { ...all, columns: all.columns.filter(({ table }) => table.startsWith('a_')) }
            const marks = await findMarks(session, catalogue)
            for (const table of catalogue.tables.filter(({ name }) => name.startsWith('a_'))) {
              const pieces: Buffer[] = []
              for await (const piece of session.copyOut(copyText(table, catalogue, marks))) pieces.push(piece as Buffer)
              const into = session.copyIn(`copy ${table.name.replace('a_', 'b_')} from stdin`)
              await new Promise<void>((resolve, reject) => {
                into.once('finish', resolve).once('error', reject).end(Buffer.concat(pieces))
              })
            }
            const told = await db.first(relations)
            expect(told?.after).toEqual(told?.before)
            expect(told?.highest).toBeLessThanOrEqual(highestNumber(marks.length))
          } finally {
            await session.close()
          }
        },
      ),
      { numRuns: 25 },
    )
  }, 90_000)
})
