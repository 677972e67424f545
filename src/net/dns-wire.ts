/**
 * DNS messages in the forms that updates need (RFC 1035 section 4.1): names, the data of six record types, and whole records with their data
 * as it stands. Records are read with unpacked names, so that their octets can be written into another message. Reading is bounded and linear.
 */
import ipaddr from 'ipaddr.js'

export const updateTypes = { A: 1, CNAME: 5, MX: 15, TXT: 16, AAAA: 28 } as const
export type UpdateType = keyof typeof updateTypes

const classes = { IN: 1, NONE: 254, ANY: 255 } as const
export type WireClass = keyof typeof classes
export const anyType = 255
export const soaType = 6

const typeNames = new Map<number, UpdateType>(Object.entries(updateTypes).map(([name, code]) => [code, name as UpdateType]))

const maxLabelOctets = 63
const maxNameOctets = 255
const maxStringOctets = 255
const maxHops = 128

export const u16 = (value: number): Buffer => Buffer.from([(value >> 8) & 0xff, value & 0xff])
export const u32 = (value: number): Buffer => {
  const octets = Buffer.alloc(4)
  octets.writeUInt32BE(value >>> 0)
  return octets
}

/** Lower case, unpacked; throws for text that is not a name. */
export function wireName(name: string): Buffer {
  const plain = name.toLowerCase().replace(/\.$/, '')
  if (plain === '') return Buffer.from([0])
  const labels = plain.split('.').map((label) => Buffer.from(label, 'latin1'))
  const octets = Buffer.concat([...labels.flatMap((label) => [Buffer.from([label.length]), label]), Buffer.from([0])])
  if (octets.length > maxNameOctets || labels.some(({ length }) => length === 0 || length > maxLabelOctets))
    throw new RangeError(`not a DNS name: ${name.slice(0, 300)}`)
  return octets
}

/** The data of a record, from the text that `postrider dns` shows. Throws for text that does not fit the type. */
export function wireData(type: UpdateType, text: string): Buffer {
  switch (type) {
    case 'A':
    case 'AAAA': {
      const address = ipaddr.parse(text)
      if ((address.kind() === 'ipv4') !== (type === 'A')) throw new RangeError(`not the address of an ${type} record: ${text}`)
      return Buffer.from(address.toByteArray())
    }
    case 'CNAME':
      return wireName(text)
    case 'MX': {
      const [, preference = '', exchange = ''] = /^(\d{1,5}) (\S+)$/.exec(text) ?? []
      if (preference === '' || Number(preference) > 65_535) throw new RangeError(`not an MX record: ${text.slice(0, 300)}`)
      return Buffer.concat([u16(Number(preference)), wireName(exchange)])
    }
    case 'TXT': {
      const octets = Buffer.from(text, 'latin1')
      const strings: Buffer[] = []
      for (let at = 0; at < octets.length || at === 0; at += maxStringOctets) {
        const string = octets.subarray(at, at + maxStringOctets)
        strings.push(Buffer.from([string.length]), string)
      }
      return Buffer.concat(strings)
    }
  }
}

interface ReadName {
  /** Lower case. */
  labels: string[]
  /** Where it ends in its message. */
  end: number
}

const textOf = ({ labels }: ReadName) => labels.join('.')
/** The root is `.`, as in a null MX (RFC 7505). */
const targetOf = (name: ReadName) => textOf(name) || '.'
const unpacked = ({ labels }: ReadName): Buffer =>
  Buffer.from(`${labels.map((label) => String.fromCharCode(label.length) + label).join('')}\0`, 'latin1')

/** Reads the name at `start`; throws for a name that points forwards, has too many hops, or is too long. */
function nameAt(message: Buffer, start: number): ReadName {
  const labels: string[] = []
  let [at, end, limit, length] = [start, -1, start, 1]
  for (let hops = 0; ; ) {
    const size = message.readUInt8(at)
    if (size === 0) return { labels, end: end < 0 ? at + 1 : end }
    if (size >= 0xc0) {
      const target = message.readUInt16BE(at) & 0x3fff
      if (end < 0) end = at + 2
      // Backwards only, so that every message ends.
      if (target >= limit || ++hops > maxHops) throw new RangeError('a compressed name does not end')
      at = target
      limit = target
      continue
    }
    if (size > maxLabelOctets) throw new RangeError('an unknown kind of label')
    length += size + 1
    if (at + 1 + size > message.length || length > maxNameOctets) throw new RangeError('a name is too long')
    labels.push(message.toString('latin1', at + 1, at + 1 + size).toLowerCase())
    at += size + 1
  }
}

