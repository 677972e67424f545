/**
 * Converts an attempt to a trace span: the remote server, the reply codes and their times. The span contains neither message text nor
 * recipient addresses.
 */
import type { EndedSpan } from '#base'
import type { Outcome } from './attempt-outcome.ts'

/** Undefined for an outcome without an attempt. */
export function attemptSpan(one: Outcome): EndedSpan | undefined {
  const { claimed, status } = one
  if (status === 'held') return undefined
  return {
    name: 'delivery attempt',
    kind: 'client',
    durationMs: one.durationMs,
    emailId: claimed.emailId,
    attributes: {
      'postrider.tenant.id': claimed.tenantId,
      'postrider.mode': claimed.test ? 'test' : 'live',
      'postrider.attempt': claimed.attempts + 1,
      'postrider.outcome': status,
      'postrider.outcome.unknown': one.outcomeUnknown,
      'postrider.recipient_domain': claimed.recipientDomain,
      'postrider.source': one.source,
      'postrider.smtp.code': one.code,
      'postrider.smtp.enhanced_code': one.enhanced,
      'postrider.tls': one.tls?.version,
      'server.address': one.remoteHost,
    },
    error: status === 'sent' ? undefined : (one.classification ?? status),
    events: one.repliedMs,
  }
}
