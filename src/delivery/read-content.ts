/** Reads a stored content: bodies and attachments as submitted, or the message without its signatures. */
import { createHash } from 'node:crypto'
import { type Signable, signableOf } from '#dkim'
import { type Content, decodeContent } from '#emails'
import { dotStuff, linksOf, readMessage, textFromHtml } from '#mail'
import type { Tokens, TrackedRecipient } from '#tracking'
import { type RebuiltMessage, rebuildMessage } from './render-message.ts'

export type ContentPart = 'content' | 'headers' | 'attachments' | 'raw'

export interface ShownAttachment {
  filename: string
  contentType: string
  content: Buffer
  /** SHA-256, in hexadecimal. */
  hash: string
}

export interface SubmittedParts {
  html?: string | undefined
  text?: string | undefined
  attachments?: ShownAttachment[]
}

/** All that is needed to sign and send it. `octets`: as signed, or with dots doubled if they were read to send. */
export interface UnsignedMessage
  extends RebuiltMessage,
    Pick<Content, 'signing' | 'acceptedAtMs' | 'marked' | 'messageId' | 'returnPathDomain'> {
  /** Undefined if it is not signed. */
  signable: Signable | undefined
}

/** `sent` if headers or the raw message are wanted. */
export interface WantedParts {
  parts: SubmittedParts
  sent?: UnsignedMessage
}

export interface PartsAsReceived {
  html: string | null
  text: string
  links: string[]
}

export interface ContentReads {
  /** The wanted parts, as submitted, and the message as sent. */
  parts: { wanted: ReadonlySet<ContentPart>; read: WantedParts }
  /** As the recipient reads it, with tracking. */
  received: { read: PartsAsReceived }
  /** In the form that DATA sends (RFC 5321 section 4.5.2). `form`: as in `rebuildMessage`. */
  toSend: { form?: 'sevenBit' | undefined; read: UnsignedMessage }
}

/** A stored content, and the kind of reading. */
export type ContentTask<Kind extends keyof ContentReads = keyof ContentReads> = {
  [One in Kind]: { kind: One; body: Uint8Array; recipient: TrackedRecipient } & Omit<ContentReads[One], 'read'>
}[Kind]

export function readContent(task: ContentTask, tokens: Tokens): ContentReads[keyof ContentReads]['read'] {
  const content = decodeContent(task.body)
  const { recipient } = task
  if (task.kind === 'parts') return wantedParts(content, recipient, tokens, task.wanted)
  if (task.kind === 'toSend') {
    const message = unsigned(content, recipient, tokens, task.form)
    return { ...message, octets: dotStuff(message.octets) }
  }
  const read = readMessage(rebuildMessage(content, recipient, tokens).octets)
  return { html: read.html ?? null, text: read.text ?? '', links: linksOf(read) }
}

function wantedParts(content: Content, recipient: TrackedRecipient, tokens: Tokens, wanted: ReadonlySet<ContentPart>): WantedParts {
  const { message, tracking: _, ...untracked } = content
  const needsRead = message.kind === 'raw' && (wanted.has('content') || wanted.has('attachments'))
  const read = needsRead ? readMessage(rebuildMessage({ message, ...untracked }, recipient, tokens).octets) : undefined
  const parts: SubmittedParts = {
    ...(wanted.has('content') ? bodiesOf(message, read) : {}),
    ...(wanted.has('attachments') ? { attachments: attachmentsOf(message, read) } : {}),
  }
  return wanted.has('headers') || wanted.has('raw') ? { parts, sent: unsigned(content, recipient, tokens) } : { parts }
}

function unsigned(content: Content, recipient: TrackedRecipient, tokens: Tokens, form?: 'sevenBit'): UnsignedMessage {
  const { signing, acceptedAtMs, marked, messageId, returnPathDomain } = content
  const rebuilt = rebuildMessage(content, recipient, tokens, form)
  const signable = signing ? signableOf(rebuilt.octets) : undefined
  return { ...rebuilt, signing, acceptedAtMs, ...(marked ? { marked } : {}), messageId, returnPathDomain, signable }
}

type ReadMessage = ReturnType<typeof readMessage>

function bodiesOf(message: Content['message'], read: ReadMessage | undefined): Pick<SubmittedParts, 'html' | 'text'> {
  const html = message.kind === 'parts' ? message.html : read?.html
  const text = message.kind === 'parts' ? message.text : read?.text
  return { html, text: text ?? (html === undefined ? '' : textFromHtml(html)) }
}

function attachmentsOf(message: Content['message'], read: ReadMessage | undefined): ShownAttachment[] {
  const given = message.kind === 'parts' ? message.attachments : (read?.attachments ?? [])
  return given.map(({ filename, contentType, content: encoded }) => {
    // A copy: an attachment that was not encoded is a part of the whole message.
    const content = typeof encoded === 'string' ? Buffer.from(encoded, 'base64') : Buffer.from(encoded)
    return { filename, contentType, content, hash: createHash('sha256').update(content).digest('hex') }
  })
}
