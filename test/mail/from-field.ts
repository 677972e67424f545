/** Postrider's reading of a From field, by the path of a raw message. */
import { prepareRaw, readFields, readRaw } from '#mail'

export interface Held {
  address: string
  /** The field's value as sent: a bare line end in it ended the field. */
  sent: string
}

/** Undefined when the field is refused. */
export function heldFrom(field: string): Held | undefined {
  const octets = Buffer.from(`From: ${field}\r\nSubject: x\r\n\r\n`)
  const facts = readRaw(octets)
  if (typeof facts === 'string') return undefined
  const fields = readFields(prepareRaw(octets, { dateMs: 0, messageId: '<ours@own.example>' }).octets) ?? []
  const [from] = fields.filter(({ name }) => name.toLowerCase() === 'from')
  return { address: facts.from.address.text, sent: Buffer.from(from?.value ?? '', 'latin1').toString() }
}
