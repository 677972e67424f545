/**
 * The content shared by the emails of one submission, stored once as compressed JSON until its retention ends. The same octets can be
 * rebuilt from it at any time, so the raw form shown by the API is the message as sent.
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
  /** Addresses, or mailboxes as a header field has them. */
  to: string[]
  cc: string[]
  /** Addresses or mailboxes, as the header field has them. */
  replyTo?: string
  subject: string
  html?: string
  text?: string
  headers: [name: string, value: string][]
  attachments: StoredAttachment[]
}

export interface RawContent {
  kind: 'raw'
  /** Base64 of the submitted message. */
  raw: string
  /** A copy of a received message: its ARC chain is sent too. */
  keepsArc?: true
}

export type DkimSigning = { domainId: number; withEd25519: boolean } | { platform: string }

/** The settings for counting an email's opens and clicks. */
export interface Tracking {
  /** Scheme and track domain, the beginning of the links. */
  origin: string
  clicks: boolean
  opens: boolean
  /** Host names whose links, including those of subdomains, are not rewritten. */
  excluded: string[]
}

export interface Content {
  message: PartsContent | RawContent
  messageId: string
  /** The time in its Date field and its signatures; of a scheduled email, the scheduled time. */
  acceptedAtMs: number
  /** The domain of the envelope senders, one for each recipient; null for the null reverse-path. */
  returnPathDomain: string | null
  /** A trace header at the top identifies each recipient's email; absent: no trace header. */
  marked?: true
  /** The signing domain, decided at acceptance: one of the tenant's, or the installation's own; null: unsigned. */
  signing: DkimSigning | null
  /** Also decided at acceptance, so that a retry and the raw form have the same octets. Absent: not tracked. */
  tracking?: Tracking
  /** The Feedback-ID that is added to a raw message. */
  feedbackId?: string
  /** Scheme and host of the one-click unsubscribe link, if the sender requested one. */
  unsubscribe?: string
}

/** More than a submission can have after decompression (14 MiB of attachments in base64, html, text and recipients). */
const largestContentOctets = 96 * 1024 * 1024
/** Smaller contents are not worth compressing. */
const minCompressedOctets = 2048
/** The fastest level: higher ones cost more CPU than the saved octets are worth. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 }
/** Most contents are decompressed in one chunk of this size. */
const chunkSize = 16_384
/** Half the content's size usually holds the compressed result; for a large content, at most this much at a time. */
const largestChunkOctets = 65_536
/** A zstd frame begins with 0x28, JSON with a brace. */
const brace = 0x7b

export function encodeContent(content: Content): Buffer {
  const json = Buffer.from(JSON.stringify(content))
  if (json.length < minCompressedOctets) return json
  // With the size given, zstd allocates memory for that size instead of half a megabyte: a third of the time for 10 KB, and less to
  // decompress.
  return zstdCompressSync(json, { params, pledgedSrcSize: json.length, chunkSize: Math.min(json.length >> 1, largestChunkOctets) })
}

export function decodeContent(body: Uint8Array): Content {
  const json =
    body[0] === brace
      ? Buffer.from(body.buffer, body.byteOffset, body.byteLength)
      : zstdDecompressSync(body, { maxOutputLength: largestContentOctets, ...(body.length <= chunkSize ? { chunkSize } : {}) })
  return JSON.parse(json.toString()) as Content
}
