/** The rows of a flush, as JSON recordsets: one for each submission and one for each idempotency key. */
import type { ColumnTypes } from '#db'
import { shardOf } from '#spool'
import type { Prepared } from './submission-rows.ts'

/** A key with the response that its repetitions receive. */
export interface KeyedResponse {
  credentialId: number
  key: string
  fingerprint: Buffer
  body: Buffer
}

interface Place {
  /** Its place in the flush. */
  n: number
  onceKey: string | null
  /** The emails after the first ones of this number are over the send limit; scheduled ones take slots when they are due. */
  slots: number
  /** The key, if it has a send limit of its own. */
  limitedKey: number | null
}

export const submissionRow = (one: Prepared, { n, onceKey, slots, limitedKey }: Place) => ({
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
  scheduled_at: one.scheduledAtMs === null ? null : new Date(one.scheduledAtMs - one.clockOffsetMs),
  simulated_schedule: one.scheduledAtMs === null ? null : new Date(one.scheduledAtMs),
  size_octets: one.sizeOctets,
  limited_key: limitedKey,
  ignores_tls_policies: one.ignoresTlsPolicies ?? null,
  once_key: onceKey,
  emails: one.emails.map((email, index) => ({
    id: email.id,
    recipient: email.recipient.text,
    recipient_domain: email.recipient.domain,
    state: one.scheduledAtMs === null ? (index < slots ? 'ready' : 'over_limit') : 'scheduled',
  })),
})

export const submissionColumns: ColumnTypes<ReturnType<typeof submissionRow>> = {
  n: 'integer',
  tenant_id: 'text',
  content_id: 'text',
  shard: 'smallint',
  sender: 'text',
  from_header: 'text',
  subject: 'text',
  tag: 'text',
  metadata: 'jsonb',
  message_id: 'text',
  test: 'boolean',
  credential_id: 'bigint',
  accepted_at: 'timestamptz',
  simulated_at: 'timestamptz',
  scheduled_at: 'timestamptz',
  simulated_schedule: 'timestamptz',
  size_octets: 'integer',
  limited_key: 'bigint',
  ignores_tls_policies: 'boolean',
  once_key: 'text',
  emails: 'json',
}

/** Octets are in base64. */
export const keyRow = ({ credentialId, key, fingerprint, body }: KeyedResponse, acceptedAtMs: number) => ({
  credential_id: credentialId,
  key,
  fingerprint: fingerprint.toString('base64'),
  body: body.toString('base64'),
  accepted_at: new Date(acceptedAtMs),
})

export const keyColumns: ColumnTypes<ReturnType<typeof keyRow>> = {
  credential_id: 'bigint',
  key: 'text',
  fingerprint: 'text',
  body: 'text',
  accepted_at: 'timestamptz',
}
