/**
 * Accepts submissions; the only way into the spool. A submission becomes committed emails, one for each recipient. Owns: idempotency_keys,
 * elapsed_marks. Uses: base, mail, simulator, db, tenants, members, credentials, limits, domains, events, emails, spool, tracking. Used by:
 * housekeeping, postal, resend, sendgrid, postmark, ses, mailgun, imports, inbound, http, cli, main. Promises: a response leaves only after
 * the commit is on disk; no slow operation (DNS, MIME, DKIM) runs before it; one Idempotency-Key sends once in 24 hours, by elapsed time
 * too.
 */
import { type Clock, type Ids, metrics } from '#base'
import type { Db } from '#db'
import type { Domains } from '#domains'
import { openContentCodec } from '#emails'
import { type LimitSettings, readSendLimitUsage, type SendLimitUsage } from '#limits'
import type { Mailbox } from '#mail'
import { getTestClockOffsetMs } from '#spool'
import type { Tenant, Tenants } from '#tenants'
import type { Tracks } from '#tracking'
import { refuseUnlessActive, type Sender, senderFor, senderOf, tenantFor, withinSandboxRules } from './authorize-sender.ts'
import { type BatchElement, makeElements, prepareBatch, refuseOverfullBatch, type UnmadeElement } from './batch.ts'
import type { Commit } from './commit.ts'
import { type IdempotencyStore, openIdempotencyStore } from './idempotency.ts'
import { type RetriedEmail, retry } from './manual-retry.ts'
import { type Forwarder, openForwarding } from './postmaster-forward.ts'
import { checkRaw } from './raw-submission.ts'
import { cancelScheduled, reschedule, type ScheduledMessage, type WithMemory } from './scheduled-emails.ts'
import type { ScheduledTime } from './scheduled-time.ts'
import type {
  AcceptedBatch,
  AcceptedSubmission,
  BatchResult,
  Caller,
  MailScope,
  RawSubmission,
  ResponseRenderer,
  Submission,
  SubmissionResponse,
} from './submission.ts'
import { type Prepared, prepareRawSubmission, prepareSubmission } from './submission-rows.ts'
import { checkRecipients, checkSender, checkSubmission } from './validate-submission.ts'

export { type BatchElement, checkBatch, refuseOverfullBatch, type UnmadeElement } from './batch.ts'
export { type Commit, openCommit } from './commit.ts'
export { markEveryMs, openMarking } from './elapsed-time.ts'
export { deleteExpiredKeys, deleteResponsesWith } from './idempotency.ts'
export { type AcceptMoved, type MovedMessage, openMoved } from './moved-message.ts'
export { openOwnMail } from './own-mail.ts'
export type { ScheduledMessage, WithMemory } from './scheduled-emails.ts'
export { maxAheadMs, parseScheduledTime, type ScheduledTime } from './scheduled-time.ts'
export type {
  AcceptedBatch,
  AcceptedSubmission,
  BatchResult,
  Caller,
  MailScope,
  RawSubmission,
  ResponseRenderer,
  Submission,
  SubmissionResponse,
  SubmittedAttachment,
  TrackingWish,
} from './submission.ts'
export { checkSubmission } from './validate-submission.ts'

/** Elements of a batch of /v1. */
const maxBatchElements = 100

