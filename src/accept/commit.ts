/**
 * Group commit for accepted messages: concurrent requests share one statement and one flush of the log. A flush takes all waiting entries;
 * two are in flight at most, and there is no timer. Writes contents, emails, spool, events and idempotency keys in one statement, because
 * it is one of the project's two hot-path commits.
 */
import { type Clock, type Failpoint, type Ids, metrics, pause, Refusal } from '#base'
import {
  CommitUnknown,
  DatabaseUnreachable,
  type Db,
  ensurePartitions,
  isContentRejected,
  isMissingPartition,
  NotDurable,
  type Sql,
  sql,
  sqlState,
  withPartitions,
} from '#db'
import { emailTables } from '#emails'
import { appendEvents, eventTables } from '#events'
import { type GrantedSlots, type LimitSettings, openSlots, type SendLimitUsage, type Slots } from '#limits'
import { shardOf } from '#spool'
import { beforeMarks, idempotencyTtlMs } from './elapsed-time.ts'
import type { Prepared } from './submission-rows.ts'
import { giveBackLater, giveBackUnwritten } from './unused-slots.ts'

/** Submissions in one flush; larger flushes were not faster when measured, see docs/performance.md. */
const flushSubmissions = 64
const flushOctets = 32 * 1_048_576
const flushesInFlight = 2
/** How long to resolve an unanswered flush before the caller is asked to retry. */
const resolveWithinMs = 5000
const resolveEveryMs = 100
/**
 * An entry that waits longer is answered with a request to repeat it. If its flush is in flight by then, it may still commit: the outcome is
 * unknown to the caller, and a repetition under its idempotency key gets the same response.
 */
const maxWaitMs = 6000
const sweepEveryMs = 500

/** The rows of one request, committed together or not at all. */
export interface CommitEntry {
  submissions: Prepared[]
  idempotency: { credentialId: number; key: string; fingerprint: Buffer; body: Buffer } | undefined
}

/** Not committed: another request used the key first, or this request itself did and its reply was lost. */
export type CommitResult = { committed: true; sendLimitUsage: SendLimitUsage } | { committed: false }

/** One bytea parameter for each body: an array of bytea would be sent as text, at half the speed. */
const commitOf = (bodies: number): Sql<{ credentialId: number; key: string }> => {
  const values = sql.repeated(bodies, ', ', (nth) => `(${nth}, $${nth + 4}::bytea)`)
  return sql<{ credentialId: number; key: string }>`
  with body (n, octets) as (values ${values}),
  submission as (
    select *
    from json_to_recordset($1::json) as given (
      n integer, tenant_id text, content_id text, shard smallint, sender text, from_header text, subject text, tag text, metadata jsonb,
      message_id text, test boolean, credential_id bigint, accepted_at timestamptz, simulated_at timestamptz, size_octets integer, once_key text, emails json)
  ),
  answered as (
    insert into idempotency_keys (credential_id, key, fingerprint, status, body, accepted_at)
    select credential_id, key, decode(fingerprint, 'base64'), 200, decode(body, 'base64'), accepted_at
    from json_to_recordset($2::json) as given (credential_id bigint, key text, fingerprint text, body text, accepted_at timestamptz)
    order by credential_id, key
    on conflict (credential_id, key) do update
    set fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body, accepted_at = excluded.accepted_at
    where idempotency_keys.accepted_at <= least(excluded.accepted_at - $3::interval, ${beforeMarks})
    returning credential_id, key
  ),
  winner as (
    select *
    from submission
    where once_key is null
      or exists (select from answered where answered.credential_id = submission.credential_id and answered.key = submission.once_key)
  ),
  content as (
    insert into contents (tenant_id, id, body)
    select tenant_id, content_id, octets
    from winner
    join body using (n)
  ),
  email as (
    insert into emails (tenant_id, id, content_id, recipient, sender, from_header, subject, tag, metadata, message_id, test, credential_id,
                        status, accepted_at)
    select tenant_id, email.id, content_id, email.recipient, sender, from_header, subject, tag, metadata, message_id, test, credential_id,
           'pending', simulated_at
    from winner, json_to_recordset(winner.emails) as email (id text, recipient text)
  ),
  queued as (
    insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets)
    select tenant_id, email.id, content_id, shard, email.recipient, email.recipient_domain, email.state, test, size_octets
    from winner, json_to_recordset(winner.emails) as email (id text, recipient text, recipient_domain text, state text)
  ),
  logged_event as (
    insert into events (tenant_id, at, kind, data)
    select tenant_id, max(at), 'EmailsAccepted',
           jsonb_build_object('test', test, 'seconds', jsonb_agg(jsonb_build_array(second, emails)))
    from (
      select tenant_id, test, max(accepted_at) as at, floor(extract(epoch from accepted_at))::bigint as second,
             sum(json_array_length(winner.emails)) as emails
      from winner
      group by tenant_id, test, floor(extract(epoch from accepted_at))
    ) as accepted
    group by tenant_id, test
  )
  select credential_id as "credentialId", key
  from answered`
}

