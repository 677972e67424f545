/** Finds how large a stored content is, before it is loaded and decoded. */
import { type Queryable, sql } from '#db'
import type { Email } from './email-record.ts'

export interface StoredContent {
  /** The size of its JSON in octets, to which the time for decoding and the memory are proportional. */
  jsonOctets: number
  /** The compressed content, if it is small as stored. */
  body: Buffer | undefined
}

/** A zstd frame's magic number (RFC 8878 section 3.1.1). */
const frameMagic = 0xfd2fb528
/** The frame's header, at most. */
const headOctets = 18

const storedContent = sql<{ storedOctets: number; head: Buffer; body: Buffer | null }>`
  select octet_length(body) as "storedOctets", substring(body for 18) as head,
         case when octet_length(body) <= 65536 then body end as body
  from contents
  where tenant_id = $1 and id = $2`

/** Undefined after the content's retention. */
export async function measureContent(on: Queryable, email: Pick<Email, 'tenantId' | 'contentId'>): Promise<StoredContent | undefined> {
  const found = await on.first(storedContent, [email.tenantId, email.contentId])
  return found && { jsonOctets: jsonOctets(found.head, found.storedOctets), body: found.body ?? undefined }
}

/**
 * The octets of a stored content's JSON: those before compression, which its frame states (RFC 8878 section 3.1.1.1), or of a content that is
 * not compressed, `storedOctets`. Infinity if the frame does not state them. `head`: its first 18 octets, or all.
 */
export function jsonOctets(head: Buffer, storedOctets: number): number {
  if (head.length < headOctets || head.readUInt32LE(0) !== frameMagic) return storedOctets
  const descriptor = head.readUInt8(4)
  const isSingleSegment = (descriptor & 0x20) !== 0
  const dictionaryIdOctets = [0, 1, 2, 4][descriptor & 3] as number
  const at = (isSingleSegment ? 5 : 6) + dictionaryIdOctets
  switch (descriptor >> 6) {
    case 0:
      return isSingleSegment ? head.readUInt8(at) : Number.POSITIVE_INFINITY
    case 1:
      return head.readUInt16LE(at) + 256
    case 2:
      return head.readUInt32LE(at)
    default:
      return Number(head.readBigUInt64LE(at))
  }
}
