/** Checks that the event log can be read: a transaction that stays open, also of another application, stops webhooks, counts and the automatic pause. */
import { findOldestOpenTransaction, logDelayMs } from '#events'
import { type Check, checkResult, ok } from './check-result.ts'

const longMs = 60_000

export const checkEventLog: Check = async ({ db, clock }) => {
  const name = 'event log'
  const delayMs = await logDelayMs(db, clock.nowMs())
  if (delayMs < longMs) return [ok(name, 'readable')]
  const open = await findOldestOpenTransaction(db)
  const found = `events of the last ${Math.round(delayMs / 1000)} seconds cannot be read, so webhooks and counts wait`
  // A role without pg_read_all_stats does not see the transactions of other roles.
  if (!open)
    return [
      checkResult(
        name,
        'problem',
        found,
        'End the oldest transaction in pg_stat_activity, as a superuser sees it, or in pg_prepared_xacts',
      ),
    ]
  const { database, pid } = open
  const holder = `the oldest open transaction is ${pid === null ? 'prepared' : `of process ${pid}`} (${open.name || 'without a name'}) in database ${database}`
  const remedy =
    pid === null ? `Commit it, or run rollback prepared '${open.name}'` : `End its program, or run select pg_terminate_backend(${pid})`
  return [checkResult(name, 'problem', `${found}: ${holder}`, remedy)]
}
