/** Reads Postrider's webhook bodies for the formats of other vendors, which take their members from it. */

export type Members = Readonly<Record<string, unknown>>

/** The parts of a body in Postrider's form, for an event of an email or of a suppression list. */
export interface OwnBody {
  event: string
  /** Of the event for this webhook. */
  uuid: string
  /** Of the event. */
  at: Date
  payload: Members
  /** The email; empty if the event is not about an email. */
  message: Members
  metadata: Readonly<Record<string, string>>
}

/** Empty for a value that is not an object. */
export const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : {}

export const textAt = (members: Members, name: string): string => {
  const value = members[name]
  return typeof value === 'string' ? value : ''
}

/** A time in seconds. */
export const timeAt = (members: Members, name: string): Date | undefined => {
  const value = members[name]
  return typeof value === 'number' ? new Date(value * 1000) : undefined
}

/**
 * Whether mail was held because its recipient is suppressed. Other holds end when the operator ends them, and do not concern the address. An
 * event without a recorded reason, such as a replay, counts only if its details are the sentence of contract section 7.8.
 */
export function isHeldBySuppression({ event, payload, message }: OwnBody, holdReason: string | undefined): boolean {
  if (event !== 'MessageHeld') return false
  if (holdReason !== undefined) return holdReason === 'suppressed'
  return textAt(payload, 'details') === `${textAt(message, 'to')} is on the suppression list`
}

/** The parts of a body that is not yet text. */
export function ownBodyFrom({ event, timestamp, payload }: { event: string; timestamp: number; payload: Members }): Omit<OwnBody, 'uuid'> {
  const metadata = Object.entries(membersOf(payload.metadata)).filter((one): one is [string, string] => typeof one[1] === 'string')
  return {
    event,
    at: new Date(timestamp * 1000),
    payload,
    message: membersOf(payload.message ?? payload.original_message),
    metadata: Object.fromEntries(metadata),
  }
}

/** undefined: the body is not in Postrider's form, because it was already in that of a vendor. */
export function ownBodyOf(body: Buffer): OwnBody | undefined {
  const { event, timestamp, uuid, payload } = membersOf(JSON.parse(body.toString()))
  if (typeof event !== 'string' || typeof timestamp !== 'number') return undefined
  return { ...ownBodyFrom({ event, timestamp, payload: membersOf(payload) }), uuid: typeof uuid === 'string' ? uuid : '' }
}

/**
 * An email that failed and was not refused: a cancelled, expired or deleted one. It does not concern the address. A refusal has a class or the
 * server's reply, and a failure of DNS or of a connection has a class.
 */
export const isUnsent = ({ event, payload }: Pick<OwnBody, 'event' | 'payload'>): boolean =>
  event === 'MessageDeliveryFailed' &&
  ['', 'unclassified'].includes(textAt(payload, 'classification')) &&
  textAt(payload, 'output').trim() === ''

/** The facts of an event that its own body lacks. */
export interface VendorFacts {
  /** Of a MessageHeld; undefined: not recorded. */
  holdReason?: string | undefined
  /** The event suppressed its recipient. */
  isSuppressed?: boolean | undefined
}

/** A report of a bounce that does not concern the address, such as a full mailbox: receivers must not suppress the address. */
export const isPassingBounce = ({ event }: Pick<OwnBody, 'event'>, { isSuppressed = false }: VendorFacts): boolean =>
  event === 'MessageBounced' && !isSuppressed