export interface Accept extends Forwarder {
  /** `given`: the submission, or how to make it for the tenant. */
  send(
    tenantId: string | null | undefined,
    given: Submission | ((tenant: Tenant) => Promise<Submission>),
    caller: Caller,
    renderer: ResponseRenderer<AcceptedSubmission>,
  ): Promise<SubmissionResponse>
  sendBatch(
    tenantId: string | null | undefined,
    from: string,
    elements: readonly UnmadeElement[],
    caller: Caller,
    renderer: ResponseRenderer<AcceptedBatch>,
  ): Promise<SubmissionResponse>
  /**
   * Sends up to `maxElements` submissions with senders of their own, in the order given. The renderer may refuse all of them.
   */
  sendEach(
    tenantId: string | null | undefined,
    elements: readonly BatchElement<Submission>[],
    caller: Caller,
    renderer: ResponseRenderer<readonly BatchResult[]>,
    maxElements: number,
  ): Promise<SubmissionResponse>
  sendRaw(
    tenantId: string | null | undefined,
    submission: RawSubmission,
    caller: Caller,
    renderer: ResponseRenderer<AcceptedSubmission>,
  ): Promise<SubmissionResponse>
  /** Refuses the caller and this envelope sender as `sendRaw` would, for an entry point that learns the sender before the message. */
  refuseRawSender(from: string, caller: Caller): Promise<void>
  /** Sets an email within `scope` back to pending, ready now. */
  retry(emailId: string, scope: MailScope): Promise<RetriedEmail>
  /**
   * Cancels the scheduled message of an email within `scope`, for all its recipients. A repetition has the same result. Refuses
   * `email_not_scheduled` once an email of the message has left.
   */
  cancel(emailId: string, scope: MailScope): Promise<ScheduledMessage>
  /** Gives the scheduled message of an email another time, for all its recipients. Refuses as `cancel`, and a wrong time. */
  reschedule(emailId: string, scope: MailScope, at: ScheduledTime, withMemory: WithMemory): Promise<ScheduledMessage>
  /** The send-limit figures, for responses to refused requests. */
  sendLimitUsage(test: boolean): Promise<SendLimitUsage>
}

export interface AcceptDeps {
  db: Db
  clock: Clock
  ids: Ids
  tenants: Tenants
  domains: Domains
  tracks: Tracks
  limitSettings: LimitSettings
  sandboxSender: string
  hostname: string
  publicUrl: string
  /** The pattern of the header Feedback-ID; undefined: no header. */
  feedbackId?: string | undefined
  commit: Commit
}

/** Long because each way to send is one method, which lists its checks in order. */
export function openAccept(deps: AcceptDeps): Accept {
  const { db, clock, ids, tenants } = deps
  const responder = new Responder(deps)
  const codec = openContentCodec(clock)

  /** The tenant, the sender and the facts that preparing a submission needs. */
  const factsFor = async (tenant: Tenant, sender: Sender, { mode, credentialId }: Caller) => {
    const test = mode === 'test'
    const clockOffsetMs = test ? await getTestClockOffsetMs(db, tenant.id) : 0
    const { publicUrl, feedbackId } = deps
    return { tenant, sender, test, credentialId, nowMs: clock.nowMs(), clockOffsetMs, ids, publicUrl, feedbackId, codec }
  }

  const activeTenant = async (tenantId: string | null | undefined, caller: Caller): Promise<Tenant> => {
    const tenant = await tenantFor(tenantId, caller, tenants)
    refuseUnlessActive(tenant)
    return tenant
  }

  /** The sending tenant, after checking that it may send from this mailbox; the sandbox sender may not. */
  const rawSender = async (tenantId: string | null | undefined, from: Mailbox, caller: Caller): Promise<Tenant> => {
    const tenant = await activeTenant(tenantId, caller)
    const { domains, tracks, hostname } = deps
    await senderFor(from.address, tenant, caller, { domains, tracks, hostname, sandboxSender: '' })
    return tenant
  }

  return {
    ...openForwarding({ ...deps, codec }),
    sendLimitUsage: (test) => responder.sendLimitUsage(test),
    cancel: (emailId, scope) => cancelScheduled(emailId, scope, { db, nowMs: clock.nowMs() }),
    reschedule: (emailId, scope, at, withMemory) => reschedule(emailId, scope, at, { db, codec, nowMs: clock.nowMs(), withMemory }),
    retry: (emailId, scope) => retry(emailId, scope, { db, tenants, nowMs: clock.nowMs() }),

    async send(tenantId, given, caller, renderer) {
      const known = typeof given === 'function' ? undefined : { submission: given, checked: checkSubmission(given) }
      return responder.answer(caller, renderer, async () => {
        const tenant = await activeTenant(tenantId, caller)
        const { submission, checked } = known ?? (await makeSubmission(given, tenant))
        const sender = await senderFor(checked.from.address, tenant, caller, deps)
        const { envelope } = checked.recipients
        const prepared = await withinSandboxRules({ sender, envelope }, { db, nowMs: clock.nowMs() }, async () =>
          prepareSubmission(checked, submission, await factsFor(tenant, sender, caller)),
        )
        return { submissions: [prepared], result: prepared.accepted }
      })
    },

    refuseRawSender: async (from, caller) => void (await rawSender(undefined, checkSender(from), caller)),

    async sendRaw(tenantId, submission, caller, renderer) {
      const recipients = checkRecipients(submission)
      const from = checkSender(submission.from)
      const checked = checkRaw(submission)
      return responder.answer(caller, renderer, async () => {
        const tenant = await rawSender(tenantId, from, caller)
        const sender = await senderOf(checked.originators, tenant, caller, deps)
        const prepared = await prepareRawSubmission(submission, checked, recipients, await factsFor(tenant, sender, caller))
        return { submissions: [prepared], result: prepared.accepted }
      })
    },

    async sendBatch(tenantId, from, elements, caller, renderer) {
      refuseOverfullBatch(elements, maxBatchElements)
      const mailbox = checkSender(from)
      return responder.answer(caller, renderer, async () => {
        const tenant = await activeTenant(tenantId, caller)
        const sender = await senderFor(mailbox.address, tenant, caller, deps)
        const facts = await factsFor(tenant, sender, caller)
        const made = await makeElements(elements, tenant)
        const whole = made.map((one) => ('refused' in one ? one : { submission: { ...one.submission, from } }))
        const { submissions, results } = await prepareBatch(whole, async () => facts, deps)
        return { submissions, result: { tenantId: tenant.id, sandbox: sender.sandbox, results } }
      })
    },

    async sendEach(tenantId, elements, caller, renderer, maxElements) {
      refuseOverfullBatch(elements, maxElements)
      return responder.answer(caller, renderer, async () => {
        const tenant = await activeTenant(tenantId, caller)
        const factsOf = async (from: Mailbox) => factsFor(tenant, await senderFor(from.address, tenant, caller, deps), caller)
        const { submissions, results } = await prepareBatch(elements, factsOf, deps)
        return { submissions, result: results }
      })
    },
  }
}

