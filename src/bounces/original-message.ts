/**
 * Extracts the original message from a report, as far as the report contains it: complete, truncated, or its header as text.
 */

import { below, fieldOf, type Part, readPartFields, readParts, textOf } from './mime-parts.ts'
import { addressesIn } from './report-addresses.ts'

export interface OriginalMessage {
  /** Without angle brackets. */
  messageId: string | null
  /** Bare addresses. */
  from: string | null
  to: readonly string[]
  subject: string | null
  /** By lower-case name, the first of each, decoded. */
  headers: Readonly<Record<string, string>>
}

const maxToAddresses = 50
const isHeaderBlock = /^text\/(?:rfc822-?headers?|rfc822)$|^message\/(?:rfc822-?headers?|global-headers)$/

/** From attached parts; null without such parts. */
export function attachedOriginal(report: Part): OriginalMessage | null {
  for (const part of below(report, 'this message')) {
    if (part === report) continue
    const attached = part.children[0]
    if (/^message\/(?:rfc822|global|partial|news)$/.test(part.media) && attached && attached.fields.length > 0)
      return fromFields(attached.fields)
    // Some programs label the whole message as its headers, and some put an empty line first.
    if (isHeaderBlock.test(part.media)) return fromFields(readParts(Buffer.from(textOf(part)), part.work).fields)
    const name = part.parameters.get('name') ?? ''
    if (/\.(?:eml|msg|hdr)$/i.test(name) || (part.media.startsWith('text/') && /original|header|returned/i.test(name))) {
      const { fields } = readParts(Buffer.from(textOf(part)), part.work)
      if (looksLikeHeader(fields)) return fromFields(fields)
    }
  }
  return null
}

function fromFields(fields: Part['fields']): OriginalMessage {
  const headers: Record<string, string> = Object.create(null)
  for (const [name, value] of fields) headers[name] ??= value
  const from = addressesIn(headers.from ?? '', 1)[0]?.address ?? null
  const named = (name: string) => addressesIn(headers[name] ?? '', maxToAddresses).map((one) => one.address)
  // A sender who gets a copy remains the sender.
  const to = [...named('to'), ...named('cc').filter((one) => one !== from), ...named('x-original-to'), ...named('envelope-to')]
  return {
    messageId: messageIdOf(headers['message-id']),
    from,
    to: [...new Set(to)].slice(0, maxToAddresses),
    subject: fieldOf({ fields }, 'subject') ?? null,
    headers,
  }
}

export function messageIdOf(value: string | undefined): string | null {
  const text = (value ?? '').slice(0, 2_000)
  return /<\s*([^<>\s]{1,990})\s*>/.exec(text)?.[1] ?? /^\s*([^<>\s]{1,990}@[^<>\s]{1,255})/.exec(text)?.[1] ?? null
}

const telling = /^(?:received|message-id|return-path|mime-version|dkim-signature|content-type|x-mailer|date)$/
const looksLikeHeader = (fields: Part['fields']) =>
  fields.length >= 3 &&
  fields.some(([name]) => telling.test(name)) &&
  fields.some(([name]) => /^(?:from|to|subject|message-id|received)$/.test(name))

/** Lines that announce a copy of the message; the text after them is not the report's own. */
const announced =
  /^[^\p{L}\n]{0,20}(?:below this line is a copy|this is a copy of (?:the|your) message|(?:the )?original message (?:follows|headers?|is attached)|(?:message )?headers? follow|returned message follows|unsent message (?:follows|below)|undelivered message|(?:a )?copy of (?:the|your) (?:original )?message|text of your message|original message(?=[^\p{L}]*$)|(?:your )?message (?:text|header)s? follows?|the body of (?:the|your) message|kopie der (?:ursprünglichen )?nachricht|ursprüngliche nachricht|message d'origine|en-têtes de message|mensaje original|encabezados de mensaje|mensagem original|cabeçalhos|messaggio originale|intestazioni|oorspronkelijk|oryginaln|исходное сообщение|原始邮件|原始郵件|元のメッセージ|původní zpráv|ursprungligt meddelande)/iu

const isField = /^[A-Za-z][A-Za-z0-9-]{1,60}:(?:[ \t]|$)/
const isTelling = /^(?:received|message-id|return-path|mime-version|dkim-signature|content-type|x-mailer):/i
/** A report's own fields begin with these; they are not a copy. */
const isStatus =
  /^(?:reporting-mta|final-recipient|original-recipient|action|status|diagnostic-code|remote-mta|arrival-date|x-failed-recipients):/i

/** Splits a plain-text report into its own words and the quoted message. */
export function quotedOriginal(text: string): { words: string; original: OriginalMessage | null; rest: string } {
  const lines = text.split('\n')
  let announcedAt = -1
  for (let at = 0; at < lines.length; at++) {
    const line = bare(lines[at] as string)
    if (announcedAt < 0 && line.length < 200 && announced.test(line)) announcedAt = at
    if (!isField.test(line) || isStatus.test(line)) continue
    const end = endOfBlock(lines, at)
    const block = lines.slice(at, end).map(bare)
    if (block.length >= 3 && block.some((one) => isTelling.test(one)) && !block.some((one) => isStatus.test(one))) {
      const cut = announcedAt >= 0 ? Math.min(announcedAt, at) : at
      return {
        words: lines.slice(0, cut).join('\n'),
        original: fromFields(readPartFields(block.join('\n'))),
        rest: lines.slice(end).join('\n'),
      }
    }
    at = end - 1
  }
  if (announcedAt < 0) return { words: text, original: null, rest: '' }
  return { words: lines.slice(0, announcedAt).join('\n'), original: null, rest: lines.slice(announcedAt + 1).join('\n') }
}

const bare = (line: string) => line.replace(/^(?:[>|][ \t]?){1,3}/, '').replace(/^[ \t]{1,8}(?=[A-Za-z-]{2,40}:[ \t])/, '')

function endOfBlock(lines: readonly string[], from: number): number {
  let at = from + 1
  while (at < lines.length) {
    const line = bare(lines[at] as string)
    if (!(isField.test(line) || /^[ \t]+\S/.test(line))) break
    at++
  }
  return at
}
