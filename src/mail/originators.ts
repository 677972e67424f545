/** The header fields besides From that readers show as who sent a message, or write their answer to (RFC 5322 sections 3.6.2 and 3.6.6). */
import type { Address } from './address.ts'
import type { RawField } from './fields.ts'
import { isMailboxListField, parseMailboxField } from './mailbox-field.ts'

/** Whom a field says the message is from. */
export interface Originator {
  field: string
  address: Address
}

/** Each time a message is sent again there may be one more of each. */
const mostResent = 10
const mostOf: Record<string, number> = { sender: 1, 'reply-to': 1, 'resent-from': mostResent, 'resent-sender': mostResent }

/** Those of Sender, Resent-From and Resent-Sender; or the name of a field that is given too often, or that not every reader reads alike. */
export function readOriginators(fields: readonly RawField[]): Originator[] | { unreadable: string } {
  const counts = new Map<string, number>()
  const originators: Originator[] = []
  for (const { name: field, value } of fields) {
    const name = field.toLowerCase()
    const most = mostOf[name]
    if (most === undefined) continue
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    if (name === 'reply-to') {
      if (count > most || !isMailboxListField(value)) return { unreadable: field }
      continue
    }
    const mailbox = count > most ? undefined : parseMailboxField(value)
    if (!mailbox) return { unreadable: field }
    originators.push({ field, address: mailbox.address })
  }
  return originators
}
