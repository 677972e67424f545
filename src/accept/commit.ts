/**
 * Group commit for accepted messages: concurrent requests share one statement and one flush of the log. A flush takes all waiting entries;
 * two are in flight at most, and there is no timer. Writes contents, emails, spool, events and idempotency keys in one statement, because
 * it is one of the project's two hot-path commits.
 */
import { type Clock, type Failpoint, type Ids, metrics, Refusal } from '#base'
import {
  DatabaseUnreachable,
  type Db,
  isUniqueViolation,
  NotDurable,
  resolveUnknown,
  type Sql,
  StillUnknown,
  sql,
  withPartitions,
} from '#db'
import { emailTables, findEmail } from '#emails'
import { appendEvents, eventTables } from '#events'
import { type GrantedSlots, type LimitSettings, openSlots, type SendLimits, type SendLimitUsage, type Slots } from '#limits'
import { type KeyedResponse, keyColumns, keyRow, submissionColumns, submissionRow } from './commit-rows.ts'
import { beforeMarks, idempotencyTtlMs } from './elapsed-time.ts'
import type { Prepared } from './submission-rows.ts'
import { giveBackLater, giveBackUnwritten } from './unused-slots.ts'

/** Submissions in one flush; larger flushes were not faster when measured, see docs/performance.md. */
const flushSubmissions = 64
const flushOctets = 32 * 1_048_576
const flushesInFlight = 2
/** How long to resolve an unanswered flush before the caller is asked to retry. */
const resolveWithinMs = 5000
/**
 * An entry that waits longer is answered with a request to repeat it. If its flush is in flight by then, it may still commit: the outcome is
 * unknown to the caller, and a repetition under its idempotency key gets the same response.
 */
const maxWaitMs = 6000
const sweepEveryMs = 500

/** The rows of one request, committed together or not at all. */
export interface CommitEntry {
  submissions: Prepared[]
  idempotency: KeyedResponse | undefined
}

/** Not committed: another request used the key first, or this request itself did and its reply was lost. */
export type CommitResult = { committed: true; sendLimitUsage: SendLimitUsage } | { committed: false }

const given = sql.parameters({ submissions: 'json', keys: 'json', keyLifetime: 'interval' })

/**
 * One bytea parameter for each body: an array of bytea would be sent as text, at half the speed. Long because it is one statement.
 */
