/** The event of an entry that was added to a suppression list or removed from it. */
import type { NewEvent } from '#events'

interface ChangedEntry {
  /** The tenant of the list; for the organisation's list, the organisation's id, because webhooks show it. */
  tenantId: string
  /** Lower case. */
  address: string
  reason: string | null
  source: 'manual' | 'automatic'
  /** The email that caused the change; null: a request caused it. */
  emailId: string | null
}

/** The address is in the data, because an entry added by request has no email. */
export const listChange = (
  kind: 'SuppressionAdded' | 'SuppressionRemoved',
  { tenantId, emailId, address, reason, source }: ChangedEntry,
  at: Date,
): NewEvent => ({ tenantId, kind, emailId, at, data: { address, reason, source } })
