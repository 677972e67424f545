/** Entries of suppression lists as Resend's suppressions; their ids are the addresses, which Resend's API takes too. */
import { originOf, type Suppression } from '#suppressions'

export const resendSuppression = (entry: Suppression) => ({
  id: entry.address,
  email: entry.address,
  origin: originOf(entry),
  source_id: entry.emailId,
  created_at: entry.createdAt.toISOString(),
})