const commitOf = (bodies: number): Sql<{ credentialId: number; key: string }> => {
  const values = sql.repeated(bodies, ', ', (nth) => `(${nth}, $${nth + 4}::bytea)`)
  return sql<{ credentialId: number; key: string }>`
  with body (n, octets) as (values ${values}),
  submission as (
    select *
    from json_to_recordset(${given.submissions}) as given (${sql.columns(submissionColumns)})
  ),
  -- Each key is stored with its response, unless another request has used it in its lifetime.
  answered as (
    insert into idempotency_keys (credential_id, key, fingerprint, status, body, accepted_at)
    select credential_id, key, decode(fingerprint, 'base64'), 200, decode(body, 'base64'), accepted_at
    from json_to_recordset(${given.keys}) as given (${sql.columns(keyColumns)})
    order by credential_id, key
    on conflict (credential_id, key) do update
    set fingerprint = excluded.fingerprint, status = excluded.status, body = excluded.body, accepted_at = excluded.accepted_at
    where idempotency_keys.accepted_at <= least(excluded.accepted_at - ${given.keyLifetime}, ${beforeMarks})
    returning credential_id, key
  ),
  -- The submissions without a key, or whose key is theirs: all further writes follow from them.
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
                        status, accepted_at, scheduled_at)
    select tenant_id, email.id, content_id, email.recipient, sender, from_header, subject, tag, metadata, message_id, test, credential_id,
           'pending', simulated_at, simulated_schedule
    from winner, json_to_recordset(winner.emails) as email (id text, recipient text)
  ),
  queued as (
    insert into spool (tenant_id, email_id, content_id, shard, recipient, recipient_domain, state, test, size_octets, scheduled_at,
                       limited_key, ignores_tls_policies)
    select tenant_id, email.id, content_id, shard, email.recipient, email.recipient_domain, email.state, test, size_octets, scheduled_at,
           limited_key, ignores_tls_policies
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

/** The prepared sizes; a flush is padded with empty bodies up to the next one. The largest holds a full flush and the largest batch, of 1000. */
const commitSizes = [1, 4, 16, 64, 192, 576, 1088].map((bodies) => ({ bodies, statement: commitOf(bodies) }))
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
  limitSettings: Pick<LimitSettings, 'send'>
  /** Called after each commit, without waiting: wakes the processes that deliver. */
  wake: () => void
  /** Called where a crash test may inject a failure. */
  failpoint?: Failpoint | undefined
}

/** One of the flushes that may be in flight. */
interface Lane extends CommitDeps {
  /** Send-limit slots. */
  slots: Slots
}

export type Commit = (entry: CommitEntry) => Promise<CommitResult>

/** Opens the group commit of one process. It rejects with a `Refusal` to retry if the database is unreachable for too long. */
export function openCommit(deps: CommitDeps): Commit {
  const queue: Waiting[] = []
  const inFlight = new Set<readonly Waiting[]>()
  let isSweeping = false
  const idle = Array.from({ length: flushesInFlight }, (): Lane => ({ ...deps, slots: openSlots(deps.db, deps.ids.label(10)) }))

  const flush = async (lane: Lane) => {
    try {
      while (queue.length > 0) {
        const group = takeFlush(queue)
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

/** Removes the entries of one flush from the queue: at least one, and no more than its limits allow. */
function takeFlush(queue: Waiting[]): Waiting[] {
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

/** Resolves every entry of the group, also after a failure; never rejects. */
async function commitTogether(all: Waiting[], deps: Lane): Promise<void> {
  const sinceMs = deps.clock.monotonicMs() - maxWaitMs
  for (const one of all) if (one.sinceMs < sinceMs) one.fail(isAway())
  const group = all.filter((one) => one.sinceMs >= sinceMs)
  if (group.length === 0) return
  try {
    const { sendLimitUsage, won } = await writeFlush(
      group.map((one) => one.entry),
      deps,
    )
    metrics.acceptBatch.observe(group.length)
    deps.wake()
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

/**
 * Takes the slots of a flush, inserts its rows and resolves an unknown commit. Then returns the slots of emails that were not written.
 * `won`: the idempotency keys that are now of these entries. Rejects if no row was written, or if that is still unknown.
 */
async function writeFlush(entries: readonly CommitEntry[], lane: Lane) {
  const keyed = entries.flatMap(({ submissions, idempotency }) => submissions.map((submission) => ({ submission, idempotency })))
  const submissions = keyed.map(({ submission }) => submission)
  const limits = await lane.limitSettings.send()
  const taken = await takeSlots(submissions, limits, lane)
  let inserted: Inserted
  try {
    inserted = await insertRows(entries, keyed, { granted: taken.granted, limits }, lane)
  } catch (error) {
    // The rows of a commit without its standby's confirmation remain, unless a failover follows.
    if (error instanceof StillUnknown || error instanceof NotDurable) {
      void lane.slots.confirm(taken)
      void giveBackLater(submissions, taken, lane)
      throw error instanceof NotDurable ? error : isAway()
    }
    await lane.slots.giveBack(taken, [...submissions.keys()])
    throw error
  }
  await lane.slots.confirm(taken)
  const won = new Set(inserted.winners.map(onceName))
  const beaten = keyed.flatMap(({ idempotency }, n) => (idempotency && !won.has(onceName(idempotency)) ? [n] : []))
  // After a lost reply, an earlier try may have been committed. The stored responses show which keys were won then.
  if (inserted.wasLost) await giveBackUnwritten(submissions, taken, lane).catch(() => void giveBackLater(submissions, taken, lane))
  else if (beaten.length > 0) await lane.slots.giveBack(taken, beaten)
  return { sendLimitUsage: taken.sendLimitUsage, won }
}

/** Send-limit slots for each submission, in order. */
async function takeSlots(submissions: readonly Prepared[], limits: SendLimits, { db, clock, slots }: Lane): Promise<GrantedSlots> {
  const demands = submissions.map(({ tenantId, credentialId, test, emails, scheduledAtMs }) => {
    return { tenantId, credentialId, test, count: scheduledAtMs === null ? emails.length : 0 }
  })
  const take = () => slots.take(demands, limits, clock.nowMs(), appendEvents)
  return withPartitions(db, take, [{ tables: eventTables, timesMs: [clock.nowMs()] }])
}

interface Inserted {
  /** The keys stored with their responses. */
  winners: { credentialId: number; key: string }[]
  /** A reply was lost, and an earlier try may have been the one that committed. */
  wasLost: boolean
}

/** Runs the statement until it is known to be committed; throws `StillUnknown` if that takes too long. `granted`: slots in order. */
function insertRows(
  entries: readonly CommitEntry[],
  keyed: readonly { submission: Prepared; idempotency: KeyedResponse | undefined }[],
  { granted, limits }: { granted: readonly number[]; limits: SendLimits },
  { db, clock, failpoint }: Lane,
): Promise<Inserted> {
  const size = commitSizes.find(({ bodies }) => keyed.length <= bodies)
  if (!size) throw new Error(`one flush cannot hold ${keyed.length} submissions`)
  const acceptedAtMs = ({ submissions }: CommitEntry) => submissions[0]?.acceptedAtMs ?? clock.nowMs()
  const limitedKey = ({ credentialId }: Prepared) => (credentialId !== null && limits.keys?.has(credentialId) ? credentialId : null)
  const rows = keyed.map(({ submission, idempotency }, n) =>
    submissionRow(submission, { n, onceKey: idempotency?.key ?? null, slots: granted[n] as number, limitedKey: limitedKey(submission) }),
  )
  const keys = entries.flatMap((entry) => (entry.idempotency ? [keyRow(entry.idempotency, acceptedAtMs(entry))] : []))
  const parameters = [
    ...sql.values(given, {
      submissions: JSON.stringify(rows),
      keys: JSON.stringify(keys),
      keyLifetime: `${idempotencyTtlMs / 1000} seconds`,
    }),
    ...keyed.map(({ submission }) => submission.body),
    ...Array.from({ length: size.bodies - keyed.length }, () => emptyBuffer),
  ]
  const run = () => {
    failpoint?.('accept-uncommitted')
    return db.rows(size.statement, parameters)
  }
  // A group may span two days: the second partition is created when each is written alone.
  const firstDay = { tables: [...emailTables, ...eventTables], timesMs: [keyed[0]?.submission.acceptedAtMs ?? clock.nowMs()] }

  const insert = async (mayBeWritten: boolean): Promise<Inserted> => {
    try {
      const winners = await withPartitions(db, run, [firstDay])
      failpoint?.('accept-committed')
      return { winners, wasLost: mayBeWritten }
    } catch (error) {
      // An earlier try was committed; or it was not, and an email with a derived id collides with another delivery of the same message.
      if (mayBeWritten && isUniqueViolation(error) && (await areStored(entries, db))) return { winners: [], wasLost: true }
      throw error
    }
  }
  return resolveUnknown(insert, { clock, deadlineMs: clock.monotonicMs() + resolveWithinMs })
}

/** Whether the emails of all entries without a key are stored. Entries with a key read their stored response. */
async function areStored(entries: readonly CommitEntry[], db: Db): Promise<boolean> {
  for (const { submissions, idempotency } of entries)
    for (const { tenantId, emails } of idempotency ? [] : submissions)
      for (const { id } of emails) if (!(await findEmail(db, id, tenantId))) return false
  return true
}
