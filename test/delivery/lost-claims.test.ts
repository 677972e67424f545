/** Claims whose reply the database loses, with a real mail server: mail that was not sent counts as no attempt, mail that may have been sent does. */
import { DatabaseError } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { CommitUnknown, DatabaseUnreachable, type Db, sql } from '#db'
import { startDeliveryBeside } from '../support/delivery-beside.ts'
import { startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'

/** The next statement that matches, and its fate. */
interface Fault {
  statement: RegExp
  fate: 'done, answer lost' | 'not done, answer lost' | 'lost by a failover' | 'unreachable' | 'rejected'
}

const claims = /set state = 'sending'/
const requeues = /set state = 'ready'\s+from\s+unnest/
const checks = /from suppressions/
const records = /insert into attempts/

/** Each fault happens once, in order. */
function faulty(db: Db, faults: Fault[]): Db {
  const meet = async <T>(text: string, work: () => Promise<T>): Promise<T> => {
    const fate = faults[0]?.statement.test(text) ? faults.shift()?.fate : undefined
    // For the process it was done; the new primary does not have it.
    if (fate === 'lost by a failover') return [] as T
    if (fate === 'unreachable') throw new DatabaseUnreachable('away', undefined)
    if (fate === 'rejected') throw Object.assign(new DatabaseError('refused', 0, 'error'), { code: '22003' })
    const answer = fate === 'not done, answer lost' ? undefined : await work()
    if (fate) throw new CommitUnknown(new Error('the connection broke'))
    return answer as T
  }
  return {
    ...db,
    rows: (statement, parameters) => meet(statement.text, () => db.rows(statement, parameters)),
    run: (statement, parameters) => meet(statement.text, () => db.run(statement, parameters)),
  }
}

const attempts = sql<{ number: number; status: string; unknown: boolean }>`
  select number, status, outcome_unknown as unknown
  from attempts
  order by number`

/** Delivers one email, with at most so many attempts, while the database has these faults. */
async function deliver(faults: Fault[], maxAttempts: number, clock = systemClock) {
  const mx = await startFakeMx()
  onTestFinished(() => mx.close())
  const service = await startService({ sendLimit: null })
  onTestFinished(() => service.stop())
  const { db, tenantId, liveKey: key } = service
  await service.addDomain(tenantId, 'shop.example')
  await service.call('POST', '/emails', { key, body: { from: 'a@shop.example', to: ['ann@one.test'], subject: 's', text: 't' } })
  const delivery = await startDeliveryBeside(
    service,
    {
      POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}`,
      POSTRIDER_MAX_ATTEMPTS: String(maxAttempts),
    },
    { clock, db: faulty(db, faults) },
  )
  onTestFinished(() => delivery.stop())
  return { mx, attempts: () => db.rows(attempts) }
}

test.each([30, 1])('a claim whose reply is lost is no attempt, of %i', { timeout: 60_000 }, async (maxAttempts) => {
  const { mx, attempts } = await deliver([{ statement: claims, fate: 'done, answer lost' }], maxAttempts)
  await expect.poll(attempts, { timeout: 30_000 }).toEqual([{ number: 1, status: 'sent', unknown: false }])
  expect(mx.messages).toHaveLength(1)
})

test('a requeue whose reply is lost is no attempt, and is repeated when it cannot take place any more', { timeout: 60_000 }, async () => {
  const faults: Fault[] = [
    { statement: checks, fate: 'unreachable' },
    { statement: requeues, fate: 'not done, answer lost' },
  ]
  const longTimers: (() => void)[] = []
  const after: Clock['after'] = (delayMs, action) => {
    if (delayMs !== 15_000) return systemClock.after(delayMs, action)
    longTimers.push(action)
    return () => {}
  }
  const { mx, attempts } = await deliver(faults, 1, { ...systemClock, after })
  await expect.poll(() => longTimers.length, { timeout: 30_000 }).toBe(1)
  expect(faults).toEqual([])
  longTimers[0]?.()
  await expect.poll(attempts, { timeout: 30_000 }).toEqual([{ number: 1, status: 'sent', unknown: false }])
  expect(mx.messages).toHaveLength(1)
})

test('an outcome that cannot be recorded is unknown: the message has left', { timeout: 60_000 }, async () => {
  const rejected: Fault = { statement: records, fate: 'rejected' }
  const { mx, attempts } = await deliver([rejected, rejected], 30)
  await expect.poll(attempts, { timeout: 30_000 }).toEqual([
    { number: 1, status: 'softfail', unknown: true },
    { number: 2, status: 'sent', unknown: false },
  ])
  expect(mx.messages).toHaveLength(2)
})

test('an outcome that a failover loses is unknown: the message has left', { timeout: 60_000 }, async () => {
  const { mx, attempts } = await deliver([{ statement: records, fate: 'lost by a failover' }], 30)
  await expect.poll(attempts, { timeout: 30_000 }).toEqual([
    { number: 1, status: 'softfail', unknown: true },
    { number: 2, status: 'sent', unknown: false },
  ])
  expect(mx.messages).toHaveLength(2)
})
