/**
 * The header fields, besides From, that mail programs display as the sender or reply to (RFC 5322 sections 3.6.2 and 3.6.6).
 */
import type { Address } from './address.ts'
import { isMailboxListField, parseMailboxField } from './mailbox-field.ts'
import type { RawField } from './parse-fields.ts'

/** The sender named by a field. */
export interface Originator {
  field: string
  address: Address
}

/** Each resend may add one more of each field. */
const maxResentFields = 10
const maxPerField: Record<string, number> = { sender: 1, 'reply-to': 1, 'resent-from': maxResentFields, 'resent-sender': maxResentFields }

/**
 * The originators of Sender, Resent-From and Resent-Sender; or the name of a field that occurs too often or that mail programs read
 * differently.
 */
export function readOriginators(fields: readonly RawField[]): Originator[] | { unreadable: string } {
  const counts = new Map<string, number>()
  const originators: Originator[] = []
  for (const { name: field, value } of fields) {
    const name = field.toLowerCase()
    const maximum = maxPerField[name]
    if (maximum === undefined) continue
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    if (name === 'reply-to') {
      if (count > maximum || !isMailboxListField(value)) return { unreadable: field }
      continue
    }
    const mailbox = count > maximum ? undefined : parseMailboxField(value)
    if (!mailbox) return { unreadable: field }
    originators.push({ field, address: mailbox.address })
  }
  return originators
}
