/**
 * A million scheduled emails over thirty days: a claim's time with and without them, and how late an email leaves that is due now. Neither may
 * depend on them.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { type Db, sql } from '#db'
import { type ServiceProcess, startServiceProcess } from '../test/support/spawned-service.ts'
import { type ClaimFigures, claimed, fillQueue, measureClaims, type Note, withDb } from './fill-queue.ts'
import { median, startSink, timeToReady } from './helpers.ts'

const scheduledEmails = 1_000_000
const overDays = 30
const ready = 1000
const domain = 'many.bench.test'
/** Emails that become due one a second, after the time that their requests need. */
const dueEmails = 60
const firstDueSeconds = 15
const settleMs = 10_000
/** By then autovacuum has seen the new rows. */
const afterFillMs = 90_000
const leaveWithinMs = 120_000
const targetLateMs = 2000
/** Of the pages of the index that a claim searches. The others it finds by key, with one page more for each level of the index. */
const targetRatio = 1.05

/** Milliseconds from the time of each email to its first attempt; one that waits has no row. */
const lateness = sql<{ lateMs: number }>`
  select extract(epoch from min(attempts.at) - due.at)::float8 * 1000 as "lateMs"
  from unnest($1::text[], $2::timestamptz[]) as due (id, at)
  join attempts on attempts.email_id = due.id
  group by due.id, due.at`

export interface ScheduledFigures {
  scheduled: number
  without: ClaimFigures
  withThem: ClaimFigures
  readyMs: number
  /** Ascending, in milliseconds. */
  lateMs: number[]
}

export async function measureScheduled(environment: Record<string, string>, note: Note): Promise<ScheduledFigures> {
  const sink = await startSink()
  await using service = await startServiceProcess({
    ...environment,
    POSTRIDER_ROLES: 'api,housekeeping',
    POSTRIDER_RELAY: `smtp://127.0.0.1:${sink.port}`,
  })
  await service.command('domain', 'add', domain, '--trust')
  const original = await send(service, { to: ['original@r0.bench.test'] })
  const { without, withThem } = await withDb(service, (db) => compareClaims(db, original, note))
  await service.stop()
  service.environment['POSTRIDER_ROLES'] = undefined
  const readyMs = await timeToReady(service)
  await wait(settleMs)
  const lateMs = await measureLateness(service, note)
  await service.stop()
  await sink.stop()
  return { scheduled: scheduledEmails, without, withThem, readyMs, lateMs }
}

async function compareClaims(db: Db, original: string, note: Note): Promise<{ without: ClaimFigures; withThem: ClaimFigures }> {
  await fillQueue(db, original, ready, note)
  const without = await measureClaims(db)
  note(`${scheduledEmails.toLocaleString('en')} scheduled emails: filling the queue`)
  await fillQueue(db, original, ready + scheduledEmails, note, overDays)
  await wait(afterFillMs)
  return { without, withThem: await measureClaims(db) }
}

async function send(service: ServiceProcess, fields: object): Promise<string> {
  const { status, body } = await service.call('POST', '/emails', {
    from: `shop@${domain}`,
    subject: 'Your order',
    text: 'It has left.',
    ...fields,
  })
  if (status !== 200) throw new Error(`an email was refused: ${JSON.stringify(body)}`)
  return (body.data as { id: string }).id
}

async function measureLateness(service: ServiceProcess, note: Note): Promise<number[]> {
  note(`${dueEmails} emails become due, one a second`)
  const firstSeconds = Math.ceil(Date.now() / 1000) + firstDueSeconds
  const due: { id: string; at: Date }[] = []
  for (let nth = 0; nth < dueEmails; nth++) {
    const scheduledAt = firstSeconds + nth
    due.push({ id: await send(service, { to: [`due${nth}@fast.bench.test`], scheduledAt }), at: new Date(scheduledAt * 1000) })
  }
  return withDb(service, async (db) => {
    const untilMs = Date.now() + leaveWithinMs
    for (;;) {
      const left = await db.rows(lateness, [due.map(({ id }) => id), due.map(({ at }) => at)])
      if (left.length === dueEmails) return left.map(({ lateMs }) => lateMs).sort((one, other) => one - other)
      if (Date.now() > untilMs) throw new Error(`${left.length} of ${dueEmails} emails left within ${leaveWithinMs / 1000} s`)
      await wait(1000)
    }
  })
}

export function scheduledLines({ scheduled, without, withThem, readyMs, lateMs }: ScheduledFigures): string[] {
  const row = (name: string, { claimMs, pages, readyPages }: ClaimFigures) =>
    `| ${[name, claimMs[0].toFixed(1), claimMs[1].toFixed(1), pages, readyPages].join(' | ')} |`
  const verdict = (isMet: boolean, target: string) => `target ${target}: ${isMet ? 'met' : 'MISSED'}`
  const [ratio, slowest] = [withThem.readyPages / without.readyPages, lateMs.at(-1) ?? 0]
  return [
    `| scheduled | claim of ${claimed}, ms | p99 | pages | of them, to find ready emails |`,
    '|---|---|---|---|---|',
    row('0', without),
    row(scheduled.toLocaleString('en'), withThem),
    '',
    `pages to find ready emails with them, against without: ${ratio.toFixed(3)} (${verdict(ratio <= targetRatio, String(targetRatio))})`,
    `start to ready with them: ${Math.round(readyMs)} ms`,
    `first attempt after the time of the email: ${Math.round(median(lateMs))} ms, slowest ${Math.round(slowest)} ms (${verdict(slowest <= targetLateMs, `${targetLateMs} ms`)})`,
  ]
}
