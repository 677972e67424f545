/** Mailgun's errors: an HTTP status, and a body with a message. */
import { Refusal, type RefusalCode } from '#base'
import { type FieldNames, type RefuseField, renameFields } from '#vendors'

/** A refusal with its own HTTP status. */
export class MailgunRefusal extends Refusal {
  readonly httpStatus: number

  constructor(httpStatus: number, message: string, field?: string) {
    super(httpStatus === 404 ? 'not_found' : 'validation_error', { message, ...(field === undefined ? {} : { field }) })
    this.httpStatus = httpStatus
  }
}

/** All others are 400. */
const statuses: Readonly<Partial<Record<RefusalCode, number>>> = {
  authentication_required: 401,
  invalid_api_key: 401,
  expired_api_key: 401,
  permission_denied: 403,
  credential_on_hold: 403,
  tenant_suspended: 403,
  tenant_archived: 403,
  domain_not_verified: 403,
  sandbox_recipient_not_allowed: 403,
  sandbox_limit_exceeded: 403,
  not_found: 404,
  payload_too_large: 413,
  rate_limit_exceeded: 429,
  internal_error: 500,
}

/** Postrider's names of fields, and Mailgun's. */
const fieldNames: FieldNames = [
  [/^emails\[\d+\]\./, ''],
  [/\breplyTo\b/, 'h:Reply-To'],
  [/\bheaders\./, 'h:'],
  [/\bmetadata\./, 'v:'],
  [/\btag\b/, 'o:tag'],
  [/\btracking\b/, 'o:tracking'],
  [/\bscheduledAt\b/, 'o:deliverytime'],
  [/\battachments\b/, 'attachment'],
  [/\brawMessage\b/, 'message'],
  [/^emails have\b/, 'the messages have'],
]

/** The HTTP status and the body of a refusal. */
export function mailgunFailure(refusal: Refusal): { status: number; body: string } {
  const status = refusal instanceof MailgunRefusal ? refusal.httpStatus : (statuses[refusal.code] ?? 400)
  const own = renameFields(refusal.message, fieldNames)
  return { status, body: JSON.stringify({ message: status === 401 ? 'Forbidden' : own }) }
}

/** Refuses one parameter of a request. */
export const refuseMailgunField: RefuseField = (path, problem, kind) =>
  new MailgunRefusal(
    400,
    kind === 'missing' ? `${path} parameter is missing` : `${path} ${problem}${kind === 'not served' ? `: ${page}` : ''}`,
    path,
  )

const page = 'docs/mailgun-api.md lists the parameters'
