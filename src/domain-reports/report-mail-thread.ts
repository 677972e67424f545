/**
 * The thread that reads DMARC and TLS reports, one message after the other.
 */
import { serveTasks } from '#base'
import type { ToRead } from '#returns'
import { type ReportMail, readReportMail } from './read-report-mail.ts'

serveTasks(({ octets, atMs }: ToRead): { result: ReportMail } => ({
  result: readReportMail(Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength), atMs),
}))
