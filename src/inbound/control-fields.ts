/** Reads the client's control fields in the message header (contract section 15); they are removed before sending. */
import { fieldText, type RawField } from '#mail'
import { ReplyError } from './smtp-replies.ts'

export const controlPrefix = 'x-postrider-'
/** Postal's own control field, which it sends along. */
export const postalTagField = 'X-Postal-Tag'

/** SendGrid's control field, lower case. It may list other recipients and their data, so that no recipient may get it. */
export const sendgridField = 'x-smtpapi'

export interface ControlFields {
  tag: string | undefined
  metadata: Record<string, string> | null
  idempotencyKey: string | undefined
}

const maxTagLength = 1000
const keyForm = /^[\w\-.~]{1,255}$/

const refused = (text: string) => new ReplyError(554, '5.6.0', text)

/** Throws a Reply if a control field is invalid. Acceptance validates metadata. `otherTag`: a further field that may have the tag. */
export function readControlFields(fields: readonly RawField[], otherTag?: string): ControlFields {
  const valueOf = (name: string): string | undefined => {
    const [value, second] = fields.filter((field) => field.name.toLowerCase() === name.toLowerCase()).map((field) => fieldText(field.value))
    if (second !== undefined) throw refused(`${name} occurs more than once`)
    return value
  }
  const tag = valueOf('X-Postrider-Tag') ?? (otherTag === undefined ? undefined : valueOf(otherTag))
  if (tag !== undefined && [...tag].length > maxTagLength) throw refused(`X-Postrider-Tag is longer than ${maxTagLength} characters`)
  const idempotencyKey = valueOf('X-Postrider-Idempotency-Key')
  if (idempotencyKey !== undefined && !keyForm.test(idempotencyKey))
    throw refused('X-Postrider-Idempotency-Key must have 1 to 255 of the characters A-Z a-z 0-9 _ - . ~')
  return { tag, metadata: metadataIn(valueOf('X-Postrider-Metadata')), idempotencyKey }
}

/**
 * Refuses a message whose SendGrid control field has instructions: without them it would go to other recipients, or with other text, than the
 * client wants. Libraries also write an empty one.
 */
export function refuseSendGridControl(fields: readonly RawField[]): void {
  const found = fields.some(({ name, value }) => name.toLowerCase() === sendgridField && !/^(?:\{\s*\})?$/.test(fieldText(value)))
  if (found) throw refused('X-SMTPAPI is not served: send one message for each recipient, or use the HTTP API of SendGrid')
}

function metadataIn(text: string | undefined): Record<string, string> | null {
  if (text === undefined) return null
  const refuse = () => refused('X-Postrider-Metadata is not a JSON object of strings')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw refuse()
  }
  if (value === null) return null
  if (typeof value !== 'object' || Array.isArray(value) || !Object.values(value).every((one) => typeof one === 'string')) throw refuse()
  return value as Record<string, string>
}
