/** The email's states and their transitions as data (contract section 7.2). */

export const emailStatuses = ['pending', 'sent', 'softfail', 'hardfail', 'bounced', 'held'] as const
export type EmailStatus = (typeof emailStatuses)[number]

/** What may follow what. */
export const transitions: Readonly<Record<EmailStatus, readonly EmailStatus[]>> = {
  pending: ['sent', 'softfail', 'hardfail', 'held'],
  softfail: ['sent', 'softfail', 'hardfail', 'held', 'pending'],
  sent: ['bounced'],
  hardfail: ['pending'],
  bounced: ['pending'],
  held: ['pending', 'hardfail'],
}

/** The states that a manual retry may leave. */
export const retryableStatuses: readonly EmailStatus[] = emailStatuses.filter((status) => transitions[status].includes('pending'))

/** The states in which a recipient is still in the spool and will be attempted without anybody's doing. */
export const queuedStatuses: readonly EmailStatus[] = ['pending', 'softfail']
