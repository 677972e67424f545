/** Time limits of lists: a search, or a list, that would take too long, as it does over the many emails of one day. */
import { expect, test } from 'vitest'
import { emailIdPrefix } from '#base'
import { sql } from '#db'
import { listEmails, listInbox } from '#emails'
import { listAudit, recordAction } from '#members'
import { listLogs } from '#request-logs'
import { listSuppressions, saveSuppression } from '#suppressions'
import { listDeliveries, recordDeliveries } from '../../src/webhooks/delivery-records.ts'
import { testDatabase, testTimeMs } from '../support/database.ts'

const addEmail = sql`
  insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
  values ('shop', $1, $1, 'ann@one.test', 'a@shop.test', 'a@shop.test', 'Order', '<a@shop.test>', false, 'sent', $2)`

const addLog = sql`
  insert into request_logs (tenant_id, at, request_id, nth, method, path, endpoint, status_code, duration_ms, credential_id, key_prefix, details)
  values ('shop', $1, 'req_00000000000000000000', 1, 'GET', '/v1/emails', 'emails.list', 200, 1, 1, 'svc_live', '{}')`

/** Slow for sessions with a statement timeout, which lists set. */
const slowDown = (table: string) => `
  alter table ${table} rename to ${table}_kept;
  create view ${table} as
    select *
    from ${table}_kept
    where case when current_setting('statement_timeout') = '0' then true else pg_sleep(60) is not null end`

test.concurrent('is refused with advice after ten seconds, and a list by one field after twenty-five', async ({ onTestFinished }) => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  await db.run(addEmail, [`${emailIdPrefix(testTimeMs)}${'0'.repeat(14)}`, new Date(testTimeMs)])
  await db.script(slowDown('emails'))
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

const addReceivedTestMail = sql`
  with email as (
    insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, message_id, test, status, accepted_at)
    values ('shop', $1, $1, 'ann@one.test', 'a@shop.test', 'a@shop.test', 'Order', '<a@shop.test>', true, 'sent', $2)
  )
  insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, secure, outcome_unknown)
  values ('shop', $1, 1, 'sent', $2, 1, '', '', true, false)`

const addWebhook = sql`
  insert into webhooks (tenant_id, id, uuid, name, url, event_names, all_events, enabled, timeout_seconds, secret, old_secrets, created_at, updated_at)
  values ('shop', 7, $1, 'hook', 'https://shop.test', '{}', true, true, 5, '', '[]', $2, $2)`

test.concurrent('a list of suppressions, webhook requests, received test mail, request logs or audit entries is refused in time', async ({
  onTestFinished,
}) => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  const at = new Date(testTimeMs)
  await db.run(addReceivedTestMail, [`${emailIdPrefix(testTimeMs)}${'0'.repeat(14)}`, at])
  await saveSuppression(db, '', { address: 'ann@one.test' }, testTimeMs)
  const entry = {
    actor: { kind: 'command', name: 'root' },
    action: 'a',
    tenantId: null,
    requestId: null,
    ipAddress: null,
    data: {},
  } as const
  await recordAction(db, entry, testTimeMs)
  const uuid = '00000000-0000-4000-8000-000000000001'
  await db.run(addWebhook, [uuid, at])
  const answered = { success: true, statusCode: 200, willRetry: false, durationMs: 1, responseBody: null, error: null }
  const request = { event: 'MessageSent', url: 'https://shop.test', attempt: 1, requestHeaders: {}, payload: '{}' }
  await recordDeliveries(db, [{ id: uuid, eventUuid: uuid, webhookId: 7, tenantId: 'shop', at, ...request, ...answered }])
  await db.run(addLog, [at])
  for (const table of ['suppressions', 'audit_entries', 'request_logs', 'webhook_deliveries', 'emails']) await db.script(slowDown(table))
  const page = { number: 1, size: 10 }
  const lists = [
    listSuppressions(db, { tenantId: '', address: 'ann' }, page),
    listDeliveries(db, { webhookId: 7 }, {}, page),
    listDeliveries(db, { webhookId: 7 }, { isNewest: true }, page),
    listInbox(db, { tenantId: 'shop' }, page, testTimeMs),
    listAudit(db, { tenantId: null }, page),
    listLogs(db, {}, page),
  ]
  const refused = { code: 'validation_error', hasOwnSuggestion: true }
  await Promise.all(lists.map((list) => expect(list).rejects.toMatchObject(refused)))
}, 90_000)
