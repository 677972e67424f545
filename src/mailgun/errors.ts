/** Mailgun's errors: an HTTP status, and a body with a message. */
import { Refusal } from '#base'
import { type FieldNames, type RefuseField, renameFields, usualStatuses } from '#vendors'

/** A refusal with its own HTTP status. */
export class MailgunRefusal extends Refusal {
  readonly httpStatus: number

  constructor(httpStatus: number, message: string, field?: string) {
    super(httpStatus === 404 ? 'not_found' : 'validation_error', { message, ...(field === undefined ? {} : { field }) })
    this.httpStatus = httpStatus
  }
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
  const status = refusal instanceof MailgunRefusal ? refusal.httpStatus : (usualStatuses[refusal.code] ?? 400)
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
