/** Permanent failures as Postmark's bounces. The number of the email is the bounce's ID, because an email fails once. */
import type { Email, EmailStatus, LastAttempt } from '#emails'
import { postmarkBounceKind, postmarkStreamOf, unsentPostmarkKind } from '#webhooks'

export const bounceStatuses = ['hardfail', 'bounced'] as const satisfies readonly EmailStatus[]

export interface BouncedEmail extends Email {
  number: number
}

/** `attempt`: the last one, as far as it is stored; `inactive`: the recipient is suppressed. */
export function postmarkBounce(email: BouncedEmail, attempt: LastAttempt | undefined, inactive: boolean) {
  return {
    RecordType: 'Bounce',
    ID: email.number,
    ...kindOf(email, attempt, inactive),
    Tag: email.tag ?? '',
    MessageID: email.contentId,
    ServerID: 0,
    MessageStream: postmarkStreamOf(email.metadata),
    Details: attempt ? attempt.output.trim() || attempt.details : '',
    Email: email.recipient,
    From: email.sender,
    BouncedAt: (attempt?.at ?? email.acceptedAt).toISOString(),
    DumpAvailable: false,
    Inactive: inactive,
    CanActivate: inactive,
    Subject: email.subject,
    Content: null,
  }
}

/**
 * The receiver reported a bounce, so that it refused the email. A failed email whose last attempt was not refused was cancelled or expired, unless
 * its attempts are deleted, which a suppression shows.
 */
function kindOf({ status }: BouncedEmail, attempt: LastAttempt | undefined, inactive: boolean) {
  const isRefused = attempt
    ? attempt.status !== 'softfail' && (attempt.classification !== 'unclassified' || attempt.output.trim() !== '')
    : inactive
  return isRefused || status === 'bounced' ? postmarkBounceKind(attempt?.classification ?? null) : unsentPostmarkKind
}
