/**
 * Records outcomes in batches: attempt, email status, spool row and event of many recipients in one atomic statement. The fence is the
 * spool row: it must have the state, epoch and attempt count of the claim, so an outcome from a stale owner or an earlier claim changes no
 * data. A statement whose reply was lost is checked before it is repeated. Writes spool, emails, attempts and events, because it is one of
 * the project's two hot-path commits.
 */
import { type Clock, emailIdTimeMs, type Failpoint, type Log, metrics, sanitiseJson, type Traces } from '#base'
import { BatchWriter, type ColumnTypes, type Db, sql, withPartitions } from '#db'
import { emailTables } from '#emails'
import { type EventKind, eventTables } from '#events'
import { simulatorDomain } from '#simulator'
import { type Claimed, isStillClaimed, statusBefore } from '#spool'
import { suppress, unsuppress } from '#suppressions'
import type { Outcome } from './attempt-outcome.ts'
import { attemptSpan } from './attempt-span.ts'
import { RecentEmails } from './recent-emails.ts'

/** The fields of `rowOf`, in a statement. */
const outcomeColumns: ColumnTypes<OutcomeRow> = {
  tenant_id: 'text',
  email_id: 'text',
  epoch: 'bigint',
  attempt_count: 'integer',
  attempt_number: 'integer',
  status: 'text',
  queue: 'text',
  due_at: 'timestamptz',
  at: 'timestamptz',
  duration_ms: 'integer',
  details: 'text',
  output: 'text',
  code: 'integer',
  enhanced: 'text',
  secure: 'boolean',
  tls: 'jsonb',
  classification: 'text',
  remote_host: 'text',
  outcome_unknown: 'boolean',
  conversation: 'text',
  source: 'text',
  transport: 'text',
  attempt_status: 'text',
  hold_reason: 'text',
  event: 'text',
  classification_code: 'integer',
  was: 'text',
  simulated: 'boolean',
  simulated_at: 'timestamptz',
}

/**
 * `firstEmailId` is the least id: it excludes earlier days. A second bound would make reading the whole range look cheaper than finding
 * each email.
 */
const given = sql.parameters({ outcomes: 'json', firstEmailId: 'text' })

/** The fence: the claim that the outcome belongs to still stands. */
const isOfCurrentClaim = isStillClaimed(sql.part`outcome`)

const recordOutcomes = sql<{ emailId: string }>`
  with outcome as (
    select *
    from json_to_recordset(${given.outcomes}) as given (${sql.columns(outcomeColumns)})
  ),
  -- Final outcomes leave the spool.
  finished as (
    delete from spool
    using outcome
    where outcome.queue is null and ${isOfCurrentClaim}
    returning outcome.*
  ),
  -- The others stay in it.
  postponed as (
    update spool
    set state = outcome.queue, due_at = outcome.due_at, attempt_count = outcome.attempt_number, manual_retry = false,
      hold_reason = outcome.hold_reason, delay_reason = null
    from outcome
    where outcome.queue in ('deferred', 'held') and ${isOfCurrentClaim}
    returning outcome.*
  ),
  -- The outcomes that passed the fence: all further writes follow from them.
  recorded as (
    select * from finished
    union all
    select * from postponed
  ),
  attempted as (
    insert into attempts (tenant_id, email_id, number, status, at, duration_ms, details, output, code, enhanced, secure, tls, classification,
                          remote_host, outcome_unknown, conversation, source, transport)
    select tenant_id, email_id, attempt_number, attempt_status, coalesce(simulated_at, at), duration_ms, details, output, code, enhanced, secure, tls, classification,
           remote_host, outcome_unknown, conversation, source, transport
    from recorded
  ),
  marked as (
    update emails
    set status = recorded.status
    from recorded
    where emails.tenant_id = recorded.tenant_id and emails.id = recorded.email_id and emails.id >= ${given.firstEmailId}
  ),
  logged_event as (
    insert into events (tenant_id, at, kind, email_id, data)
    select tenant_id, at, event, email_id, jsonb_build_object(
      'details', left(details, 250), 'output', left(output, 512), 'secure', secure, 'seconds', duration_ms / 1000.0,
      'classification', classification, 'classificationCode', classification_code, 'enhanced', enhanced, 'remoteHost', remote_host, 'was', was, 'simulated', simulated)
      || case when hold_reason is null then '{}'::jsonb else jsonb_build_object('holdReason', hold_reason) end
      || case when simulated_at is null then '{}'::jsonb else jsonb_build_object('simulatedAt', extract(epoch from simulated_at) * 1000) end
    from recorded
  )
  select email_id as "emailId"
  from recorded`

