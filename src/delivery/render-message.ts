/**
 * Rebuilds the octets for one recipient from stored content. Building and tracking are deterministic, so the API can show the message as
 * sent.
 */
import type { SigningKey } from '#dkim'
import type { Domains } from '#domains'
import type { Content, PartsContent, RawContent, ReturnPaths } from '#emails'
import {
  type BuiltMessage,
  buildMessage,
  changeHtml,
  type Mailbox,
  parseMailbox,
  prepareRaw,
  textFromHtml,
  toSevenBit,
  traceHeaderField,
} from '#mail'
import { type Tokens, type TrackedRecipient, trackHtml, trackHtmlOctets, unsubscribeFields } from '#tracking'

export interface RebuiltMessage extends BuiltMessage {
  /** The message contains this recipient's tracking links, so no other recipient may receive it. */
  personal: boolean
}

/**
 * Returns the message as it is signed. `sevenBit`: for a server without 8BITMIME, re-encoded where it is not ASCII. Throws if the content
 * could not have come from acceptance.
 */
export function rebuildMessage(content: Content, recipient: TrackedRecipient, tokens: Tokens, form?: 'sevenBit'): RebuiltMessage {
  const given =
    content.message.kind === 'raw'
      ? fromRaw(content.message, content, recipient, tokens)
      : fromParts(content.message, content, recipient, tokens)
  return form === 'sevenBit' && needsOnly8bit(given) ? { ...given, octets: toSevenBit(given.octets), needs8bit: false } : given
}

/**
 * The trace header that identifies a recipient's email in forwarded complaints; empty if the content has no trace header. It stands above
 * the signatures and is not signed, so that one signature serves all recipients; its authentication tag proves its origin.
 */
export const traceHeaderOf = ({ marked, acceptedAtMs }: Pick<Content, 'marked' | 'acceptedAtMs'>, emailId: string, paths: ReturnPaths) =>
  marked ? `${traceHeaderField}: ${paths.traceHeader(emailId, acceptedAtMs)}\r\n` : ''

/** The keys that sign this content; undefined if its domain no longer exists. */
export async function keysFor(
  { signing }: Pick<Content, 'signing'>,
  tenantId: string,
  domains: Domains,
): Promise<SigningKey[] | undefined> {
  if (!signing) return []
  if ('platform' in signing) return domains.platformKeys(signing.platform)
  return domains.signingKeys(tenantId, signing.domainId, signing.withEd25519)
}

/** The header is ASCII and the body is not: the message has a 7-bit form for servers without 8BITMIME. */
export const needsOnly8bit = ({ needs8bit, needsSmtpUtf8 }: Pick<BuiltMessage, 'needs8bit' | 'needsSmtpUtf8'>) =>
  needs8bit && !needsSmtpUtf8

function fromRaw({ raw, keepsArc }: RawContent, content: Content, recipient: TrackedRecipient, tokens: Tokens): RebuiltMessage {
  const { acceptedAtMs: dateMs, messageId, feedbackId, tracking } = content
  const prepared = prepareRaw(Buffer.from(raw, 'base64'), { dateMs, messageId, feedbackId, keepsArc })
  if (!tracking) return { ...prepared, personal: false }
  let { opens } = tracking
  const octets = changeHtml(prepared.octets, (html, charset) => {
    const tracked = trackHtmlOctets(html, charset, { ...tracking, opens }, recipient, tokens)
    // Displaying a message with several html parts counts as one open.
    if (tracked) opens = false
    return tracked
  })
  return { ...prepared, octets, personal: octets !== prepared.octets }
}

function fromParts(message: PartsContent, content: Content, recipient: TrackedRecipient, tokens: Tokens): RebuiltMessage {
  const { tracking, unsubscribe } = content
  const parts = partsOf(message, content)
  const html = tracking && parts.html !== undefined ? trackHtml(parts.html, tracking, recipient, tokens) : parts.html
  const fields = unsubscribe === undefined ? [] : unsubscribeFields(unsubscribe, recipient, tokens)
  const personal = html !== parts.html || fields.length > 0
  return { ...buildMessage(personal ? { ...parts, html, headers: [...parts.headers, ...fields] } : parts), personal }
}

function partsOf(message: PartsContent, content: Content): Parameters<typeof buildMessage>[0] {
  const text = message.text ?? (message.html === undefined ? undefined : textFromHtml(message.html))
  return {
    from: parseMailbox(message.from) as Mailbox,
    to: message.to,
    cc: message.cc,
    replyTo: message.replyTo,
    subject: message.subject,
    dateMs: content.acceptedAtMs,
    messageId: content.messageId,
    html: message.html,
    text,
    headers: message.headers,
    attachments: message.attachments.map((one) => ({ ...one, content: Buffer.from(one.content, 'base64') })),
    boundarySeed: content.messageId,
  }
}
