/**
 * Unpacks a report: gzip (RFC 1952), zip, or neither. Bounded in octets and in the ratio of unpacked to packed octets, so that an archive
 * that unpacks to gigabytes costs no more than the bound.
 */
import { crc32, gunzipSync, inflateRawSync } from 'node:zlib'
import { UnreadableReport } from './unreadable-report.ts'

/** Larger than the reports of the largest senders. */
const maxReportOctets = 20_971_520
/** XML of many similar records packs to about a fortieth. */
const maxRatio = 200
const smallOctets = 1_048_576
/** An archive has one report; more entries add no information. */
const maxEntries = 20
const maxZipComment = 65_535

export const isGzip = (octets: Buffer): boolean => octets[0] === 0x1f && octets[1] === 0x8b
export const isZip = (octets: Buffer): boolean => octets.length >= 22 && octets.readUInt32LE(0) === 0x04034b50

const limitFor = (packedOctets: number) => Math.min(maxReportOctets, Math.max(smallOctets, packedOctets * maxRatio))

/** The octets of the report. Throws UnreadableReport. */
export function unpackReport(octets: Buffer): Buffer {
  if (isGzip(octets)) return unpacked(octets.length, () => gunzipSync(octets, { maxOutputLength: limitFor(octets.length) }))
  if (isZip(octets)) return unzip(octets)
  if (octets.length > maxReportOctets) throw new UnreadableReport('is too large')
  return octets
}

function unpacked(packedOctets: number, work: () => Buffer): Buffer {
  try {
    return work()
  } catch (error) {
    const isLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    throw new UnreadableReport(isLarge ? `unpacks to more than ${limitFor(packedOctets)} octets` : 'is packed incorrectly')
  }
}

interface Entry {
  name: string
  flags: number
  method: number
  crc: number
  packedOctets: number
  headerAt: number
}

/** By the central directory: the sizes in the headers of the entries may be missing. */
function unzip(octets: Buffer): Buffer {
  const all = entriesOf(octets)
  const entry = all.find(({ name }) => /\.(?:xml|json)$/i.test(name)) ?? all.find(({ name }) => !name.endsWith('/'))
  if (!entry) throw new UnreadableReport('is an archive without a file')
  if ((entry.flags & 1) !== 0) throw new UnreadableReport('is an encrypted archive')
  if (entry.headerAt + 30 > octets.length || octets.readUInt32LE(entry.headerAt) !== 0x04034b50)
    throw new UnreadableReport('is packed incorrectly')
  const start = entry.headerAt + 30 + octets.readUInt16LE(entry.headerAt + 26) + octets.readUInt16LE(entry.headerAt + 28)
  if (start + entry.packedOctets > octets.length) throw new UnreadableReport('is packed incorrectly')
  const packed = octets.subarray(start, start + entry.packedOctets)
  if (entry.method !== 0 && entry.method !== 8) throw new UnreadableReport('is an archive with an unknown compression')
  const content =
    entry.method === 0 ? packed : unpacked(packed.length, () => inflateRawSync(packed, { maxOutputLength: limitFor(packed.length) }))
  if (crc32(content) !== entry.crc) throw new UnreadableReport('is packed incorrectly')
  return content
}

function entriesOf(octets: Buffer): Entry[] {
  const end = octets.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'), octets.length - 22)
  if (end < 0 || octets.length - end > 22 + maxZipComment) throw new UnreadableReport('is packed incorrectly')
  const entries: Entry[] = []
  let at = octets.readUInt32LE(end + 16)
  for (let left = Math.min(octets.readUInt16LE(end + 10), maxEntries); left > 0; left--) {
    if (at + 46 > end || octets.readUInt32LE(at) !== 0x02014b50) throw new UnreadableReport('is packed incorrectly')
    const nameLength = octets.readUInt16LE(at + 28)
    entries.push({
      name: octets.toString('latin1', at + 46, at + 46 + nameLength),
      flags: octets.readUInt16LE(at + 8),
      method: octets.readUInt16LE(at + 10),
      crc: octets.readUInt32LE(at + 16),
      packedOctets: octets.readUInt32LE(at + 20),
      headerAt: octets.readUInt32LE(at + 42),
    })
    at += 46 + nameLength + octets.readUInt16LE(at + 30) + octets.readUInt16LE(at + 32)
  }
  return entries
}