const { tenant_id, email_id, attempt_number, at, simulated_at } = outcomeColumns

/** Returns the given outcomes that are already stored, identified by attempt number and millisecond. Each is found by index. */
const alreadyRecorded = sql<{ emailId: string; number: number; at: Date }>`
  select given.email_id as "emailId", given.attempt_number as number, given.at
  from json_to_recordset(${given.outcomes}) as given (${sql.columns({ tenant_id, email_id, attempt_number, at, simulated_at })})
  where exists (
    select
    from attempts
    where attempts.tenant_id = given.tenant_id and attempts.email_id = given.email_id and attempts.email_id >= ${given.firstEmailId}
      and attempts.number = given.attempt_number and attempts.at = coalesce(given.simulated_at, given.at)
  )`

/** A statement waits this long for more outcomes. */
const gatherMs = 20

const eventOf: Record<Outcome['status'], EventKind> = {
  sent: 'MessageSent',
  softfail: 'MessageDelayed',
  hardfail: 'MessageDeliveryFailed',
  held: 'MessageHeld',
}

export interface Recorder {
  /** Resolves when the outcomes are stored, however long the database is unavailable. */
  record(outcomes: readonly Outcome[]): Promise<void>
  /** Outcomes that are not stored yet. */
  readonly waiting: number
  /**
   * Whether the email of a claim may have been sent although the database has no outcome of it: the outcome was dropped, or it was recorded in
   * the last minute, and a failover may have lost it.
   */
  mayBeSent(claimed: Claimed): boolean
}

export interface RecorderDeps {
  db: Db
  clock: Clock
  log: Log
  traces?: Traces | undefined
  /** Called where a crash test may inject a failure. */
  failpoint?: Failpoint | undefined
}

interface Pending {
  outcome: Outcome
  done: () => void
  /** The database rejected it with the server's reply, so that it is recorded without. */
  isBare: boolean
}

/** Opens the recorder of one delivery process. An outcome that the database rejects even without the server's reply is only logged. */
export function openRecorder({ db, clock, log, traces, failpoint }: RecorderDeps): Recorder {
  const dropped = new Set<string>()
  const recent = new RecentEmails(clock)
  const writer = new BatchWriter<Pending>({
    clock,
    gatherMs,
    write: async (pending, mayBeWritten) => {
      const outcomes = pending.map(({ outcome }) => outcome)
      const left = mayBeWritten ? await notRecorded(db, outcomes) : outcomes
      await withPartitions(db, () => writeOutcomes(db, left, failpoint), [
        { tables: eventTables, timesMs: left.map(({ atMs }) => atMs) },
        { tables: emailTables, timesMs: left.flatMap(({ claimed }) => emailIdTimeMs(claimed.emailId) ?? []) },
      ])
      failpoint?.('outcomes-recorded')
    },
    onDone: ({ done }) => done(),
    onRejected(pending, error) {
      const email = pending.outcome.claimed.emailId
      if (pending.isBare) {
        log.error({ err: error, email }, 'failed to record an outcome; the next sweep will find its email')
        dropped.add(nameOfClaim(pending.outcome.claimed))
        return 'drop'
      }
      log.error({ err: error, email }, 'failed to record an outcome; recording it without the server reply')
      pending.outcome = bare(pending.outcome)
      pending.isBare = true
      return 'retry'
    },
    onRetry: (error) => log.warn({ err: error, outcomes: writer.waiting }, 'failed to record outcomes; retrying'),
  })

  return {
    record(outcomes) {
      for (const outcome of outcomes) {
        dropped.delete(nameOfClaim(outcome.claimed))
        recent.add(outcome.claimed.emailId)
        metrics.attempts.inc({ outcome: outcome.status })
        if (outcome.outcomeUnknown) metrics.outcomeUnknown.inc()
        const span = traces && attemptSpan(outcome)
        if (span) traces.note(span)
      }
      const done = outcomes.map((outcome) => new Promise<void>((resolve) => writer.add({ outcome, done: resolve, isBare: false })))
      return Promise.all(done).then(() => undefined)
    },
    get waiting() {
      return writer.waiting
    },
    mayBeSent: (claimed) => dropped.has(nameOfClaim(claimed)) || recent.has(claimed.emailId),
  }
}

const nameOfClaim = ({ emailId, epoch, attempts }: Claimed) => `${emailId} ${epoch} ${attempts}`

