/** SendGrid's errors: an HTTP status, and a body whose `errors` have a message, the field in dots, and help. */
import { Refusal } from '#base'
import { type FieldNames, type RefuseField, renameFields, usualStatuses } from '#vendors'

/** A refusal with its own HTTP status; `field` as SendGrid writes it, such as `personalizations.0.to`. */
export class SendGridRefusal extends Refusal {
  readonly httpStatus: number
  readonly fieldInDots: string | null

  constructor(httpStatus: number, message: string, field: string | null = null, suggestion?: string) {
    super(httpStatus === 404 ? 'not_found' : 'validation_error', { message, ...(suggestion === undefined ? {} : { suggestion }) })
    this.httpStatus = httpStatus
    this.fieldInDots = field
  }
}

const statuses: typeof usualStatuses = { ...usualStatuses, invalid_content_type: 415 }

/** Postrider's names of fields, and SendGrid's. */
const fieldNames: FieldNames = [
  [/^replyTo\b/, 'reply_to'],
  [/^(?:html|text)\b/, 'content'],
  [/^tag\b/, 'categories'],
  [/^metadata\b/, 'custom_args'],
  [/^tracking\b/, 'tracking_settings'],
  [/^(attachments.*)\bcontentType\b/, '$1type'],
  [/^(attachments.*)\bcontentId\b/, '$1content_id'],
]

const elementPrefix = /^emails\[(\d+)\]\./
const inDots = (path: string) => path.replace(/\[(\d+)\]/g, '.$1')
const renamed = (text: string) => renameFields(text, fieldNames)

/** The recipients are those of a personalization; every other field is of the whole mail. */
function fieldOf({ field }: Refusal): string | null {
  if (field === undefined) return null
  const element = elementPrefix.exec(field)
  const own = field.replace(elementPrefix, '')
  return inDots(/^(?:to|cc|bcc)\b/.test(own) ? `personalizations.${element?.[1] ?? 0}.${own}` : renamed(own))
}

/** The HTTP status and the body of a refusal. */
export function sendgridFailure(refusal: Refusal): { status: number; body: string } {
  const isOwn = refusal instanceof SendGridRefusal
  const error = {
    message: renamed(refusal.message),
    field: isOwn ? refusal.fieldInDots : fieldOf(refusal),
    help: isOwn && !refusal.hasOwnSuggestion ? null : refusal.suggestion,
  }
  return { status: isOwn ? refusal.httpStatus : (statuses[refusal.code] ?? 400), body: JSON.stringify({ errors: [error] }) }
}

const page = 'docs/sendgrid-api.md lists the fields'

/** Refuses one field of a request. */
export const refuseSendGridField: RefuseField = (path, problem, kind) =>
  new SendGridRefusal(400, `${inDots(path)} ${problem}`, inDots(path), kind === 'not served' ? page : undefined)
