/** Resend's errors: HTTP status, `statusCode`, `name` and `message`. */
import { Refusal, type RefusalCode } from '#base'
import { type FieldNames, type RefuseField, renameFields } from '#vendors'

/** Names that Resend's SDKs know (resend 6.38, RESEND_ERROR_CODE_KEY). */
export type ResendErrorName =
  | 'invalid_idempotency_key'
  | 'validation_error'
  | 'missing_api_key'
  | 'restricted_api_key'
  | 'invalid_api_key'
  | 'not_found'
  | 'invalid_idempotent_request'
  | 'concurrent_idempotent_requests'
  | 'invalid_attachment'
  | 'invalid_from_address'
  | 'invalid_access'
  | 'invalid_parameter'
  | 'missing_required_field'
  | 'daily_quota_exceeded'
  | 'rate_limit_exceeded'
  | 'internal_server_error'

/** A refusal with its own status and name of Resend's. */
export class ResendRefusal extends Refusal {
  readonly statusCode: number
  readonly errorName: ResendErrorName

  constructor(statusCode: number, errorName: ResendErrorName, message: string) {
    super(errorName === 'not_found' ? 'not_found' : 'validation_error', { message })
    this.statusCode = statusCode
    this.errorName = errorName
  }
}

type Answer = readonly [statusCode: number, name: ResendErrorName]

const answers: Readonly<Partial<Record<RefusalCode, Answer>>> = {
  authentication_required: [401, 'missing_api_key'],
  invalid_api_key: [403, 'invalid_api_key'],
  expired_api_key: [403, 'invalid_api_key'],
  permission_denied: [401, 'restricted_api_key'],
  credential_on_hold: [401, 'restricted_api_key'],
  tenant_suspended: [403, 'validation_error'],
  tenant_archived: [403, 'validation_error'],
  domain_not_verified: [403, 'validation_error'],
  domain_already_exists: [403, 'validation_error'],
  sandbox_recipient_not_allowed: [403, 'validation_error'],
  sandbox_limit_exceeded: [429, 'daily_quota_exceeded'],
  rate_limit_exceeded: [429, 'rate_limit_exceeded'],
  not_found: [404, 'not_found'],
  invalid_idempotency_key: [400, 'invalid_idempotency_key'],
  idempotency_key_reused: [409, 'invalid_idempotent_request'],
  idempotency_in_progress: [409, 'concurrent_idempotent_requests'],
  internal_error: [500, 'internal_server_error'],
}

/** Postrider's names of fields, and Resend's. */
const fieldNames: FieldNames = [
  [/\breplyTo\b/g, 'reply_to'],
  [/\bcontentType\b/g, 'content_type'],
  [/\bcontentId\b/g, 'content_id'],
  [/\bmetadata\b/g, 'tags'],
  [/\bscheduledAt\b/g, 'scheduled_at'],
]

/** The HTTP status and the body of a refusal. Refusals without an answer of their own are 422 `validation_error`. */
export function resendFailure(refusal: Refusal): { status: number; body: string } {
  const [statusCode, name] =
    refusal instanceof ResendRefusal
      ? [refusal.statusCode, refusal.errorName]
      : (answers[refusal.code] ?? ([422, refusal.field?.startsWith('attachments') ? 'invalid_attachment' : 'validation_error'] as Answer))
  const message = renameFields(refusal.message, fieldNames)
  return { status: statusCode, body: JSON.stringify({ statusCode, name, message }) }
}

/** Refuses one field of a request. */
export const refuseResendField: RefuseField = (path, problem, kind) =>
  kind === 'missing'
    ? new ResendRefusal(422, 'missing_required_field', `Missing \`${path}\` field.`)
    : new ResendRefusal(
        422,
        'validation_error',
        `\`${path}\` ${problem}${kind === 'not served' ? ': docs/resend-api.md lists the fields' : ''}`,
      )
