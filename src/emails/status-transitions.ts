/**
 * Email statuses and their transitions as data (contract section 7.2).
 */

export const emailStatuses = ['pending', 'sent', 'softfail', 'hardfail', 'bounced', 'held'] as const
export type EmailStatus = (typeof emailStatuses)[number]

/** The statuses that may follow each status. */
export const transitions: Readonly<Record<EmailStatus, readonly EmailStatus[]>> = {
  pending: ['sent', 'softfail', 'hardfail', 'held'],
  softfail: ['sent', 'softfail', 'hardfail', 'held', 'pending'],
  sent: ['bounced'],
  hardfail: ['pending'],
  bounced: ['pending'],
  held: ['pending', 'hardfail'],
}

/** The statuses that a manual retry may leave. */
export const retryableStatuses: readonly EmailStatus[] = emailStatuses.filter((status) => transitions[status].includes('pending'))

/** The statuses of recipients in the spool that will be attempted without a manual action. */
export const queuedStatuses: readonly EmailStatus[] = ['pending', 'softfail']