/**
 * An outcome whose reply was lost may be stored already. Its email may then have been retried by hand or released, and claimed again under
 * the same epoch with the same number of attempts. The fence would take that claim for this outcome's.
 */
async function notRecorded(db: Db, outcomes: readonly Outcome[]): Promise<Outcome[]> {
  const recorded = await db.rows(alreadyRecorded, parametersOf(outcomes))
  const names = new Set(recorded.map(({ emailId, number, at }) => `${emailId} ${number} ${at.getTime()}`))
  return outcomes.filter((one) => !names.has(`${one.claimed.emailId} ${attemptNumber(one)} ${one.atMs}`))
}

function parametersOf(outcomes: readonly Outcome[]) {
  let first = outcomes[0]?.claimed.emailId ?? ''
  for (const { claimed } of outcomes) {
    if (claimed.emailId < first) first = claimed.emailId
  }
  return sql.values(given, { outcomes: sanitiseJson(outcomes.map(rowOf)), firstEmailId: first })
}

async function writeOutcomes(db: Db, outcomes: readonly Outcome[], failpoint: Failpoint | undefined): Promise<void> {
  if (outcomes.length === 0) return
  const parameters = parametersOf(outcomes)
  if (!outcomes.some((one) => one.suppress !== null || one.unsuppress)) {
    await db.rows(recordOutcomes, parameters)
    return
  }
  await db.transaction(async (tx) => {
    const recorded = new Set((await tx.rows(recordOutcomes, parameters)).map((row) => row.emailId))
    failpoint?.('outcomes-half-written')
    const mine = outcomes.filter((one) => recorded.has(one.claimed.emailId))
    const recipient = ({ claimed }: Outcome) => ({ tenantId: claimed.tenantId, address: claimed.recipient })
    await suppress(
      tx,
      mine.flatMap((one) =>
        one.suppress ? [{ ...recipient(one), reason: one.suppress, at: new Date(one.atMs), emailId: one.claimed.emailId }] : [],
      ),
    )
    await unsuppress(
      tx,
      mine.flatMap((one) => (one.unsuppress ? [{ ...recipient(one), emailId: one.claimed.emailId, at: new Date(one.atMs) }] : [])),
    )
  })
}

/** A copy without any text or timing that came from a server. */
const bare = (outcome: Outcome): Outcome => ({
  ...outcome,
  durationMs: 0,
  details: 'The server reply could not be stored',
  output: '',
  code: null,
  enhanced: null,
  tls: null,
  remoteHost: null,
  conversation: null,
})

/** The queue names used in the statement. */
const queueOf: Record<Outcome['status'], 'deferred' | 'held' | null> = {
  sent: null,
  softfail: 'deferred',
  hardfail: null,
  held: 'held',
}

/** A simulated delivery is no evidence about the tenant's recipients or about any server. */
const isSimulated = ({ test, recipientDomain }: Claimed) => test || recipientDomain === simulatorDomain

const attemptNumber = ({ status, claimed }: Outcome) => (status === 'held' ? claimed.attempts : claimed.attempts + 1)

/** One outcome, as the statement reads it. */
const rowOf = (one: Outcome) => ({
  tenant_id: one.claimed.tenantId,
  email_id: one.claimed.emailId,
  epoch: one.claimed.epoch,
  attempt_count: one.claimed.attempts,
  attempt_number: attemptNumber(one),
  status: one.status,
  queue: queueOf[one.status],
  due_at: one.dueAtMs === null ? null : new Date(one.dueAtMs),
  at: new Date(one.atMs),
  duration_ms: one.durationMs,
  details: one.details,
  output: one.output,
  code: one.code,
  enhanced: one.enhanced,
  secure: one.secure,
  tls: one.tls,
  classification: one.classification,
  remote_host: one.remoteHost,
  outcome_unknown: one.outcomeUnknown,
  conversation: one.conversation,
  source: one.source,
  transport: one.transport,
  // The contract reports an unknown outcome as softfail, even for the last attempt (7.8).
  attempt_status: one.outcomeUnknown ? 'softfail' : one.status,
  hold_reason: one.holdReason,
  event: eventOf[one.status],
  classification_code: one.classificationCode,
  was: statusBefore(one.claimed),
  simulated: isSimulated(one.claimed),
  // By the tenant's test clock; the event log itself uses real time.
  simulated_at: one.claimed.clockOffsetMs > 0 ? new Date(one.atMs + one.claimed.clockOffsetMs) : null,
})

type OutcomeRow = ReturnType<typeof rowOf>
