/** SES's errors: a name and a message, in the header `x-amzn-errortype` and JSON (version 2) or in XML (version 1). */
import { Refusal, type RefusalCode } from '#base'
import { type FieldNames, type RefuseField, renameFields } from '#vendors'
import { xmlError } from './query-xml.ts'

/** The protocols: REST with JSON (version 2), and forms with XML (version 1, the AWS Query protocol). */
type SesProtocol = 'rest' | 'query'

type Named = readonly [name: string, status: number]

/** Each error by its name and HTTP status in both protocols. */
const errors = {
  badRequest: { rest: ['BadRequestException', 400], query: ['InvalidParameterValue', 400] },
  messageRejected: { rest: ['MessageRejected', 400], query: ['MessageRejected', 400] },
  notFound: { rest: ['NotFoundException', 404], query: ['InvalidParameterValue', 400] },
  unknownAction: { rest: ['UnknownOperationException', 404], query: ['InvalidAction', 400] },
  notJson: { rest: ['SerializationException', 400], query: ['MalformedInput', 400] },
  invalidToken: { rest: ['InvalidNextTokenException', 400], query: ['InvalidParameterValue', 400] },
  accountSuspended: { rest: ['AccountSuspendedException', 400], query: ['AccountSendingPausedException', 400] },
  quotaExceeded: { rest: ['LimitExceededException', 400], query: ['LimitExceeded', 400] },
  throttled: { rest: ['TooManyRequestsException', 429], query: ['Throttling', 400] },
  noSignature: { rest: ['MissingAuthenticationTokenException', 403], query: ['MissingAuthenticationToken', 403] },
  incompleteSignature: { rest: ['IncompleteSignatureException', 403], query: ['IncompleteSignature', 403] },
  unknownKey: { rest: ['UnrecognizedClientException', 403], query: ['InvalidClientTokenId', 403] },
  wrongSignature: { rest: ['InvalidSignatureException', 403], query: ['SignatureDoesNotMatch', 403] },
  accessDenied: { rest: ['AccessDeniedException', 403], query: ['AccessDenied', 403] },
  internal: { rest: ['InternalServiceErrorException', 500], query: ['InternalFailure', 500] },
} as const satisfies Record<string, Readonly<Record<SesProtocol, Named>>>

export type SesError = keyof typeof errors

/** The refusals of signatures have the code of a wrong key, so that the log of refusals shows them as such. */
const ofKeys: readonly SesError[] = ['noSignature', 'incompleteSignature', 'unknownKey', 'wrongSignature']

/** A refusal with its own error of SES's. */
export class SesRefusal extends Refusal {
  readonly error: SesError

  constructor(error: SesError, message: string) {
    super(ofKeys.includes(error) ? 'invalid_api_key' : error === 'notFound' ? 'not_found' : 'validation_error', { message })
    this.error = error
  }
}

/** All others are `badRequest`. */
const errorOfCode: Readonly<Partial<Record<RefusalCode, SesError>>> = {
  authentication_required: 'noSignature',
  invalid_api_key: 'unknownKey',
  expired_api_key: 'unknownKey',
  permission_denied: 'accessDenied',
  credential_on_hold: 'accessDenied',
  tenant_suspended: 'accountSuspended',
  tenant_archived: 'accountSuspended',
  domain_not_verified: 'messageRejected',
  invalid_raw_message: 'messageRejected',
  sandbox_recipient_not_allowed: 'messageRejected',
  sandbox_limit_exceeded: 'quotaExceeded',
  rate_limit_exceeded: 'throttled',
  not_found: 'notFound',
  invalid_json: 'notJson',
  internal_error: 'internal',
}

/** Postrider's names of fields, and SES's. */
const fieldNames: FieldNames = [
  [/^from\b/, 'FromEmailAddress'],
  [/^to\b/, 'Destination.ToAddresses'],
  [/^cc\b/, 'Destination.CcAddresses'],
  [/^bcc\b/, 'Destination.BccAddresses'],
  [/^replyTo\b/, 'ReplyToAddresses'],
  [/^subject\b/, 'Subject.Data'],
  [/^html\b/, 'Body.Html.Data'],
  [/^text\b/, 'Body.Text.Data'],
  [/^headers\b/, 'Headers'],
  [/^(attachments.*)\bcontentType\b/, '$1ContentType'],
  [/^(attachments.*)\bcontentId\b/, '$1ContentId'],
  [/^(attachments.*)\bfilename\b/, '$1FileName'],
  [/^(attachments.*)\bcontent\b/, '$1RawContent'],
  [/^attachments\b/, 'Attachments'],
  [/^rawMessage\b/, 'Raw.Data'],
  [/^metadata\b/, 'EmailTags'],
  [/^tag\b/, 'ConfigurationSetName'],
]

function messageOf(refusal: Refusal): string {
  const message = renameFields(refusal.message, fieldNames)
  // Programs search for SES's sentence.
  return refusal.code === 'domain_not_verified' ? `Email address is not verified. ${message}` : message
}

const jsonType = 'application/json; charset=utf-8'
export const xmlType = 'text/xml; charset=utf-8'

/** HTTP status, headers and body of a refusal. `isUnknownPath`: the request is for no endpoint. */
export function sesFailure(refusal: Refusal, { protocol, requestId, isUnknownPath }: SesFailureFacts): SesFailure {
  const isUnknown = isUnknownPath && refusal.code === 'not_found'
  const error = refusal instanceof SesRefusal ? refusal.error : isUnknown ? 'unknownAction' : (errorOfCode[refusal.code] ?? 'badRequest')
  const [name, status] = errors[error][protocol]
  const message = messageOf(refusal)
  return protocol === 'rest'
    ? { status, type: jsonType, headers: { 'x-amzn-errortype': name }, body: JSON.stringify({ message }) }
    : { status, type: xmlType, headers: {}, body: xmlError({ name, message, requestId, isOfSender: status < 500 }) }
}

export interface SesFailureFacts {
  protocol: SesProtocol
  requestId: string
  isUnknownPath: boolean
}

export interface SesFailure {
  status: number
  type: string
  headers: Readonly<Record<string, string>>
  body: string
}

/** Refuses one field of a request. */
export const refuseSesField: RefuseField = (path, problem, kind) =>
  new SesRefusal('badRequest', `${path} ${problem}${kind === 'not served' ? ': docs/ses-api.md lists the fields' : ''}`)
