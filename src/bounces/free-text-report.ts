/**
 * Reads free-text reports: finds the addresses that failed, and the reason for each. Every address is weighed by the words around it; no
 * program's format is recognised by name.
 */

import { type QuotedReply, replyIn } from './classify-report.ts'
import { says } from './phrase-matcher.ts'
import { failureWords, plainWords } from './phrases.ts'
import { addressesIn } from './report-addresses.ts'

export interface ReportedFailure {
  recipient: string
  reason: string | null
  /** From 4: there is evidence for it besides its presence. */
  weight: number
}

export interface MessageParties {
  /** Recipients of the returned message. */
  to: readonly string[]
  /** The sender and the recipient of the report: not failed addresses. */
  ours: readonly string[]
}

const maxLines = 1_500
/** More than any report names; each is weighed by dozens of words around it. */
const maxWeighedAddresses = 400
/** Texts around an @ that are examined for an address. */
const maxTries = 4000
/** More than one message has. */
const maxFailures = 50
/** The part searched for a reason that does not stand near the address. */
export const maxLeadIn = 200
/** A longer line is body text. */
const maxLineLength = 4_000
const maxReasonLength = 1_000
const window = 8

const staff =
  /^(?:postmaster|mailer-?daemon|hostmaster|abuse|support|helpdesk|help|admin|administrator|noc|root|webmaster|no-?reply|service|info-?desk|security|mail-?admin|it-?support|bounce|bounces|spam)[^@]*@/i
