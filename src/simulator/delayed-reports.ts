/**
 * Reports that simulated recipients send after delivery, in the form used by a mail server or a mailbox provider.
 */

export type LateReport = 'bounce' | 'complaint'

export interface ReportedMessage {
  recipient: string
  /** The envelope sender of the message. */
  returnPath: string
  messageId: string
  /** The date of the report. */
  atMs: number
}

const server = 'mx.simulator.test'
const reporter = `mailer-daemon@${server}`
const diagnosis = '550 5.1.1 No such user (simulated)'

/** A delivery status notification (RFC 3464) or a feedback report (RFC 5965); ends with CRLF. */
export function lateReport(kind: LateReport, message: ReportedMessage): Buffer {
  const { recipient, returnPath, messageId, atMs } = message
  const date = new Date(atMs).toUTCString().replace('GMT', '+0000')
  const boundary = `report-${atMs.toString(36)}`
  const isBounce = kind === 'bounce'
  const text = isBounce
    ? `Your message to ${recipient} could not be delivered:\n\n${diagnosis}`
    : `${recipient} reported this message as spam.`
  const fields = isBounce
    ? `Reporting-MTA: dns; ${server}\nArrival-Date: ${date}\n\nFinal-Recipient: rfc822; ${recipient}\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; ${diagnosis}`
    : `Feedback-Type: abuse\nUser-Agent: Postrider-Simulator/1.0\nVersion: 1\nOriginal-Mail-From: <${returnPath}>\nOriginal-Rcpt-To: <${recipient}>\nArrival-Date: ${date}`
  const lines = `From: Mail Delivery System <${reporter}>
To: <${returnPath}>
Subject: ${isBounce ? 'Undelivered Mail Returned to Sender' : 'Complaint about a message from you'}
Date: ${date}
Message-ID: <${messageId.replace(/^<|@.*$/g, '')}.${kind}.${atMs.toString(36)}@${server}>
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=${isBounce ? 'delivery-status' : 'feedback-report'}; boundary="${boundary}"

--${boundary}
Content-Type: text/plain; charset=utf-8

${text}

--${boundary}
Content-Type: message/${isBounce ? 'delivery-status' : 'feedback-report'}

${fields}

--${boundary}
Content-Type: text/rfc822-headers

Return-Path: <${returnPath}>
Message-ID: ${messageId}

--${boundary}--
`
  return Buffer.from(lines.replace(/\n/g, '\r\n'))
}