async function makeSubmission(given: Submission | ((tenant: Tenant) => Promise<Submission>), tenant: Tenant) {
  const submission = typeof given === 'function' ? await given(tenant) : given
  return { submission, checked: checkSubmission(submission) }
}

/** Commits prepared submissions and makes the response, once for each idempotency key. */
class Responder {
  readonly #deps: AcceptDeps
  readonly #idempotency: IdempotencyStore

  constructor(deps: AcceptDeps) {
    this.#deps = deps
    this.#idempotency = openIdempotencyStore(deps)
  }

  async sendLimitUsage(test: boolean): Promise<SendLimitUsage> {
    const { db, clock, limitSettings } = this.#deps
    return readSendLimitUsage(db, test, await limitSettings.send(), clock.nowMs())
  }

  /** Commits the result of `prepare`, and responds with `renderer.render`, or with the stored response of the same idempotency key. */
  async answer<Result>(
    caller: Caller,
    renderer: ResponseRenderer<Result>,
    prepare: () => Promise<{ submissions: Prepared[]; result: Result }>,
  ): Promise<SubmissionResponse> {
    const test = caller.mode === 'test'
    const key = renderer.idempotency && { ...renderer.idempotency, credentialId: caller.credentialId }
    const attempt = async (): Promise<SubmissionResponse | undefined> => {
      const { submissions, result } = await prepare()
      const body = renderer.render(result)
      const isEmpty = submissions.length === 0
      if (isEmpty && !key) return { body, replayed: false, sendLimitUsage: await this.sendLimitUsage(test), emailIds: [] }
      const committed = await this.#deps.commit({ submissions, idempotency: key && { ...key, body } })
      if (!committed.committed) return undefined
      if (isEmpty) return { body, replayed: false, sendLimitUsage: await this.sendLimitUsage(test), emailIds: [] }
      const emailIds = submissions.flatMap(({ emails }) => emails.map(({ id }) => id))
      metrics.accepted.inc({ mode: caller.mode }, emailIds.length)
      return { body, replayed: false, sendLimitUsage: committed.sendLimitUsage, emailIds }
    }
    const answered = key ? await this.#idempotency.run(key, attempt) : await attempt()
    if (!answered) throw new Error('an entry without an idempotency key lost a key conflict')
    return 'replay' in answered
      ? { body: answered.replay, replayed: true, sendLimitUsage: await this.sendLimitUsage(test), emailIds: [] }
      : answered
  }
}
