/** Translates Postal's messages and deliveries to emails and attempts of this installation, without reading or writing anything. */
import { derivedEmailId } from '#base'
import type { ImportedAttempt, ImportedEmail, ImportedStatus } from '#emails'
import { parseAddress } from '#mail'
import type { MessageRows, RawParts, Row } from './postal-source.ts'

/** Postal is done with messages in these states; a cancelled hold never left. */
const finalStatuses: Readonly<Record<string, ImportedStatus>> = {
  Sent: 'sent',
  HardFail: 'hardfail',
  HoldCancelled: 'hardfail',
  Bounced: 'bounced',
}
const attemptStatuses: Readonly<Record<string, ImportedAttempt['status']>> = { ...finalStatuses, SoftFail: 'softfail' }

const maxTextLength = 998
const maxDurationMs = 2 ** 31 - 1

const text = (row: Row, column: string, maxLength = maxTextLength): string => {
  const value = row[column]
  return typeof value === 'string' ? value.slice(0, maxLength).toWellFormed().replaceAll('\0', '') : ''
}

/** The clocks of two machines may differ. */
const aheadMs = 86_400_000

/** null: no time, or one in the future, for whose day no partition may be made. */
export function timeOf(row: Row, nowMs: number): number | null {
  const seconds = row.timestamp == null ? Number.NaN : Number(row.timestamp)
  return seconds > 0 && seconds * 1000 < nowMs + aheadMs ? Math.floor(seconds * 1000) : null
}

/** The same in every run. `uuid`: the server's. The token, which Postal draws, makes it hard to guess. */
export const emailIdOf = (uuid: string, message: Row, acceptedAtMs: number): string =>
  derivedEmailId(acceptedAtMs, `postal ${uuid} ${Number(message.id)} ${text(message, 'token')}`)

/** By these a message is found again here by its number or token in Postal. */
export const metadataOf = (message: Row): Record<string, string> => ({
  postal_id: String(Number(message.id)),
  ...(text(message, 'token') === '' ? {} : { postal_token: text(message, 'token', 100) }),
})

export const tagOf = (message: Row): string | null => text(message, 'tag', 255) || null

/** `unfinished`: Postal may still send it. `bad`: without a time or an address of the recipient. */
export function emailOf(uuid: string, { message, deliveries }: MessageRows, nowMs: number): ImportedEmail | 'unfinished' | 'bad' {
  const status = finalStatuses[text(message, 'status')]
  if (status === undefined) return 'unfinished'
  const atMs = timeOf(message, nowMs)
  const recipient = parseAddress(text(message, 'rcpt_to'))?.text
  if (atMs === null || recipient === undefined) return 'bad'
  const messageId = text(message, 'message_id', maxTextLength - 2).replace(/^<|>$/g, '')
  return {
    id: emailIdOf(uuid, message, atMs),
    recipient,
    sender: text(message, 'mail_from').toLowerCase(),
    subject: text(message, 'subject'),
    tag: tagOf(message),
    metadata: metadataOf(message),
    messageId: messageId === '' ? '' : `<${messageId}>`,
    status,
    acceptedAt: new Date(atMs),
    attempts: deliveries.flatMap((delivery) => attemptOf(delivery, { acceptedAtMs: atMs, nowMs })),
  }
}

/** Holds are not attempts. */
function attemptOf(delivery: Row, { acceptedAtMs, nowMs }: { acceptedAtMs: number; nowMs: number }): ImportedAttempt[] {
  const status = attemptStatuses[text(delivery, 'status')]
  if (status === undefined) return []
  const output = text(delivery, 'output')
  const [, code, enhanced] = /^([245]\d\d)(?:[ -]([245]\.\d{1,3}\.\d{1,3})\b)?/.exec(output) ?? []
  const seconds = Number(delivery.time ?? 0)
  return [
    {
      status,
      at: new Date(timeOf(delivery, nowMs) ?? acceptedAtMs),
      durationMs: seconds > 0 ? Math.min(Math.round(seconds * 1000), maxDurationMs) : 0,
      details: text(delivery, 'details'),
      output,
      code: code === undefined ? null : Number(code),
      enhanced: enhanced ?? null,
      secure: Number(delivery.sent_with_ssl ?? 0) === 1,
    },
  ]
}

/** Postal's signature and mark, which it writes above the headers before its first attempt. */
const ownFields = /^dkim-signature:[^\n]*\n(?:[ \t][^\n]*\n){0,40}(?=x-postal-msgid:)/i
const maxOwnOctets = 4200

/** The whole message, without Postal's signature: this installation signs it again. null: a part was too large to be read. */
export function wholeMessage({ headers, body }: RawParts): Buffer | null {
  if (!headers || !body) return null
  const own = ownFields.exec(headers.subarray(0, maxOwnOctets).toString('latin1'))?.[0].length ?? 0
  return Buffer.concat([headers.subarray(own), Buffer.from('\r\n\r\n'), body])
}
