/**
 * Finds a forwarded report: attached to a message, or quoted below a `From:` line.
 */

import { isListMail } from './auto-responses.ts'
import { below, fieldOf, type Part, readPartFields } from './mime-parts.ts'
import { plainWords } from './phrases.ts'
import { addressesIn } from './report-addresses.ts'
import { humanText, type Report } from './report-types.ts'
import type { Work } from './work-budget.ts'

const programs =
  /mailer-?daemon|mail ?daemon|^"?postmaster|<postmaster|postmaster@|post_master@|mail delivery|mail deliver|delivery (?:sub)?system|mail system|system administrator|mail administrator|microsoft ?exchange|exchange server|undeliver|returned mail|delivery status|delivery report|delivery fail|mail router|mail server|non-?delivery|ndr@|mailserver|mail-?gateway|mdaemon|mail transport|mail_daemon|mail-?zustell|internet mail delivery|postmaster|maildelivery|mail subsystem|sysadmin@|mailsweeper|メール配信|系统退信|系统管理员|systemadmin/i

export function comesFromProgram(message: Part): boolean {
  const from = fieldOf(message, 'from') ?? ''
  // Mailing lists have postmasters too.
  if ((isListMail(message) ? /mailer-?daemon/i : programs).test(from) || fieldOf(message, 'x-failed-recipients') !== undefined) return true
  return isStatusReport(message)
}

/** A program's text without an address above an attached report: the report is the attached one. */
export const passesOn = (message: Part): boolean =>
  attachedMessages(message).some(isStatusReport) && addressesIn(humanText(message), 1).length === 0

const isStatusReport = (message: Part) => /report-type="?delivery-status/i.test(fieldOf(message, 'content-type') ?? '')

const attachedMessages = (message: Part) =>
  [...below(message, 'this message')].flatMap((part) => (/^message\/(?:rfc822|global)$/.test(part.media) ? part.children.slice(0, 1) : []))

export function forwardedReport(message: Part, read: (message: Part) => Report): Report | null {
  for (const inner of attachedMessages(message)) {
    if (!(comesFromProgram(inner) || inner.media.startsWith('multipart/'))) continue
    if (!message.work.mayReadAnother()) return null
    const report = read(inner)
    if (
      report.kind === 'bounce' ||
      report.kind === 'delay' ||
      (report.kind === 'complaint' && report.feedbackType !== null && inner.media === 'multipart/report')
    )
      return report
  }
  if (/^ ?(?:re|aw|sv|antw)\s*[:：]/.test(plainWords(fieldOf(message, 'subject') ?? ''))) return null
  return passedOnAsText(message, read)
}

const fromLine =
  /^[>| \t*]{0,8}(?:From|Von|De|Da|Van|Od|От|Från|Fra|Lähettäjä|Gönderen|Kimden|差出人|发件人|寄件者)[ \t]{0,8}\*?[ \t]{0,8}[:：]\*?[ \t]*(.{1,300})$/gimu
/** Reports are quoted within this many characters, and only this much of one is read. */
const maxQuotedLength = 20_000

/** Quoted below a `From:` line of a mail system: the quoted text is the report. */
function passedOnAsText(message: Part, read: (message: Part) => Report): Report | null {
  const text = humanText(message)
  for (const match of text.slice(0, maxQuotedLength).matchAll(fromLine)) {
    const from = match[1] as string
    if (!programs.test(from)) continue
    if (!message.work.mayReadAnother()) return null
    const report = read(quotedFrom(text.slice(match.index, match.index + maxQuotedLength), from, message.work))
    if (report.kind === 'bounce' || report.kind === 'delay') return report
  }
  return null
}

const subjectLine =
  /^\*?(?:Subject|Betreff|Objet|Asunto|Assunto|Oggetto|Onderwerp|Temat|Тема|Předmět|Ämne|Emne|Aihe|Konu|件名|主题|主旨)[ \t]*[:：]\*?[ \t]*(.{0,300})$/imu

/** The message quoted in these lines, as if it were attached. */
function quotedFrom(lines: string, from: string, work: Work): Part {
  const [head = '', ...body] = lines.replace(/^[>|*][ \t]?/gm, '').split(/\n[ \t]*\n/)
  return {
    media: 'text/plain',
    parameters: new Map([['charset', 'utf-8']]),
    fields: [['from', from], ['subject', subjectLine.exec(head)?.[1] ?? ''], ...readPartFields(head).filter(([name]) => name === 'to')],
    body: Buffer.from(body.join('\n\n')),
    encoding: '8bit',
    children: [],
    work,
    memo: {},
  }
}
