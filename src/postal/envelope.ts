/** Postal's envelope (`status`, `time`, `flags`, `data`) and its error codes, which always come with HTTP status 200. */
import { Refusal, type RefusalCode } from '#base'

/** Postal's own codes, and below them the ones for refusals that Postal does not have. */
export type PostalCode =
  | 'AccessDenied'
  | 'InvalidServerAPIKey'
  | 'ServerSuspended'
  | 'NoRecipients'
  | 'NoContent'
  | 'TooManyToAddresses'
  | 'TooManyCCAddresses'
  | 'TooManyBCCAddresses'
  | 'FromAddressMissing'
  | 'UnauthenticatedFromAddress'
  | 'AttachmentMissingName'
  | 'AttachmentMissingData'
  | 'MessageNotFound'
  | 'RateLimitExceeded'
  | 'NotServed'
  | 'InternalError'

/** A refusal with its own code of Postal's. */
export class PostalRefusal extends Refusal {
  readonly postalCode: PostalCode
  /** Further members of `data`. */
  readonly data: Record<string, unknown>

  constructor(postalCode: PostalCode, message: string, data: Record<string, unknown> = {}) {
    super(postalCode === 'MessageNotFound' || postalCode === 'NotServed' ? 'not_found' : 'validation_error', { message })
    this.postalCode = postalCode
    this.data = data
  }
}

/** A missing or wrong parameter: Postal's status `parameter-error`. */
export const parameterError = (message: string): Refusal => new Refusal('validation_error', { message })

const codeOfRefusal: Partial<Record<RefusalCode, PostalCode>> = {
  authentication_required: 'AccessDenied',
  invalid_api_key: 'InvalidServerAPIKey',
  expired_api_key: 'InvalidServerAPIKey',
  permission_denied: 'AccessDenied',
  credential_on_hold: 'AccessDenied',
  tenant_suspended: 'ServerSuspended',
  tenant_archived: 'ServerSuspended',
  domain_not_verified: 'UnauthenticatedFromAddress',
  sandbox_recipient_not_allowed: 'UnauthenticatedFromAddress',
  sandbox_limit_exceeded: 'RateLimitExceeded',
  rate_limit_exceeded: 'RateLimitExceeded',
  not_found: 'NotServed',
  internal_error: 'InternalError',
}

const messages: Partial<Record<PostalCode, string>> = {
  AccessDenied: 'Must be authenticated as a server.',
  InvalidServerAPIKey: 'The API token provided in X-Server-API-Key was not valid.',
}

/** The error of a refusal; `token` is the key as given. Refusals without a code of Postal's are parameter errors. */
function postalErrorOf(refusal: Refusal, token: string | undefined): { status: 'error' | 'parameter-error'; data: object } {
  if (refusal instanceof PostalRefusal)
    return { status: 'error', data: { ...refusal.data, message: refusal.message, code: refusal.postalCode } }
  const code = codeOfSender(refusal) ?? codeOfRefusal[refusal.code]
  if (code === undefined) return { status: 'parameter-error', data: { message: refusal.message } }
  const isKnown = refusal.code === 'authentication_required' || code === 'InvalidServerAPIKey'
  const message = (isKnown && messages[code]) || refusal.message
  return { status: 'error', data: { message, ...(code === 'InvalidServerAPIKey' ? { token } : {}), code } }
}

/** Acceptance refuses a raw message from a domain of another owner as an invalid message. */
const codeOfSender = ({ code, message }: Refusal): PostalCode | undefined =>
  code === 'invalid_raw_message' && /is not a sending domain|is not verified|is reserved for/.test(message)
    ? 'UnauthenticatedFromAddress'
    : undefined

/** `seconds`: the time since the request began. */
const envelope = (status: string, data: unknown, seconds: number) => ({
  status,
  time: Math.round(seconds * 1000) / 1000,
  flags: {},
  data,
})

export const successEnvelope = (data: unknown, seconds: number) => envelope('success', data, seconds)

export function failureEnvelope(refusal: Refusal, token: string | undefined, seconds: number): string {
  const { status, data } = postalErrorOf(refusal, token)
  return JSON.stringify(envelope(status, data, seconds))
}
