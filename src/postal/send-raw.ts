/** Translates the parameters of `/api/v1/send/raw` to a raw submission. */
import type { RawSubmission } from '#accept'
import { fieldText, parseMailbox, readFields, readRaw } from '#mail'
import { withoutSpaces } from '#vendors'
import { PostalRefusal, parameterError } from './envelope.ts'
import { addressesParameter, isBlank, maxAddresses, type Parameters, textParameter } from './parameters.ts'

const maxAddressLength = 1000
const maxDataLength = 40_000_000
const maxTagLength = 255
const tagField = 'x-postal-tag'

const missing = (name: string) => parameterError(`\`${name}\` parameter is required but is missing`)

/**
 * Postal ignores `mail_from` when it sends: the From field decides the sender, and the envelope sender is a return path of its own. So the
 * address of From is the submission's sender. Throws a `PostalRefusal`, or a `Refusal` for a parameter error.
 */
export function readSendRaw(parameters: Parameters): RawSubmission {
  if (!Array.isArray(parameters.rcpt_to)) throw missing('rcpt_to')
  const given = addressesParameter(parameters, 'rcpt_to')
  if (given.length > maxAddresses) throw parameterError(`\`rcpt_to\` has more than ${maxAddresses} addresses`)
  const to = given.map((text) => parseMailbox(text)?.address.text ?? text)
  if (to.length === 0) throw new PostalRefusal('NoRecipients', 'There are no recipients defined to receive this message')
  if (isBlank(parameters.mail_from)) throw missing('mail_from')
  if (isBlank(parameters.data)) throw missing('data')
  const mailFrom = textParameter(parameters, 'mail_from', maxAddressLength) ?? ''
  const rawMessage = withoutSpaces(textParameter(parameters, 'data', maxDataLength) ?? '')
  const octets = Buffer.from(rawMessage, 'base64')
  const facts = readRaw(octets)
  const tag = readFields(octets)?.find(({ name }) => name.toLowerCase() === tagField)
  return {
    from: typeof facts === 'string' ? mailFrom : facts.from.address.text,
    to: [...new Set(to)],
    rawMessage,
    bounce: !isBlank(parameters.bounce),
    ...(tag ? { tag: fieldText(tag.value).slice(0, maxTagLength) } : {}),
  }
}
