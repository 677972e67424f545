/** Entries of suppression lists as Resend's suppressions; their ids are the addresses, which Resend's API takes too. */
import { originOf, type Suppression } from '#suppressions'

/** `messageId`: of the message that caused the entry, as its send returned it; null: a request did. */
export const resendSuppression = (entry: Suppression, messageId: string | null) => ({
  id: entry.address,
  email: entry.address,
  origin: originOf(entry),
  source_id: messageId,
  created_at: entry.createdAt.toISOString(),
})
