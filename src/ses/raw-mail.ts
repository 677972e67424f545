/** Raw messages: sender and recipients from the request or else from the header, and SES's own header fields, which are not sent. */
import type { RawSubmission } from '#accept'
import { parseMailbox, readFields, readRaw, withoutFields } from '#mail'
import { splitAddresses } from '#vendors'
import { SesRefusal } from './errors.ts'
import { simulated } from './simulator-addresses.ts'

export interface RawMail {
  raw: RawSubmission
}

interface Given {
  from: string | undefined
  to: readonly string[]
  mode: 'live' | 'test'
  tag: string | null
  metadata: Record<string, string>
}

const maxRecipients = 50
/** Of a header field: empty groups do not count as recipients. */
const maxParts = 1000
/** Such as `undisclosed-recipients:;` (RFC 5322 section 3.4). */
const emptyGroup = /^[^<>@:;]*:\s*;$/
const recipientFields: readonly string[] = ['to', 'cc', 'bcc']
const ownPrefix = 'x-ses-'
const setField = 'x-ses-configuration-set'
const tagsField = 'x-ses-message-tags'
const maxSetLength = 64
/** Fifty tags of the longest names and values. */
const maxTagsLength = 26_000
const tagForm = /^\s*([A-Za-z0-9_.@-]{1,256})\s*=\s*([A-Za-z0-9_.@-]{1,256})\s*$/

/** `data`: base64. The parameters of the request take precedence over the header, as at SES. Throws a `SesRefusal`. */
export function rawMail(data: string, { from, to, mode, tag, metadata }: Given): RawMail {
  const octets = Buffer.from(data, 'base64')
  const fields = (readFields(octets) ?? []).map(({ name, value }) => ({ name: name.toLowerCase(), value }))
  const facts = readRaw(octets)
  const recipients = (to.length > 0 ? to : recipientsIn(fields, mode)).map((one) => parseMailbox(one)?.address.text ?? one)
  if (recipients.length === 0) throw new SesRefusal('badRequest', 'Missing final recipients: neither Destination nor the message has one')
  if (recipients.length > maxRecipients) throw tooManyRecipients()
  const own = fields.filter(({ name }) => name.startsWith(ownPrefix))
  return {
    raw: {
      from: from || (typeof facts === 'string' ? '' : facts.from.address.text),
      to: [...new Set(recipients)],
      // A text that is not base64 is refused by acceptance, which reads it as it is.
      rawMessage: own.length > 0 ? withoutFields(octets, ownPrefix).toString('base64') : data,
      tag: tag ?? setIn(own),
      metadata: { ...tagsIn(own), ...metadata },
      vendor: { replyTo: [], bounce: false },
    },
  }
}

const tooManyRecipients = () => new SesRefusal('messageRejected', `Recipient count exceeds ${maxRecipients}.`)

interface Field {
  name: string
  value: string
}

/** Those of the header; encoded words stay encoded, because a decoded name may contain a comma. One more than the most are enough. */
const recipientsIn = (fields: readonly Field[], mode: Given['mode']) =>
  fields
    .filter(({ name }) => recipientFields.includes(name))
    .flatMap(({ value }) => {
      const parts = splitAddresses(Buffer.from(value.replaceAll('\r\n', ''), 'latin1').toString(), maxParts)
      if (parts.length > maxParts) throw tooManyRecipients()
      return parts
    })
    .filter((one) => !emptyGroup.test(one))
    .slice(0, maxRecipients + 1)
    .map((one) => simulated(one, mode))

/** SES's own fields have ASCII values without encoded words. */
const unfolded = (value: string) => value.replaceAll('\r\n', '').trim()

function setIn(own: readonly Field[]): string | null {
  const set = own.find(({ name }) => name === setField)
  const name = set && unfolded(set.value)
  if (name === undefined || name === '') return null
  if (name.length > maxSetLength) throw new SesRefusal('badRequest', `the field ${setField} is longer than ${maxSetLength} characters`)
  return name
}

function tagsIn(own: readonly Field[]): Record<string, string> {
  const pairs: [string, string][] = []
  for (const { name, value } of own) {
    if (name === setField) continue
    if (name !== tagsField) throw new SesRefusal('badRequest', `the field ${name.slice(0, 60)} of the message is not served`)
    if (value.length > maxTagsLength)
      throw new SesRefusal('badRequest', `the field ${tagsField} is longer than ${maxTagsLength} characters`)
    for (const pair of unfolded(value).split(',')) {
      const [, key, text] = tagForm.exec(pair) ?? []
      if (key === undefined || text === undefined)
        throw new SesRefusal('badRequest', `the field ${tagsField} must have pairs such as name=value, name=value`)
      pairs.push([key, text])
    }
  }
  return Object.fromEntries(pairs)
}