/** The prepared sizes; a flush is padded with empty bodies up to the next one. The largest holds a full flush and one batch request. */
const commitSizes = [1, 4, 16, 64, 192].map((bodies) => ({ bodies, statement: commitOf(bodies) }))
const emptyBuffer = Buffer.alloc(0)

interface Waiting {
  entry: CommitEntry
  /** By the monotonic clock. */
  sinceMs: number
  settle: (result: CommitResult) => void
  fail: (error: unknown) => void
}

export interface CommitDeps {
  db: Db
  clock: Clock
  ids: Pick<Ids, 'label'>
  limitSettings: LimitSettings
  /** Called where a crash test may inject a failure. */
  failpoint?: Failpoint | undefined
}

/** One of the flushes that may be in flight. */
interface Lane extends CommitDeps {
  /** Send-limit slots. */
  slots: Slots
}

export type Commit = (entry: CommitEntry) => Promise<CommitResult>

export function openCommit(deps: CommitDeps): Commit {
  const queue: Waiting[] = []
  const inFlight = new Set<readonly Waiting[]>()
  let isSweeping = false
  const idle = Array.from({ length: flushesInFlight }, (): Lane => ({ ...deps, slots: openSlots(deps.db, deps.ids.label(10)) }))

  const takeFlush = (): Waiting[] => {
    let submissions = 0
    let octets = 0
    let taken = 0
    for (const { entry } of queue) {
      submissions += entry.submissions.length
      octets += entry.submissions.reduce((sum, one) => sum + one.body.length, 0)
      if (taken > 0 && octets > flushOctets) break
      taken++
      if (submissions >= flushSubmissions) break
    }
    return queue.splice(0, taken)
  }

  const flush = async (lane: Lane) => {
    try {
      while (queue.length > 0) {
        const group = takeFlush()
        inFlight.add(group)
        await commitTogether(group, lane)
        inFlight.delete(group)
      }
    } finally {
      idle.push(lane)
    }
  }
  const flushIdle = () => {
    // Lanes take turns, so that each soon returns the slots it owes.
    const lane = queue.length > 0 ? idle.shift() : undefined
    if (lane) void flush(lane)
  }

  /** Answers entries that wait too long, in the queue or in a flush that a silent database holds. */
  const sweep = () => {
    isSweeping = queue.length > 0 || inFlight.size > 0
    if (!isSweeping) return
    const beforeMs = deps.clock.monotonicMs() - maxWaitMs
    for (const group of inFlight) for (const one of group) if (one.sinceMs < beforeMs) one.fail(isAway())
    while (queue[0] && queue[0].sinceMs < beforeMs) queue.shift()?.fail(isAway())
    deps.clock.after(sweepEveryMs, sweep)
  }

  return (entry) =>
    new Promise((settle, fail) => {
      queue.push({ entry, sinceMs: deps.clock.monotonicMs(), settle, fail })
      if (!isSweeping) {
        isSweeping = true
        deps.clock.after(sweepEveryMs, sweep)
      }
      // Started in a microtask, so that requests parsed in the same turn of the event loop share the flush.
      if (idle.length > 0) queueMicrotask(flushIdle)
    })
}

/** Resolves every entry of the group, also after a failure; never rejects. */
async function commitTogether(all: Waiting[], deps: Lane): Promise<void> {
  const sinceMs = deps.clock.monotonicMs() - maxWaitMs
  for (const one of all) if (one.sinceMs < sinceMs) one.fail(isAway())
  const group = all.filter((one) => one.sinceMs >= sinceMs)
  if (group.length === 0) return
  try {
    const { sendLimitUsage, won } = await write(
      group.map((one) => one.entry),
      deps,
    )
    metrics.acceptBatch.observe(group.length)
    for (const { entry, settle } of group) {
      const committed = entry.idempotency === undefined || won.has(onceName(entry.idempotency))
      settle(committed ? { committed, sendLimitUsage: sendLimitUsage(entry.submissions[0]?.test ?? false) } : { committed })
    }
  } catch (error) {
    const isOfAll = [Refusal, DatabaseUnreachable, NotDurable].some((kind) => error instanceof kind)
    if (group.length === 1 || isOfAll) for (const one of group) one.fail(error)
    else for (const one of group) await commitTogether([one], deps) // so that a request that cannot be stored fails alone
  }
}

const isAway = () => new Refusal('internal_error', { message: 'the database is unreachable', shouldRetry: true })

const onceName = (idempotency: { credentialId: number; key: string }) => `${idempotency.credentialId} ${idempotency.key}`

