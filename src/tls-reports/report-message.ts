/** The message that carries a report (RFC 8460 section 5.3): multipart/report with a text for people and the packed report. ASCII. */
import type { TlsReporter } from '#base'
import { dateText, mailboxText, parseMailbox } from '#mail'
import type { TlsReportDocument } from './make-report.ts'

export interface ReportMessage {
  octets: Buffer
  messageId: string
  from: string
  to: string
  subject: string
}

interface MessageFacts {
  to: string
  nowMs: number
  reporter: TlsReporter
  senderDomain: string
}

const base64Line = 76

export function reportMessage(report: TlsReportDocument, { to, nowMs, reporter, senderDomain }: MessageFacts): ReportMessage {
  const { id, domain, beginSeconds, endSeconds, packed, successful, failed } = report
  const from = `tls-reports@${senderDomain}`
  const subject = [`Report Domain: ${domain}`, `Submitter: ${senderDomain}`, `Report-ID: <${id}>`]
  const boundary = `=_${id.slice(0, id.indexOf('@'))}`
  const messageId = `<${nowMs}.${id}>`
  const lines = [
    `Date: ${dateText(nowMs)}`,
    `From: ${named(reporter.organisation, from)}`,
    `Reply-To: ${reporter.contact}`,
    `To: ${to}`,
    `Subject: ${subject.join('\r\n ')}`,
    `Message-ID: ${messageId}`,
    `TLS-Report-Domain: ${domain}`,
    `TLS-Report-Submitter: ${senderDomain}`,
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type="tlsrpt";\r\n boundary="${boundary}"`,
    '',
    'This is a multipart message in MIME format.',
    `--${boundary}`,
    'Content-Type: text/plain; charset=us-ascii',
    'Content-Transfer-Encoding: 7bit',
    '',
    `This is an aggregate TLS report (RFC 8460) from ${senderDomain}`,
    `about its connections to the mail servers of ${domain}`,
    `on ${new Date(beginSeconds * 1000).toISOString().slice(0, 10)} (UTC).`,
    '',
    `Successful sessions: ${successful}`,
    `Failed sessions: ${failed}`,
    '',
    `--${boundary}`,
    'Content-Type: application/tlsrpt+gzip',
    'Content-Transfer-Encoding: base64',
    `Content-Disposition: attachment;\r\n filename="${senderDomain}!${domain}!${beginSeconds}!${endSeconds}.json.gz"`,
    '',
    ...(packed.toString('base64').match(new RegExp(`.{1,${base64Line}}`, 'g')) ?? []),
    `--${boundary}--`,
    '',
  ]
  return { octets: Buffer.from(lines.join('\r\n')), messageId, from, to, subject: subject.join(' ') }
}

/** The name may have any characters. */
function named(name: string, address: string): string {
  const mailbox = parseMailbox(address)
  return mailbox ? mailboxText({ ...mailbox, name }) : address
}
