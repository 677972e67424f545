/**
 * Catalogue of every documented refusal (contract section 3). A module throws `new Refusal(code, …)`; each entry point translates it: HTTP
 * status and envelope, SMTP reply, exit code.
 */

export const refusals = {
  authentication_required: {
    status: 401,
    means: 'no Authorization header, or it is empty',
    suggestion: 'Send the header "Authorization: Bearer <API key>"',
  },
  invalid_api_key: {
    status: 401,
    means: 'the header is not "Bearer <key>", the key lacks the svc_live_ or svc_test_ prefix, or no credential has it',
    suggestion: 'Check the key; create a new one if it is lost',
  },
  expired_api_key: {
    status: 401,
    means: 'the key belonged to a credential that has been revoked',
    suggestion: 'Use a key that has not been revoked',
  },
  permission_denied: {
    status: 403,
    means: 'the key lacks the permission, or the endpoint needs an organisation-level or full-access key',
    suggestion: 'Use a key with the permission named in the message',
  },
  tenant_mismatch: {
    status: 403,
    means: 'a tenant-scoped key names another tenant',
    suggestion: 'Leave tenantId out, or use an organisation-level key',
  },
  credential_on_hold: {
    status: 403,
    means: 'the credential of this key is on hold',
    suggestion: 'Take the credential off hold, or use another key',
  },
  tenant_suspended: { status: 403, means: 'a send for a suspended tenant', suggestion: 'Set the tenant active again before sending' },
  tenant_archived: { status: 403, means: 'a send or a create under an archived tenant', suggestion: 'Set the tenant active again first' },
  sandbox_recipient_not_allowed: {
    status: 403,
    means: 'the sandbox sender may write to members of the organisation only',
    suggestion: 'Send to a member, or send from a verified domain',
  },
  not_found: {
    status: 404,
    means: "unknown route, or a resource that does not exist in the caller's scope",
    suggestion: 'Check the path and the id',
  },
  rate_limit_exceeded: {
    status: 429,
    means: 'more than the allowed requests per second',
    suggestion: 'Wait as long as the Retry-After header says, then repeat the request',
  },
  sandbox_limit_exceeded: {
    status: 429,
    means: 'the sandbox sender has used its 10 emails of this UTC day',
    suggestion: 'Send from a verified domain, or wait until midnight UTC',
  },
  validation_error: {
    status: 400,
    means: 'a field is missing, of the wrong type, too long, out of range, or not among its values',
    suggestion: 'Correct the field named in error.field and send the request again',
  },
  invalid_email_format: {
    status: 400,
    means: 'a syntactically wrong email address',
    suggestion: 'Give an address of the form name@example.com',
  },
  invalid_json: { status: 400, means: 'the body is not JSON', suggestion: 'Send one JSON object, encoded as UTF-8' },
  invalid_content_type: {
    status: 400,
    means: 'a body of another media type than application/json',
    suggestion: 'Send the header "Content-Type: application/json"',
  },
  payload_too_large: {
    status: 400,
    means: 'the request body, one attachment, or the whole message is over its limit',
    suggestion: 'Make the content smaller, or link to large files instead of attaching them',
  },
  domain_not_verified: {
    status: 400,
    means: 'the domain of from is not a verified sending domain of the tenant',
    suggestion: 'Add and verify the domain',
  },
  invalid_raw_message: {
    status: 400,
    means: 'rawMessage is not base64, has no header block or no usable From, or names a sender of a domain that is not verified',
    suggestion: 'Send a complete RFC 5322 message with a From header, base64-encoded',
  },
  email_not_retryable: {
    status: 400,
    means: 'the email is pending or sent',
    suggestion: 'Only emails in softfail, hardfail, bounced or held can be retried',
  },
  email_content_expired: { status: 400, means: 'the stored content of the email has been purged', suggestion: 'Send the email again' },
  invalid_idempotency_key: {
    status: 400,
    means: 'the key is empty, over 255 characters, or has characters other than letters, digits, _ - . ~',
    suggestion: 'Use a key of 1 to 255 characters of A-Z a-z 0-9 _ - . ~',
  },
  idempotency_key_reused: {
    status: 400,
    means: 'the same key was used for a different request',
    suggestion: 'Use a new key for a new request',
  },
  idempotency_in_progress: {
    status: 400,
    means: 'a request with the same key is still being processed after 30 seconds',
    suggestion: 'Repeat the same request in a second',
  },
  default_tenant_protected: {
    status: 400,
    means: 'the default tenant cannot be deleted, suspended or archived',
    suggestion: 'Use another tenant',
  },
  domain_already_exists: { status: 400, means: 'the tenant has this domain already', suggestion: 'Use the existing domain' },
  track_domain_already_exists: {
    status: 400,
    means: 'a track domain of this full name exists already',
    suggestion: 'Use the existing track domain, or another name',
  },
  webhook_disabled: { status: 400, means: 'replay on a disabled webhook', suggestion: 'Enable the webhook first' },
  webhook_url_not_allowed: {
    status: 400,
    means: 'the URL is not https, or leads to a blocked address range',
    suggestion:
      'Use a public https URL; to try webhooks on your own machine use postrider listen --forward, or let the operator open its network with POSTRIDER_ALLOWED_NETWORKS',
  },
  internal_error: {
    status: 500,
    means: 'anything unexpected',
    suggestion: 'Repeat the request; if it keeps failing, give the request id to the operator',
  },
} as const satisfies Record<string, { status: number; means: string; suggestion: string }>

export type RefusalCode = keyof typeof refusals

export interface FieldProblem {
  /** JSON path of the field, for example `to[3]` or `emails[2].subject`. */
  field: string
  message: string
}

interface RefusalOptions {
  /** The problem in a sentence that names the field; shown to the caller. */
  message?: string
  suggestion?: string
  field?: string
  details?: FieldProblem[]
  /** Seconds that the caller should wait. */
  retryAfterSeconds?: number
  /** Whether clients should retry, regardless of the status. */
  shouldRetry?: boolean
}

/** A documented refusal of a call. Thrown by modules, translated to a response by the entry points. */
export class Refusal extends Error {
  readonly code: RefusalCode
  readonly status: number
  readonly suggestion: string
  /** The suggestion was given for this case; otherwise it is the code's default. */
  readonly hasOwnSuggestion: boolean
  readonly field: string | undefined
  readonly details: FieldProblem[] | undefined
  readonly retryAfterSeconds: number | undefined
  readonly shouldRetry: boolean | undefined

  constructor(code: RefusalCode, options: RefusalOptions = {}) {
    super(options.message ?? refusals[code].means)
    this.name = 'Refusal'
    this.code = code
    this.status = refusals[code].status
    this.suggestion = options.suggestion ?? refusals[code].suggestion
    this.hasOwnSuggestion = options.suggestion !== undefined
    this.field = options.field
    this.details = options.details
    this.retryAfterSeconds = options.retryAfterSeconds
    this.shouldRetry = options.shouldRetry
  }
}

/** A refusal for an invalid field: its message is the field's name followed by `problem`. */
export const wrongField = (field: string, problem: string, code: RefusalCode = 'validation_error', suggestion?: string): Refusal =>
  new Refusal(code, {
    field,
    message: `${field} ${problem}`,
    ...(suggestion === undefined ? {} : { suggestion }),
    details: [{ field, message: problem }],
  })
