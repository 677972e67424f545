/** SMTP error replies: code, enhanced status code (RFC 3463) and text, and the mapping from refusals to replies. */
import { Refusal, type RefusalCode } from '#base'

/** Thrown by a backend, sent by the listener. */
export class ReplyError extends Error {
  readonly responseCode: number
  /** The connection is closed after the reply. */
  readonly closes: boolean

  constructor(code: number, enhanced: string, text: string, then?: 'and close') {
    super(`${enhanced} ${text}`)
    this.name = 'Reply'
    this.responseCode = code
    this.closes = then === 'and close'
  }
}

/** Refusals possible between MAIL and the end of DATA (docs/smtp.md shows this table). */
const replies: Partial<Record<RefusalCode, readonly [code: number, enhanced: string]>> = {
  domain_not_verified: [550, '5.7.1'],
  invalid_raw_message: [550, '5.7.1'],
  permission_denied: [550, '5.7.1'],
  tenant_suspended: [550, '5.7.1'],
  tenant_archived: [550, '5.7.1'],
  not_found: [550, '5.7.1'],
  invalid_email_format: [553, '5.1.3'],
  payload_too_large: [552, '5.3.4'],
  validation_error: [554, '5.6.0'],
  invalid_idempotency_key: [554, '5.6.0'],
  idempotency_key_reused: [554, '5.6.0'],
  idempotency_in_progress: [451, '4.5.0'],
}

/** Undefined for an error that is not the client's, which gets a temporary failure. */
export function replyTo(error: unknown): ReplyError | undefined {
  if (error instanceof ReplyError) return error
  const reply = error instanceof Refusal ? replies[error.code] : undefined
  // A reply line has at most 512 octets (RFC 5321 section 4.5.3.1.5).
  return reply && new ReplyError(...reply, (error as Refusal).message.slice(0, 400))
}

export const tryLater = () => new ReplyError(451, '4.3.0', 'Temporary error, try again later')
