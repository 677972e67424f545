/**
 * Reads the parts of a received message that callers get: all work that needs neither database nor DNS, so that another thread can do it.
 * The result is bounded, for any message, and the raw message has the rest.
 */
import { arcChainOf, type FoundChain, type FoundSignature, type Sealable, sealableOf, signaturesOf } from '#dkim'
import { fieldText, parseMailbox, prepareRaw, type RawField, readFields, readMessage, readRaw } from '#mail'

export interface ReceivedField {
  name: string
  value: string
}

/** Facts from the header and the list of attachments. */
export interface ReceivedFacts {
  /** Address in From; '' unless it is exactly one. */
  from: string
  fromName: string
  to: string
  cc: string
  replyTo: string
  subject: string
  /** Without angle brackets. */
  messageId: string
  date: string
  /** In their order. */
  headers: ReceivedField[]
  attachments: { filename: string; contentType: string; sizeOctets: number }[]
  attachmentCount: number
  /** Received fields: servers that the message passed. */
  hops: number
  /** The value of Auto-Submitted (RFC 3834) in lower case, such as auto-replied; '' without one. */
  autoSubmitted: string
  /** A part is longer than the limit, or the message could not be read in time. */
  truncated: boolean
}

export interface ReceivedParts {
  facts: ReceivedFacts
  text: string | null
  html: string | null
  /** Message-IDs to which it replies, without angle brackets: In-Reply-To, then the newest of References. */
  references: string[]
  /** Checked without DNS; undefined: not read. */
  signatures: FoundSignature[] | undefined
  /** The chain of servers that forwarded it, checked without DNS, and the parts that a further one signs. Undefined: it gets no ARC set. */
  arc: { chain: FoundChain; sealable: Sealable } | undefined
}

const maxTextLength = 200_000
const maxHtmlLength = 500_000
const maxFields = 60
const maxValueLength = 500
const maxNameLength = 100
const maxAttachments = 50
const maxListLength = 2000
const maxReferences = 10
const maxSearched = 20_000
/** A copy has more fields and octets than the message, and a header over the limits of the reader could not be sent. */
const maxSealedFields = 900
const maxSealedOctets = 200_000

/** Printable and storable: no control characters except line ends and tabs, no unpaired surrogates. */
const plain = (text: string, longest: number): string =>
  text
    .slice(0, longest)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, ' ')
    .toWellFormed()

const oneLine = (text: string, longest: number) => plain(text.slice(0, longest), longest).replace(/\s+/g, ' ').trim()

export function readReceivedMail(octets: Buffer, atMs: number): ReceivedParts {
  const fields = readFields(octets) ?? []
  const { text, html, attachments } = readMessage(octets)
  const raw = (name: string) => fields.find((field) => field.name.toLowerCase() === name)?.value ?? ''
  const value = (name: string, longest = maxValueLength) => oneLine(fieldText(raw(name)), longest)
  const froms = fields.filter((field) => field.name.toLowerCase() === 'from')
  const from = froms.length === 1 ? parseMailbox(oneLine(fieldText(froms[0]?.value ?? ''), 1000)) : undefined
  const isCut = (part: string | undefined, longest: number) => part !== undefined && part.length > longest
  return {
    facts: {
      from: from?.address.text ?? '',
      fromName: oneLine(from?.name ?? '', maxValueLength),
      to: value('to', maxListLength),
      cc: value('cc', maxListLength),
      replyTo: value('reply-to', maxListLength),
      subject: value('subject'),
      messageId: idsIn(raw('message-id'))[0] ?? '',
      date: value('date', maxNameLength),
      headers: fields.slice(0, maxFields).map((field) => ({
        name: plain(field.name, maxNameLength),
        value: oneLine(fieldText(field.value.slice(0, maxListLength)), maxValueLength),
      })),
      attachments: attachments.slice(0, maxAttachments).map(({ filename, contentType, content }) => ({
        filename: oneLine(filename, 200),
        contentType: oneLine(contentType, maxNameLength),
        sizeOctets: content.length,
      })),
      attachmentCount: attachments.length,
      hops: fields.filter((field) => field.name.toLowerCase() === 'received').length,
      autoSubmitted: value('auto-submitted', maxNameLength).toLowerCase().replace(/;.*$/, '').trim(),
      truncated:
        isCut(text, maxTextLength) || isCut(html, maxHtmlLength) || fields.length > maxFields || attachments.length > maxAttachments,
    },
    text: text === undefined ? null : plain(text, maxTextLength),
    html: html === undefined ? null : plain(html, maxHtmlLength),
    references: [...new Set([...idsIn(raw('in-reply-to')), ...idsIn(raw('references')).reverse()])].slice(0, maxReferences),
    signatures: signaturesOf(octets, atMs),
    arc: arcOf(octets, fields, atMs),
  }
}

/** Signs the message as delivery will send it (`prepareRaw`), without the fields that delivery adds. */
function arcOf(octets: Buffer, fields: readonly RawField[], atMs: number): ReceivedParts['arc'] {
  const length = fields.reduce((sum, { name, value }) => sum + name.length + value.length + 3, 0)
  if (fields.length > maxSealedFields || length > maxSealedOctets) return undefined
  const facts = readRaw(octets)
  if (typeof facts === 'string') return undefined
  const has = (wanted: string) => fields.some(({ name }) => name.toLowerCase() === wanted)
  const added = ['date', 'mime-version'].filter((name) => !has(name))
  const without = facts.messageId === undefined ? [...added, 'message-id'] : added
  const { octets: sent } = prepareRaw(octets, { dateMs: atMs, messageId: facts.messageId ?? '', keepsArc: true })
  const sealable = sealableOf(sent, without)
  return sealable && { chain: arcChainOf(octets, atMs), sealable }
}

/** A message whose parts could not be read within the limits. */
export const unreadParts = (): ReceivedParts => ({
  facts: {
    from: '',
    fromName: '',
    to: '',
    cc: '',
    replyTo: '',
    subject: '',
    messageId: '',
    date: '',
    headers: [],
    attachments: [],
    attachmentCount: 0,
    hops: 0,
    autoSubmitted: '',
    truncated: true,
  },
  text: null,
  html: null,
  references: [],
  signatures: undefined,
  arc: undefined,
})

/** Message-IDs in a field's value, without angle brackets (RFC 5322 section 3.6.4). */
const idsIn = (value: string): string[] => {
  const ids: string[] = []
  for (const piece of value.slice(-maxSearched).split('<').slice(1)) {
    const end = piece.indexOf('>')
    const id = piece.slice(0, Math.max(0, end))
    if (id !== '' && id.length <= 250 && !/\s/.test(id)) ids.push(plain(id, 250))
  }
  return ids
}