export interface WireRecord {
  /** Lower case, without a final dot. */
  name: string
  type: number
  class: number
  ttlS: number
  /** With unpacked names. */
  data: Buffer
  /** Where the record begins in its message. */
  start: number
}

export interface WireMessage {
  id: number
  rcode: number
  isResponse: boolean
  isTruncated: boolean
  answers: WireRecord[]
  additionals: WireRecord[]
}

const headerOctets = 12

/** Throws for no DNS message. */
export function decodeMessage(octets: Buffer): WireMessage {
  const flags = octets.readUInt16BE(2)
  const [questions = 0, answers = 0, authorities = 0, additionals = 0] = [4, 6, 8, 10].map((at) => octets.readUInt16BE(at))
  // Before any is read: a record has at least 11 octets, a question 5.
  if (headerOctets + questions * 5 + (answers + authorities + additionals) * 11 > octets.length)
    throw new RangeError('the message counts more records than it holds')
  let at = headerOctets
  for (let nth = 0; nth < questions; nth++) at = nameAt(octets, at).end + 4
  const section = (count: number): WireRecord[] => {
    const records: WireRecord[] = []
    for (let nth = 0; nth < count; nth++) {
      const { record, end } = recordAt(octets, at)
      records.push(record)
      at = end
    }
    return records
  }
  const found = section(answers)
  section(authorities)
  return {
    id: octets.readUInt16BE(0),
    rcode: flags & 0xf,
    isResponse: (flags & 0x8000) !== 0,
    isTruncated: (flags & 0x200) !== 0,
    answers: found,
    additionals: section(additionals),
  }
}

function recordAt(octets: Buffer, start: number): { record: WireRecord; end: number } {
  const owner = nameAt(octets, start)
  const at = owner.end
  const type = octets.readUInt16BE(at)
  const size = octets.readUInt16BE(at + 8)
  const end = at + 10 + size
  if (end > octets.length) throw new RangeError('a record ends after its message')
  const raw = octets.subarray(at + 10, end)
  const record = { name: textOf(owner), type, class: octets.readUInt16BE(at + 2), ttlS: octets.readUInt32BE(at + 4), data: raw, start }
  if (type === updateTypes.CNAME) return { record: { ...record, data: unpacked(nameAt(octets, at + 10)) }, end }
  if (type !== updateTypes.MX) return { record, end }
  return { record: { ...record, data: Buffer.concat([raw.subarray(0, 2), unpacked(nameAt(octets, at + 12))]) }, end }
}

/** The text of a record's data, as `wireData` reads it; undefined for other types and for malformed data. */
export function textOfData(type: number, data: Buffer): string | undefined {
  const kind = typeNames.get(type)
  try {
    if (kind === 'A' || kind === 'AAAA') return ipaddr.fromByteArray([...data]).toString()
    if (kind === 'CNAME') return targetOf(nameAt(data, 0))
    if (kind === 'MX') return `${data.readUInt16BE(0)} ${targetOf(nameAt(data, 2))}`
    return kind === 'TXT' ? textOfStrings(data) : undefined
  } catch {
    return undefined
  }
}

function textOfStrings(data: Buffer): string | undefined {
  const strings: string[] = []
  for (let at = 0; at < data.length; ) {
    const size = data.readUInt8(at)
    if (at + 1 + size > data.length) return undefined
    strings.push(data.toString('latin1', at + 1, at + 1 + size))
    at += 1 + size
  }
  return strings.join('')
}

export const wireRecord = (name: string, type: number, kind: WireClass, ttlS: number, data: Buffer): Buffer =>
  Buffer.concat([wireName(name), u16(type), u16(classes[kind]), u32(ttlS), u16(data.length), data])

/** `opcode` 0 is a query, 5 an update. The sections in the order of the header. */
export function wireMessage(
  id: number,
  opcode: 0 | 5,
  question: { name: string; type: number },
  sections: readonly Buffer[][] = [],
): Buffer {
  const flags = opcode << 11
  const counts = [0, 1, 2].map((nth) => u16(sections[nth]?.length ?? 0))
  const header = Buffer.concat([u16(id), u16(flags), u16(1), ...counts])
  return Buffer.concat([header, wireName(question.name), u16(question.type), u16(classes.IN), ...sections.flat()])
}
