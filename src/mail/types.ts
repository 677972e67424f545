/** What a message is made from, and what comes out. */
import type { Mailbox } from './address.ts'

export interface Attachment {
  filename: string
  contentType: string
  content: Buffer
  /** The part is inline, and html refers to it by `cid:`. */
  contentId?: string | undefined
}

export interface MessageParts {
  from: Mailbox
  /** Bare addresses. */
  to: string[]
  cc: string[]
  replyTo?: string | undefined
  subject: string
  dateMs: number
  /** With angle brackets. */
  messageId: string
  html?: string | undefined
  text?: string | undefined
  headers: readonly (readonly [name: string, value: string])[]
  attachments: readonly Attachment[]
  /** The same parts and seed give the same octets. */
  boundarySeed: string
}

export interface BuiltMessage {
  octets: Buffer
  /** Some octet is over 127. */
  needs8bit: boolean
  /** A header holds characters that are not ASCII (RFC 6532). */
  needsSmtpUtf8: boolean
}
