/**
 * Catalogue of every documented refusal (contract section 3). A module throws `new Refusal(code, …)`; each entry point translates it: HTTP
 * status and envelope, SMTP reply, exit code.
 */

export const refusals = {
  authentication_required: {
    status: 401,
    means: 'the Authorization header is missing or empty',
    suggestion: 'Send the header "Authorization: Bearer <API key>"',
  },
  invalid_api_key: {
    status: 401,
    means: 'the Authorization header is not "Bearer <key>", the key does not begin with svc_live_ or svc_test_, or the key is unknown',
    suggestion: 'Check the key, or create a new one with postrider key create',
  },
  expired_api_key: {
    status: 401,
    means: 'the key has been revoked or has expired',
    suggestion: 'Use another key, or create a new one with postrider key create',
  },
  permission_denied: {
    status: 403,
    means:
      'the key lacks the permission, may not send from this address or be used from this network, or the endpoint requires another key',
    suggestion: 'Use a key with the permission named in the message',
  },
  tenant_mismatch: {
    status: 403,
    means: 'tenantId: this key belongs to another tenant',
    suggestion: 'Omit tenantId, or use an organisation-level key',
  },
  credential_on_hold: {
    status: 403,
    means: 'the credential of this key is on hold',
    suggestion: 'Release the credential (PATCH with hold: false), or use another key',
  },
  tenant_suspended: {
    status: 403,
    means: 'the tenant is suspended',
    suggestion: 'Set the status of the tenant to active, then send again',
  },
  tenant_archived: { status: 403, means: 'the tenant is archived', suggestion: 'Set the status of the tenant to active first' },
  sandbox_recipient_not_allowed: {
    status: 403,
    means: 'the sandbox sender can only send to members of the organisation',
    suggestion: 'Send to a member, or send from a verified domain',
  },
  not_found: {
    status: 404,
    means: "the path is unknown, or the resource does not exist in the caller's scope",
    suggestion: 'Check the path and the id',
  },
  rate_limit_exceeded: {
    status: 429,
    means: 'the key has exceeded its requests per second',
    suggestion: 'Wait for the seconds in the Retry-After header, then repeat the request',
  },
  sandbox_limit_exceeded: {
    status: 429,
    means: 'the sandbox sender has sent its 10 emails for this UTC day',
    suggestion: 'Send from a verified domain, or wait until midnight UTC',
  },
  validation_error: {
    status: 400,
    means: 'invalid field (details in error.details)',
    suggestion: 'Correct the field named in error.field and send the request again',
  },
  invalid_email_format: {
    status: 400,
    means: 'the email address has a syntax error',
    suggestion: 'Write the address as name@example.com',
  },
  invalid_json: { status: 400, means: 'the body is not JSON', suggestion: 'Send one JSON object, encoded as UTF-8' },
  invalid_content_type: {
    status: 400,
    means: 'the media type of the body is not application/json',
    suggestion: 'Send the header "Content-Type: application/json"',
  },
  payload_too_large: {
    status: 400,
    means: 'the request body, an attachment or the whole message exceeds its size limit',
    suggestion: 'Reduce the content, or link to large files instead of attaching them',
  },
  domain_not_verified: {
    status: 400,
    means: 'from: the domain is not a verified sending domain of this tenant',
    suggestion: 'Add the domain and publish its DNS records, then verify it',
  },
  invalid_raw_message: {
    status: 400,
    means: 'rawMessage is not base64, has no header block or no usable From header, or its From domain is not verified',
    suggestion: 'Send a complete RFC 5322 message with a From header, base64-encoded',
  },
  email_not_retryable: {
    status: 400,
    means: 'the email is pending or sent, or an attempt is in progress',
    suggestion: 'Retry only emails with status softfail, hardfail, bounced or held',
  },
  email_not_scheduled: {
    status: 400,
    means: 'the email has left, was cancelled, or was never scheduled',
    suggestion: 'Cancel or reschedule only an email that is pending until its scheduledAt',
  },
  email_content_expired: {
    status: 400,
    means: 'the content of the email has been deleted after its retention period',
    suggestion: 'Send a new email',
  },
  invalid_idempotency_key: {
    status: 400,
    means: 'Idempotency-Key is empty, longer than 255 characters, or has characters other than letters, digits, _ - . ~',
    suggestion: 'Use 1 to 255 of the characters A-Z a-z 0-9 _ - . ~',
  },
  idempotency_key_reused: {
    status: 400,
    means: 'Idempotency-Key: this key was already used for a different request',
    suggestion: 'Use a new key for each new request',
  },
  idempotency_in_progress: {
    status: 400,
    means: 'Idempotency-Key: a request with this key is still in progress after 30 seconds',
    suggestion: 'Repeat the same request after one second',
  },
  default_tenant_protected: {
    status: 400,
    means: 'the default tenant cannot be deleted, suspended or archived',
    suggestion: 'Use another tenant',
  },
  domain_already_exists: { status: 400, means: 'name: this tenant already has this domain', suggestion: 'Use the existing domain' },
  track_domain_already_exists: {
    status: 400,
    means: 'name: a track domain with this full name already exists',
    suggestion: 'Use the existing track domain, or choose another name',
  },
  transport_already_exists: {
    status: 400,
    means: 'name: a transport with this name exists',
    suggestion: 'Change the existing transport, or choose another name',
  },
  webhook_disabled: { status: 400, means: 'the webhook is disabled', suggestion: 'Enable the webhook first' },
  webhook_url_not_allowed: {
    status: 400,
    means: 'url: not an https URL, or it resolves to a blocked address range',
    suggestion:
      'Use a public https URL. For your own machine, run postrider listen --forward, or ask the operator to set POSTRIDER_ALLOWED_NETWORKS',
  },
  internal_error: {
    status: 500,
    means: 'an unexpected error occurred',
    suggestion: 'Repeat the request. If it fails again, send the request id to the operator',
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
