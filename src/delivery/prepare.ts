/** From stored content to the octets that are sent: built and signed the same way every time, so the API can show what was sent. */

import { type SigningKey, sign } from '#dkim'
import type { Domains } from '#domains'
import type { Content, PartsContent } from '#emails'
import { type BuiltMessage, buildMessage, type Mailbox, parseMailbox, prepareRaw, textFromHtml, toSevenBit } from '#mail'

/**
 * The complete message, DKIM signatures first. With `sevenBit` for a server without 8BITMIME: written anew where it is not ASCII, and
 * then signed. Throws when the content could not have come from acceptance.
 */
export function rebuildMessage(content: Content, keys: readonly SigningKey[], form?: 'sevenBit'): BuiltMessage {
  const given = content.message.kind === 'raw' ? fromRaw(content.message.raw, content) : buildMessage(partsOf(content.message, content))
  const built = form === 'sevenBit' && needsOnly8bit(given) ? { ...given, octets: toSevenBit(given.octets), needs8bit: false } : given
  if (keys.length === 0) return built
  return { ...built, octets: Buffer.concat([sign(built.octets, keys, content.acceptedAtMs), built.octets]) }
}

/** The keys that sign this content; undefined when its domain is gone. */
export async function keysFor({ signing }: Content, tenantId: string, domains: Domains): Promise<SigningKey[] | undefined> {
  if (!signing) return []
  if ('platform' in signing) return domains.platformKeys(signing.platform)
  return domains.signingKeys(tenantId, signing.domainId, signing.withEd25519)
}

/** The header is ASCII and the body is not: there is another form of it for servers that do not take it as it is. */
export const needsOnly8bit = ({ needs8bit, needsSmtpUtf8 }: Pick<BuiltMessage, 'needs8bit' | 'needsSmtpUtf8'>) =>
  needs8bit && !needsSmtpUtf8

const fromRaw = (raw: string, content: Content): BuiltMessage =>
  prepareRaw(Buffer.from(raw, 'base64'), { dateMs: content.acceptedAtMs, messageId: content.messageId })

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
