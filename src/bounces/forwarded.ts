/** A report that somebody passed on: attached to a message, or quoted below a `From:` line. */
import { isListMail } from './automatic.ts'
import { below, fieldOf, type Part, readFields } from './parts.ts'
import { humanText, type Report } from './reported.ts'
import { plainWords } from './wordings.ts'

const programs =
  /mailer-?daemon|mail ?daemon|^"?postmaster|<postmaster|postmaster@|mail delivery|mail deliver|delivery (?:sub)?system|mail system|system administrator|mail administrator|microsoft ?exchange|exchange server|undeliver|returned mail|delivery status|delivery report|delivery fail|mail router|mail server|non-?delivery|ndr@|mailserver|mail-?gateway|mdaemon|mail transport|mail_daemon|mail-?zustell|internet mail delivery|postmaster|maildelivery|mail subsystem|sysadmin@|mailsweeper|メール配信|系统退信|系统管理员|systemadmin/i

export function comesFromProgram(message: Part): boolean {
  const from = fieldOf(message, 'from') ?? ''
  // Lists have postmasters too.
  if ((isListMail(message) ? /mailer-?daemon/i : programs).test(from) || fieldOf(message, 'x-failed-recipients') !== undefined) return true
  return /report-type="?delivery-status/i.test(fieldOf(message, 'content-type') ?? '')
}

export function forwardedReport(message: Part, read: (message: Part) => Report): Report | null {
  for (const part of below(message, 'this message')) {
    const inner = /^message\/(?:rfc822|global)$/.test(part.media) ? part.children[0] : undefined
    if (!inner || !(comesFromProgram(inner) || inner.media.startsWith('multipart/'))) continue
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
  /^[>| \t*]{0,8}(?:From|Von|De|Da|Van|Od|От|Från|Fra|Lähettäjä|Gönderen|Kimden|差出人|发件人|寄件者)[ \t]*\*?[ \t]*[:：]\*?[ \t]*(.{1,300})$/gimu

/** Quoted below a `From:` line of a mail system: the report is what stands there. */
function passedOnAsText(message: Part, read: (message: Part) => Report): Report | null {
  const text = humanText(message)
  for (const match of text.slice(0, 20_000).matchAll(fromLine)) {
    if (!programs.test(match[1] as string)) continue
    const rest = text.slice(match.index).replace(/^[>|*][ \t]?/gm, '')
    const [head = '', ...body] = rest.split(/\n[ \t]*\n/)
    const subject =
      /^\*?(?:Subject|Betreff|Objet|Asunto|Assunto|Oggetto|Onderwerp|Temat|Тема|Předmět|Ämne|Emne|Aihe|Konu|件名|主题|主旨)[ \t]*[:：]\*?[ \t]*(.{0,300})$/imu.exec(
        head,
      )?.[1] ?? ''
    const inner: Part = {
      media: 'text/plain',
      parameters: new Map([['charset', 'utf-8']]),
      fields: [['from', match[1] as string], ['subject', subject], ...readFields(head).filter(([name]) => name === 'to')],
      body: Buffer.from(body.join('\n\n')),
      encoding: '8bit',
      children: [],
    }
    const report = read(inner)
    if (report.kind === 'bounce' || report.kind === 'delay') return report
  }
  return null
}
