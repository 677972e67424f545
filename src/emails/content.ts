/**
 * What the emails of one submission share: kept once, as compressed JSON, until the content's retention ends. From it the same
 * octets can be built again at any time, so the raw form shown by the API is what was sent.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

export interface StoredAttachment {
  filename: string
  contentType: string
  /** Base64. */
  content: string
  contentId?: string
}

export interface PartsContent {
  kind: 'parts'
  from: string
  to: string[]
  cc: string[]
  replyTo?: string
  subject: string
  html?: string
  text?: string
  headers: [name: string, value: string][]
  attachments: StoredAttachment[]
}

export interface RawContent {
  kind: 'raw'
  /** Base64 of the message as it was given. */
  raw: string
}

export type Signing = { domainId: number; withEd25519: boolean } | { platform: string }

/** How the opens and clicks of an email are counted. */
export interface Tracking {
  /** Scheme and track domain, as links begin. */
  origin: string
  clicks: boolean
  opens: boolean
  /** Host names whose links, and those below them, are left as they are. */
  excluded: string[]
}

export interface Content {
  message: PartsContent | RawContent
  messageId: string
  acceptedAtMs: number
  /** Of the envelope senders, one for each recipient; null for the null reverse-path. */
  returnPathDomain: string | null
  /** A field on top names each recipient's email; absent: none does. */
  marked?: true
  /** Which domain signs, decided at acceptance: one of the tenant's, or the platform's own; null: nobody. */
  signing: Signing | null
  /** Decided at acceptance too, so that a retry and the raw form shown later are the same octets. Absent: not tracked. */
  tracking?: Tracking
  /** Scheme and host of the link by which a mailbox provider unsubscribes the recipient, when the sender asked for one. */
  unsubscribe?: string
}

/** More than a submission can weigh after decompression (14 MiB of attachments in base64, html, text and recipients). */
const largestContentOctets = 96 * 1024 * 1024
/** Below this there is nothing to win. */
const leastCompressedOctets = 2048
/** The fastest level: higher ones cost more CPU than the octets they save. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 }
/** Most contents are opened in one piece of this. */
const chunkSize = 16_384
/** Half of a content is room for what it is compressed to, mostly; of a large one this at a time. */
const largestChunkOctets = 65_536
/** A zstd frame begins with 0x28, JSON with a brace. */
const brace = 0x7b

export function encodeContent(content: Content): Buffer {
  const json = Buffer.from(JSON.stringify(content))
  if (json.length < leastCompressedOctets) return json
  // Told its size, zstd takes memory for that and not for half a megabyte: a third of the time for 10 KB, and less to open it again.
  return zstdCompressSync(json, { params, pledgedSrcSize: json.length, chunkSize: Math.min(json.length >> 1, largestChunkOctets) })
}

export function decodeContent(body: Uint8Array): Content {
  const json =
    body[0] === brace
      ? Buffer.from(body.buffer, body.byteOffset, body.byteLength)
      : zstdDecompressSync(body, { maxOutputLength: largestContentOctets, ...(body.length <= chunkSize ? { chunkSize } : {}) })
  return JSON.parse(json.toString()) as Content
}
