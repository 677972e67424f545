/**
 * Types of a message's parts and of the built message.
 */
import type { Mailbox } from './address.ts'

export interface Attachment {
  filename: string
  contentType: string
  content: Buffer
  /** The part is inline, and the html refers to it by `cid:`. */
  contentId?: string | undefined
}

export interface MessageParts {
  from: Mailbox
  /** Addresses, or mailboxes as a header field has them. */
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
  /** The message has an octet over 127. */
  needs8bit: boolean
  /** A header contains characters that are not ASCII (RFC 6532). */
  needsSmtpUtf8: boolean
}
