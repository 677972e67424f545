/**
 * Accepts messages from the queue of another program, each once: the caller derives the email's id from the message, and an id that is
 * there is not accepted again. The sender is authorised as for any raw message, by the fields of the message.
 */
import { type Clock, type Ids, Refusal } from '#base'
import { type Db, isUniqueViolation } from '#db'
import { findEmail, openContentCodec } from '#emails'
import { readRaw } from '#mail'
import type { Tenants } from '#tenants'
import { refuseUnlessActive, type SenderDeps, senderOf } from './authorize-sender.ts'
import type { Commit } from './commit.ts'
import { checkRaw } from './raw-submission.ts'
import { prepareRawSubmission } from './submission-rows.ts'
import { checkRecipients } from './validate-submission.ts'

export interface MovedMessage {
  /** Begins with the time of acceptance. */
  id: string
  tenantId: string
  recipient: string
  octets: Buffer
  /** true: sent with the null reverse-path. */
  bounce: boolean
  acceptedAtMs: number
  tag: string | null
  metadata: Readonly<Record<string, string>>
}

export interface MovedDeps extends SenderDeps {
  db: Db
  clock: Clock
  ids: Ids
  tenants: Tenants
  publicUrl: string
  commit: Commit
}

/** Resolves to false if the email was there. Refuses as acceptance does. */
export type AcceptMoved = (message: MovedMessage) => Promise<boolean>

/** Moved mail has no credential here. */
const noCredential = 0

export function openMoved(deps: MovedDeps): AcceptMoved {
  const { db, ids, tenants, clock, publicUrl, commit } = deps
  const codec = openContentCodec(clock)

  return async ({ id, tenantId, recipient, octets, bounce, acceptedAtMs, tag, metadata }) => {
    if (await findEmail(db, id, tenantId)) return false
    const tenant = await tenants.find(tenantId)
    if (!tenant) throw new Refusal('not_found', { message: `no such tenant: ${tenantId}` })
    refuseUnlessActive(tenant)
    const read = readRaw(octets)
    // `checkRaw` refuses an unreadable message after it has seen a valid sender.
    const from = typeof read === 'string' ? `postmaster@${deps.hostname}` : read.from.address.text
    const submission = { from, to: [recipient], rawMessage: octets.toString('base64'), bounce, tag, metadata }
    const recipients = checkRecipients(submission)
    const checked = checkRaw(submission)
    const caller = { credentialId: noCredential, tenantId, mode: 'live' as const }
    const sender = await senderOf(checked.originators, tenant, caller, deps)
    const own = { tenant, sender, test: false, credentialId: noCredential, nowMs: acceptedAtMs, clockOffsetMs: 0 }
    const facts = { ...own, ids: { ...ids, emailId: () => id }, publicUrl, codec }
    const prepared = await prepareRawSubmission(submission, checked, recipients, facts)
    try {
      await commit({ submissions: [{ ...prepared, credentialId: null }], idempotency: undefined })
    } catch (error) {
      // Another run accepted it meanwhile.
      if (isUniqueViolation(error) && (await findEmail(db, id, tenantId))) return false
      throw error
    }
    return true
  }
}
