/**
 * Idempotency (contract section 5): one key sends once in 24 hours, by elapsed time and by the clock. The key is one unique row written
 * with the emails, so there is no reservation that could expire half-way. A duplicate in the same process waits for the first request; one
 * in another process waits on the row.
 */
import { type Clock, mentionPattern, Refusal } from '#base'
import { type Db, type Queryable, sql } from '#db'
import { beforeMarks, idempotencyTtlMs } from './elapsed-time.ts'

const twinWaitMs = 30_000

const storedAnswer = sql<{ fingerprint: Buffer; body: Buffer }>`
  select fingerprint, body
  from idempotency_keys
  where credential_id = $1 and key = $2 and accepted_at > least($3::timestamptz, ${beforeMarks})`

const deleteExpired = sql`
  with expired as materialized (
    select credential_id, key
    from idempotency_keys
    where accepted_at <= least($1::timestamptz, ${beforeMarks})
    order by accepted_at
    limit 10000
  )
  delete from idempotency_keys
  using expired
  where idempotency_keys.credential_id = expired.credential_id and idempotency_keys.key = expired.key`

export interface IdempotencyKey {
  credentialId: number
  key: string
  fingerprint: Buffer
}

/** The stored response of this key, or undefined; refuses `idempotency_key_reused` if it belongs to a different request. */
async function findAnswer(on: Queryable, idempotency: IdempotencyKey, nowMs: number): Promise<Buffer | undefined> {
  const stored = await on.first(storedAnswer, [idempotency.credentialId, idempotency.key, new Date(nowMs - idempotencyTtlMs)])
  if (!stored) return undefined
  if (!stored.fingerprint.equals(idempotency.fingerprint)) {
    throw new Refusal('idempotency_key_reused', {
      message: 'Idempotency-Key: this key was already used for a different request',
      field: 'Idempotency-Key',
    })
  }
  return stored.body
}

/** Deletes up to 10,000 expired keys; returns how many. */
export function deleteExpiredKeys(db: Db, nowMs: number): Promise<number> {
  return db.run(deleteExpired, [new Date(nowMs - idempotencyTtlMs)])
}

export interface IdempotencyStore {
  /**
   * Runs `attempt` unless the key has a response. `attempt` returns undefined if another process used the key first. Refuses
   * `idempotency_key_reused`, and `idempotency_in_progress` after waiting 30 s for a duplicate.
   */
  run<T extends { body: Buffer }>(idempotency: IdempotencyKey, attempt: () => Promise<T | undefined>): Promise<T | { replay: Buffer }>
}

export function openIdempotencyStore({ db, clock }: { db: Db; clock: Clock }): IdempotencyStore {
  const running = new Map<string, Promise<unknown>>()
  return {
    async run(idempotency, attempt) {
      const name = `${idempotency.credentialId} ${idempotency.key}`
      const deadlineMs = clock.monotonicMs() + twinWaitMs
      for (;;) {
        const twin = running.get(name)
        if (!twin) break
        if (!(await settledBefore(twin, deadlineMs, clock))) throw stillRunning()
      }
      const own = (async () => {
        const stored = await findAnswer(db, idempotency, clock.nowMs())
        if (stored) return { replay: stored }
        const answer = await attempt()
        if (answer) return answer
        const winner = await findAnswer(db, idempotency, clock.nowMs())
        if (!winner) throw stillRunning()
        return { replay: winner }
      })()
      running.set(name, own)
      try {
        return await own
      } finally {
        running.delete(name)
      }
    },
  }
}

const stillRunning = () =>
  new Refusal('idempotency_in_progress', {
    field: 'Idempotency-Key',
    message: 'Idempotency-Key: a request with this key is still in progress after 30 seconds',
    retryAfterSeconds: 1,
    shouldRetry: true,
  })

/** Whether `twin` settled before the deadline. */
function settledBefore(twin: Promise<unknown>, deadlineMs: number, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(deadlineMs - clock.monotonicMs(), () => resolve(false))
    const settled = () => {
      cancel()
      resolve(true)
    }
    twin.then(settled, settled)
  })
}

const mentions = sql<{ credentialId: number; key: string }>`
  select credential_id as "credentialId", key
  from idempotency_keys
  where position($1 in lower(convert_from(body, 'UTF8'))) > 0 and lower(convert_from(body, 'UTF8')) ~ $2 and credential_id <> all($3)`

const deleteThese = sql`
  delete from idempotency_keys
  using unnest($1::bigint[], $2::text[]) as named (credential_id, key)
  where idempotency_keys.credential_id = named.credential_id and idempotency_keys.key = named.key`

/**
 * Deletes stored responses that name this address (lower case), except those to the given credentials. A repetition of such a request would
 * send again. All responses are read before the deletion: a transaction that has written stops the readers of the event log.
 */
export async function deleteResponsesWith(db: Db, address: string, except: readonly number[]): Promise<number> {
  const found = await db.rows(mentions, [address, mentionPattern(address), except])
  return found.length === 0 ? 0 : db.run(deleteThese, [found.map(({ credentialId }) => credentialId), found.map(({ key }) => key)])
}