const recipientLabel = /rcpt to|final-recipient|original-recipient|x-failed|failed recipient|failed address/i
const before =
  /(?:\bto|\bfor|recipients?|address(?:es)?|mailbox|users?|account|deliver|reach|empfänger|adresse|an|für|à|au|a|ao|dla|z|voor|destinataires?|destinatarios?|destinatari[oa]?|dirección|correo|para|indirizzo|casella|per|ontvanger|aan|adres|odbiorc\w*|adresat\w*|do|адрес\w*|получател\w*|пользовател\w*|для|收件人|地址|邮箱|至|宛先|アドレス|受信者|adresát\w*|příjemc\w*|mottagare|adress|till|modtager\w*|til|vastaanottaja\w*|alıcı\w*|adresi|のアドレス)[\s:=<"'([：]{0,12}$/iu
const notHim =
  /(?:from|sent by|sender|von|absender|de la part|remitente|remetente|mittente|contact|e-?mail to|mailto:|write to|reply to|kontakt|afzender|nadawc\w*|отправител\w*|发件人|送信者|mail from)[\s:=<"'([：]{0,12}$/iu
const isId = /message-?\s?id|\bid[=:]|nachrichten-?id/i
/** Replies to commands that do not concern a recipient. */
const ownCommand = /^[\s>]{0,8}(?:>>>|MAIL FROM|HELO|EHLO|DATA\b)/i

/** `<ann@example.org>: host mx said: 550`: the indented lines below continue the reply, whomever they name. */
const beginsReply = /^<?[^\s<>:@]{1,320}@[^\s<>:@]{1,255}>?: \S.{0,1000}[45]\d\d/
/** `ann@example.org: No MX found`. */
const colonWords = /^\s{0,8}<?[^\s<>:@]{1,320}@[^\s<>:@]{1,255}>?: (?=\p{L}+[^\p{L}\n]+\p{L}{2})/u

/** The failures, highest weight first; addresses without evidence are left out. */
export function failuresIn(text: string, known: MessageParties): ReportedFailure[] {
  const lines = textLinesOf(text.slice(0, 60_000), maxLines)
  const to = new Set(known.to.map((one) => one.toLowerCase()))
  const ours = new Set(known.ours.map((one) => one.toLowerCase()))
  const best = new Map<string, ReportedFailure & { at: number }>()
  const fails = (from: number, to: number) => lines.slice(Math.max(0, from), to).some((line) => factsOf(line).fails)
  const start = lines.slice(0, maxLeadIn)
  let left = maxWeighedAddresses
  const tries = { left: maxTries }
  let isInReply = false
  for (const [at, { text: line }] of lines.entries()) {
    if (left <= 0) break
    isInReply = line.startsWith(' ') || line.startsWith('\t') ? isInReply && line.trim() !== '' : beginsReply.test(line)
    const goesOn = isInReply && /^[ \t]/.test(line)
    for (const { address, start, end } of addressesIn(line, Math.min(20, left), tries)) {
      left--
      const key = address.toLowerCase()
      if ((ours.has(key) || goesOn) && !to.has(key)) continue
      let weight = placeWeight(line, start, end) + (to.has(key) ? 6 : 0)
      if (notHimAbove(lines, at, line.slice(0, start))) weight -= 8
      if (fails(at, at + 4)) weight += 2
      if (fails(at - 4, at)) weight += 1
      if (staff.test(address) && !to.has(key)) weight -= 5
      const earlier = best.get(key)
      if (earlier && earlier.weight >= weight) continue
      best.set(key, { recipient: address, weight, at, reason: null })
    }
  }
  const found = [...best.values()].filter((one) => one.weight > -2).sort((a, b) => b.weight - a.weight || a.at - b.at)
  const starts = found.map((one) => one.at)
  return found.slice(0, maxFailures).map(({ recipient, weight, at }) => {
    const next = Math.min(...starts.filter((start) => start > at), at + window)
    return { recipient, weight, reason: reasonIn(lines.slice(at, next), recipient) ?? reasonIn(start, recipient) }
  })
}

interface LineFacts extends QuotedReply {
  /** The line reports a failure. */
  fails: boolean
}

/** A line used for many recipients: its own properties are computed once. */
export interface TextLine {
  text: string
  facts?: LineFacts
  /** The text after a label such as `Reason:`; null: the line has no label. */
  labelled?: string | null
  isOwnCommand?: boolean
}

export const textLinesOf = (text: string, most: number): TextLine[] =>
  text
    .split('\n')
    .slice(0, most)
    .map((one) => ({ text: one }))

function factsOf(line: TextLine): LineFacts {
  line.facts ??= factsIn(line.text)
  return line.facts
}

function factsIn(line: string): LineFacts {
  const reply = replyIn(line)
  const isRead = line.trim() !== '' && line.length <= maxLineLength
  return { ...reply, fails: isRead && (reply.code !== null || reply.enhanced !== null || says(plainWords(line), failureWords)) }
}

/** `A message sent by`, an empty line, and the sender on a separate line. */
function notHimAbove(lines: readonly TextLine[], at: number, head: string): boolean {
  if (/\p{L}/u.test(head)) return false
  const above = lines[at - 1]?.text.trim() === '' ? lines[at - 2] : lines[at - 1]
  return above !== undefined && notHim.test(above.text.trimEnd().slice(-60))
}

function placeWeight(line: string, start: number, end: number): number {
  const head = line.slice(Math.max(0, start - 60), start)
  const tail = line.slice(end, end + 60)
  if (isId.test(line.slice(0, start))) return -10
  let weight = 0
  if (recipientLabel.test(line.slice(0, start))) weight += 6
  if (/^[\s<>"'([*\u2022\u00b7-]*(?:\d+[.)]\s*)?(?:(?:smtp|rfc822|e-?mail)\s*[:;]\s*<?)?$/i.test(line.slice(0, start)))
    weight += /^[\s>"')\]]*[:：.]{0,3}\s*$/.test(tail) ? 4 : 3
  if (/^>?"?\s*(?::|\.\.\.|：|--? )/.test(tail)) weight += 3
  if (before.test(head)) weight += 3
  if (notHim.test(head)) weight -= 8
  return weight
}

/**
 * The remote server's reply in these lines with its continuation lines; otherwise the line with the reason; otherwise the text after the
 * address.
 */
export function reasonIn(from: readonly TextLine[], recipient: string | null): string | null {
  const lines = from.map(({ text }) => text)
  for (const [at, line] of from.entries()) {
    if (isOwnCommand(line)) continue
    const { code, enhanced, fails } = factsOf(line)
    if (code !== null || (enhanced !== null && fails)) return tidy(withRest(lines, at), recipient)
  }
  const given = announcedReason(from)
  if (given !== null) return tidy(given, recipient)
  if (recipient !== null && colonWords.test(lines[0] ?? '')) return tidy(paragraph(lines, 0), recipient)
  const failing = from.findIndex(
    (line, at) => !isOwnCommand(line) && (at === 0 && recipient !== null ? factsIn(line.text.replace(recipient, '')) : factsOf(line)).fails,
  )
  if (failing >= 0) return tidy(paragraph(lines, failing), recipient)
  const below = belowAddress(lines, recipient)
  if (below !== null) return tidy(below, recipient)
  const first = from.findIndex((line) => factsOf(line).fails)
  return first >= 0 ? tidy(paragraph(lines, first), recipient) : null
}

const label =
  /^[^\p{L}\n]{0,20}(?:(?:the )?(?:failure |error |bounce |delivery |technical )?(?:reason|response|error message|error description|diagnostic code|cause|details)|the (?:reason|response|error)[^:\n]{0,60}|grund|fehlermeldung|ursache|motif|raison|motivo|causa|reden|powód|przyczyna|причина|理由|原因|退信原因|důvod|příčina|orsak|årsag|syy|neden|sebep)[^:：\n\p{L}]{0,10}[:：][ \t]*(.{0,2000})$/iu

/** `Reason: …` on one line, or on the lines below. */
function announcedReason(from: readonly TextLine[]): string | null {
  const text = (at: number) => from[at]?.text ?? ''
  for (const [at, line] of from.entries()) {
    const given = labelledIn(line)
    if (given === null) continue
    if (given.trim().length > 3) {
      const below = [at + 1, at + 2].map(text)
      const end = below.findIndex((one) => one.trim() === '')
      return [given, ...(end < 0 ? below : below.slice(0, end))].join('\n')
    }
    const next = [at + 1, at + 2, at + 3].find((below) => text(below).trim() !== '')
    if (next !== undefined)
      return paragraph(
        from.map((one) => one.text),
        next,
      )
  }
  return null
}

function isOwnCommand(line: TextLine): boolean {
  line.isOwnCommand ??= ownCommand.test(line.text)
  return line.isOwnCommand
}

function labelledIn(line: TextLine): string | null {
  if (line.labelled === undefined) line.labelled = line.text.length < maxLineLength ? (label.exec(line.text)?.[1] ?? null) : null
  return line.labelled
}

/** The lines directly below a line with only the address, in any words. */
function belowAddress(lines: readonly string[], recipient: string | null): string | null {
  if (recipient === null || lines[0]?.replace(/[\s<>"'():;,*-]/g, '').toLowerCase() !== recipient.toLowerCase()) return null
  const text = paragraph(lines, 1)
  return text === '' || /^[\s-]{4}/.test(text.trim()) ? null : text
}

function withRest(lines: readonly string[], at: number): string {
  const whole = [lines[at] as string]
  const { code } = replyIn(whole[0] as string)
  for (const line of lines.slice(at + 1, at + window)) {
    if (line.trim() === '' || ownCommand.test(line) || /^\s*[-=_*]{5}/.test(line)) break
    // A transcript contains the replies to several commands, one below the other.
    const next = /^(?:<<< )?([45]\d\d)[ -]/.exec(line)?.[1]
    if (next !== undefined && code !== null && Number(next) !== code) break
    whole.push(line)
  }
  return whole.join('\n')
}

function paragraph(lines: readonly string[], at: number): string {
  const whole: string[] = []
  for (const line of lines.slice(at, at + 5)) {
    if (line.trim() === '') break
    whole.push(line)
  }
  return whole.join('\n')
}

/** On one line, without the leading address and the marks of transcripts. */
function tidy(text: string, recipient: string | null): string | null {
  let words = text
    .split('\n')
    .map((line) => line.replace(/^\s*(?:<<<|>>>|\|)\s?/, '').trim())
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim()
  if (recipient !== null) {
    const start = words.slice(0, 8).search(/[^<"'([*\s]/)
    if (start >= 0 && words.slice(start).toLowerCase().startsWith(recipient.toLowerCase())) {
      const rest = words.slice(start + recipient.length).replace(/^[>"')\]]*\s*(?:[:：]|\.\.\.|--?)?\s*/, '')
      if (rest !== '') words = rest
    }
  }
  return words === '' ? null : words.slice(0, maxReasonLength)
}
