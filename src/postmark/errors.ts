/** Postmark's errors: an HTTP status, and a body of `ErrorCode` and `Message`. */
import { Refusal, type RefusalCode } from '#base'
import { type FieldNames, type RefuseField, renameFields } from '#vendors'

/** A refusal with its own code of Postmark's; `status` is its HTTP status. */
export class PostmarkRefusal extends Refusal {
  readonly errorCode: number
  readonly httpStatus: number

  constructor(errorCode: number, message: string, httpStatus = 422) {
    super(httpStatus === 404 ? 'not_found' : 'validation_error', { message })
    this.errorCode = errorCode
    this.httpStatus = httpStatus
  }
}

type Answer = readonly [status: number, errorCode: number]

const badToken: Answer = [401, 10]
const invalidEmail: Answer = [422, 300]

const answers: Readonly<Partial<Record<RefusalCode, Answer>>> = {
  authentication_required: badToken,
  invalid_api_key: badToken,
  expired_api_key: badToken,
  permission_denied: badToken,
  credential_on_hold: badToken,
  tenant_suspended: [422, 412],
  tenant_archived: [422, 412],
  domain_not_verified: [422, 400],
  sandbox_recipient_not_allowed: [422, 412],
  sandbox_limit_exceeded: [422, 405],
  rate_limit_exceeded: [429, 429],
  not_found: [404, 404],
  invalid_json: [422, 402],
  invalid_content_type: [422, 409],
  payload_too_large: [413, 413],
  internal_error: [500, 500],
}

const messages: Partial<Record<RefusalCode, string>> = {
  authentication_required: 'No Account or Server API tokens were supplied in the HTTP headers.',
  invalid_api_key: 'The Server Token you provided in the X-Postmark-Server-Token request header was invalid.',
}

/** Postrider's names of fields, and Postmark's. */
const fieldNames: FieldNames = [
  [/^from\b/, 'From'],
  [/^to\b/, 'To'],
  [/^cc\b/, 'Cc'],
  [/^bcc\b/, 'Bcc'],
  [/^replyTo\b/, 'ReplyTo'],
  [/^subject\b/, 'Subject'],
  [/^html\b/, 'HtmlBody'],
  [/^text\b/, 'TextBody'],
  [/^tag\b/, 'Tag'],
  [/^headers\b/, 'Headers'],
  [/^metadata\b/, 'Metadata'],
  [/^attachments\b/, 'Attachments'],
  [/^tracking\b/, 'TrackOpens or TrackLinks'],
]

/** The body of a refusal, as it also stands for one message of a batch. */
export function postmarkError(refusal: Refusal): { ErrorCode: number; Message: string } {
  const message = messages[refusal.code] ?? refusal.message.replace(/^emails\[\d+\]\./, '')
  const shown = renameFields(message, fieldNames)
  return { ErrorCode: answerOf(refusal)[1], Message: shown }
}

const answerOf = (refusal: Refusal): Answer =>
  refusal instanceof PostmarkRefusal ? [refusal.httpStatus, refusal.errorCode] : (answers[refusal.code] ?? invalidEmail)

export const postmarkFailure = (refusal: Refusal): { status: number; body: string } => ({
  status: answerOf(refusal)[0],
  body: JSON.stringify(postmarkError(refusal)),
})

/** Refuses one field of a message with 300, and an unknown one with 403. */
export const refusePostmarkField: RefuseField = (path, problem, kind) =>
  kind === 'not served'
    ? new PostmarkRefusal(403, `The '${path}' field ${problem}: docs/postmark-api.md lists the fields.`)
    : new PostmarkRefusal(300, `The '${path}' field ${problem}.`)

const inactiveAre = 'Inactive recipients are ones that have generated a hard bounce, a spam complaint, or a manual suppression.'

/** All recipients are suppressed. The SDKs read the addresses from the message. */
export const inactiveRefusal = (addresses: readonly string[]): PostmarkRefusal =>
  new PostmarkRefusal(
    406,
    `You tried to send to recipient(s) that have been marked as inactive. Found inactive addresses: ${addresses.join(', ')}. ${inactiveAre}`,
  )

/** Some recipients are suppressed; the message goes to the others. */
export const inactiveNote = (addresses: readonly string[]): string =>
  `Message OK, but will not deliver to these inactive addresses: ${addresses.join(', ')}. ${inactiveAre}`
