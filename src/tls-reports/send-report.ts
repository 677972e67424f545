/**
 * Sends a report to one destination: by mail as an email of Postrider itself, or by an HTTPS request to a checked address (RFC 8460 sections
 * 5.3 and 5.4).
 */
import type { TlsReporter } from '#base'
import { returnPathDomainOf } from '#domains'
import { parseAddress } from '#mail'
import type { Post } from '#net'
import type { TlsReportDocument } from './make-report.ts'
import { type ReportMessage, reportMessage } from './report-message.ts'

export interface SendReport {
  post: Pick<Post, 'post'>
  /** Accepts the message; returns the id of its email. */
  submit(message: ReportMessage): Promise<string>
  clock: { nowMs(): number }
  reporter: TlsReporter
  senderDomain: string
  hostname: string
}

/** `later`: another try may succeed. */
export type SendOutcome = { kind: 'sent' } | { kind: 'later' | 'failed'; problem: string }

const withinMs = 30_000

export async function sendReport(destination: string, report: TlsReportDocument, deps: SendReport): Promise<SendOutcome> {
  return /^mailto:/i.test(destination) ? sendByMail(destination, report, deps) : sendByHttps(destination, report, deps)
}

/** An accepted email is retried like any other. */
async function sendByMail(destination: string, report: TlsReportDocument, deps: SendReport): Promise<SendOutcome> {
  const to = addressIn(destination)
  if (to === undefined || to.needsSmtpUtf8) return { kind: 'failed', problem: 'the URI has no email address in ASCII' }
  const own = [deps.hostname, returnPathDomainOf(deps.hostname)]
  if (own.includes(to.domain)) return { kind: 'failed', problem: 'the address is of this installation, which sends no reports to itself' }
  await deps.submit(reportMessage(report, { to: to.text, nowMs: deps.clock.nowMs(), ...deps }))
  return { kind: 'sent' }
}

/** RFC 6068: header fields behind `?` are passed over. */
function addressIn(uri: string): ReturnType<typeof parseAddress> {
  const text = uri.slice('mailto:'.length).split('?')[0] ?? ''
  try {
    return parseAddress(decodeURIComponent(text))
  } catch {
    return undefined
  }
}

async function sendByHttps(url: string, { packed }: TlsReportDocument, { post }: SendReport): Promise<SendOutcome> {
  const headers = { 'content-type': 'application/tlsrpt+gzip', 'user-agent': 'Postrider' }
  const { statusCode, error } = await post.post({ url, headers, body: packed, withinMs })
  if (statusCode === null) return { kind: 'later', problem: error ?? 'no response' }
  if (statusCode >= 200 && statusCode < 300) return { kind: 'sent' }
  const mayChange = statusCode >= 500 || statusCode === 408 || statusCode === 429
  return { kind: mayChange ? 'later' : 'failed', problem: `HTTP status ${statusCode}` }
}
