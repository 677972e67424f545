/** Reads the parameters of `/api/v1/messages/message` and `/api/v1/messages/deliveries`. */
import { emailIdTimeMs } from '#base'
import { PostalRefusal, parameterError } from './envelope.ts'
import { isBlank, type Parameters } from './parameters.ts'

export const expansions = [
  'status',
  'details',
  'inspection',
  'plain_body',
  'html_body',
  'attachments',
  'headers',
  'raw_message',
  'activity_entries',
] as const
export type PostalExpansion = (typeof expansions)[number]

export interface MessageCall {
  /** The number that Postal's callers know as `id`, or the email's id, which they know as `token`. */
  wanted: { number: number } | { emailId: string }
  expansions: ReadonlySet<PostalExpansion>
}

const wholeNumber = /^\d{1,15}$/
const noSuchMessage = 'No message found matching provided ID'

/** Refuses an absent `id`, and one that no message can have with `MessageNotFound`. Unknown expansions are ignored, as in Postal. */
export function readMessageCall(parameters: Parameters): MessageCall {
  const { id, _expansions: wanted } = parameters
  if (isBlank(id)) throw parameterError('`id` parameter is required but is missing')
  return { wanted: messageWanted(id), expansions: expansionsOf(wanted) }
}

export const messageNotFound = (id: unknown): PostalRefusal =>
  new PostalRefusal('MessageNotFound', noSuchMessage, {
    id: typeof id === 'string' ? id.slice(0, 100) : typeof id === 'number' ? id : null,
  })

function messageWanted(id: unknown): MessageCall['wanted'] {
  const text = typeof id === 'number' ? String(id) : id
  if (typeof text !== 'string') throw messageNotFound(id)
  if (wholeNumber.test(text)) return { number: Number(text) }
  if (emailIdTimeMs(text) === undefined) throw messageNotFound(id)
  return { emailId: text }
}

function expansionsOf(value: unknown): ReadonlySet<PostalExpansion> {
  if (value === true) return new Set(expansions)
  return new Set(Array.isArray(value) ? expansions.filter((one) => value.includes(one)) : [])
}
