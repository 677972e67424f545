/** Time limits of lists: a search, or a list, that would take too long, as it does over the many emails of one day. */
import { expect, onTestFinished, test } from 'vitest'
import { emailIdPrefix } from '#base'
import { sql } from '#db'
import { listEmails } from '#emails'
import { testDatabase, testTimeMs } from '../support/database.ts'

const addEmail = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
  values ('shop', $1, $1, 'ann@one.test', 'a@shop.test', 'a@shop.test', 'Order', '<a@shop.test>', false, 'sent', $2)`

/** Slow for sessions with a statement timeout, which lists set. */
const slowDown = `
  alter table emails rename to emails_kept;
  create view emails as
    select *
    from emails_kept
    where case when current_setting('statement_timeout') = '0' then true else pg_sleep(60) is not null end`

test('is refused with advice after ten seconds, and a list by one field after twenty-five', async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  await db.run(addEmail, [`${emailIdPrefix(testTimeMs)}${'0'.repeat(14)}`, new Date(testTimeMs)])
  await db.script(slowDown)
  const refused = async (filter: object) => {
    const beganMs = performance.now()
    const list = listEmails(db, { tenantId: null, ...filter }, { number: 1, size: 10 }, testTimeMs)
    await expect(list).rejects.toMatchObject({ code: 'validation_error', message: 'after: the search covers too long a period' })
    return performance.now() - beganMs
  }
  const [search, searchOfSender, list] = await Promise.all([
    refused({ words: ['order'] }),
    refused({ words: ['order'], sender: 'a@shop.test' }),
    refused({ sender: 'a@shop.test' }),
  ])
  expect(Math.max(search, searchOfSender)).toBeLessThan(list)
}, 90_000)