async function write(entries: CommitEntry[], deps: Lane) {
  const submissions = entries.flatMap((entry) => entry.submissions.map((submission) => ({ submission, idempotency: entry.idempotency })))
  const taken = await slotsFor(submissions, deps)
  const bodies = submissions.map(({ submission }) => submission.body)
  const size = commitSizes.find(({ bodies: most }) => bodies.length <= most)
  if (!size) throw new Error(`one flush cannot hold ${bodies.length} submissions`)
  const firstAtMs = submissions[0]?.submission.acceptedAtMs ?? deps.clock.nowMs()
  const parameters = [
    JSON.stringify(
      submissions.map(({ submission, idempotency }, n) => rowOf(submission, n, idempotency?.key ?? null, taken.granted[n] as number)),
    ),
    JSON.stringify(
      entries.flatMap((entry) =>
        entry.idempotency ? [keyRowOf(entry.idempotency, entry.submissions[0]?.acceptedAtMs ?? deps.clock.nowMs())] : [],
      ),
    ),
    `${idempotencyTtlMs / 1000} seconds`,
    ...bodies,
    ...Array.from({ length: size.bodies - bodies.length }, () => emptyBuffer),
  ]
  const written = submissions.map(({ submission }) => submission)
  let answer: Awaited<ReturnType<typeof writeOnce>>
  try {
    answer = await writeOnce(size.statement, parameters, firstAtMs, deps)
  } catch (error) {
    if (error instanceof StillUnknown) void giveBackLater(written, taken, deps)
    else if (!(error instanceof NotDurable))
      await deps.slots.giveBack(
        taken,
        written.map((_, n) => n),
      )
    throw error instanceof StillUnknown ? isAway() : error
  }
  const won = new Set(answer.winners.map(onceName))
  const beaten = submissions.flatMap(({ idempotency }, n) => (idempotency && !won.has(onceName(idempotency)) ? [n] : []))
  // A collision with itself means that the first try was committed. The stored responses show which keys were won then.
  if (answer.wasLost) await giveBackUnwritten(written, taken, deps).catch(() => void giveBackLater(written, taken, deps))
  else if (beaten.length > 0) await deps.slots.giveBack(taken, beaten)
  return { sendLimitUsage: taken.sendLimitUsage, won }
}

/** Send-limit slots for each submission, in order. */
async function slotsFor(
  submissions: readonly { submission: Prepared }[],
  { db, clock, limitSettings, slots }: Lane,
): Promise<GrantedSlots> {
  const demands = submissions.map(({ submission: { tenantId, test, emails } }) => ({ tenantId, test, count: emails.length }))
  const limits = await limitSettings.send()
  const take = () => slots.take(demands, limits, clock.nowMs(), appendEvents)
  return withPartitions(db, take, [{ tables: eventTables, timesMs: [clock.nowMs()] }])
}

/** It is not known in time whether the flush was committed. */
class StillUnknown extends Error {}

/** Runs the statement until it is known to be committed. `wasLost`: an earlier try may have been the one that committed. */
async function writeOnce(
  statement: (typeof commitSizes)[number]['statement'],
  parameters: unknown[],
  firstAtMs: number,
  { db, clock, failpoint }: CommitDeps,
) {
  const deadlineMs = clock.monotonicMs() + resolveWithinMs
  let hasDays = false
  for (let unresolved = false; ; ) {
    try {
      failpoint?.('accept-uncommitted')
      const winners = await db.rows(statement, parameters)
      failpoint?.('accept-committed')
      return { winners, wasLost: unresolved }
    } catch (error) {
      if (sqlState(error) === uniqueViolation && unresolved) return { winners: [], wasLost: true }
      // A group may span two days: the second partition is created when each is written alone.
      if (isMissingPartition(error) && !hasDays) {
        await ensurePartitions(db, [...emailTables, ...eventTables], firstAtMs, 1)
        hasDays = true
        continue
      }
      // After a lost reply, a transient error does not show whether the commit happened.
      const isOfMoment = unresolved && !isContentRejected(error) && !(error instanceof NotDurable)
      if (!(error instanceof CommitUnknown || error instanceof DatabaseUnreachable || isOfMoment)) throw error
      // The commit may or may not have happened. Writing the same ids again shows which: it succeeds, or collides with itself.
      unresolved = true
      if (clock.monotonicMs() >= deadlineMs) throw new StillUnknown()
      await pause(clock, resolveEveryMs)
    }
  }
}

const uniqueViolation = '23505'

const rowOf = (one: Prepared, n: number, onceKey: string | null, slots: number) => ({
  n,
  tenant_id: one.tenantId,
  content_id: one.contentId,
  shard: shardOf(one.contentId),
  sender: one.sender,
  from_header: one.fromHeader,
  subject: one.subject,
  tag: one.tag,
  metadata: one.metadata,
  message_id: one.messageId,
  test: one.test,
  credential_id: one.credentialId,
  accepted_at: new Date(one.acceptedAtMs),
  simulated_at: new Date(one.acceptedAtMs + one.clockOffsetMs),
  size_octets: one.sizeOctets,
  once_key: onceKey,
  emails: one.emails.map((email, index) => ({
    id: email.id,
    recipient: email.recipient.text,
    recipient_domain: email.recipient.domain,
    state: index < slots ? 'ready' : 'over_limit',
  })),
})

const keyRowOf = (idempotency: NonNullable<CommitEntry['idempotency']>, acceptedAtMs: number) => ({
  credential_id: idempotency.credentialId,
  key: idempotency.key,
  fingerprint: idempotency.fingerprint.toString('base64'),
  body: idempotency.body.toString('base64'),
  accepted_at: new Date(acceptedAtMs),
})
