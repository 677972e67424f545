/** Settings of limits: rates, the automatic pause of tenants, and retention. */
import { countFrom, setting } from './setting.ts'

/** Percentage, with decimals; `off` means no limit. */
function percent(value: string | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (value.toLowerCase() === 'off') return Number.POSITIVE_INFINITY
  if (!/^\d{1,3}(\.\d{1,6})?$/.test(value) || Number(value) > 100) throw new Error(`"${value}" is not a percentage such as 0.3, or off`)
  return Number(value)
}

/** A number, or `unlimited` as null. */
function limit(value: string | undefined, fallback: number): number | null {
  if (value?.toLowerCase() === 'unlimited') return null
  return countFrom(value, fallback)
}

export const limitSettings = {
  rateLimit: setting('POSTRIDER_RATE_LIMIT', '10', 'requests per second per key, or `unlimited`', (v) => limit(v, 10)),
  sendLimit: setting('POSTRIDER_SEND_LIMIT', '100', 'emails per clock hour for the organisation, or `unlimited`', (v) => limit(v, 100)),
  autoPauseComplaintPercent: setting(
    'POSTRIDER_AUTO_PAUSE_COMPLAINT_PERCENT',
    '0.3',
    'complaints per 100 emails in 24 hours that pause a tenant automatically (warning at half), or `off`',
    (v) => percent(v, 0.3),
  ),
  autoPauseHardBouncePercent: setting(
    'POSTRIDER_AUTO_PAUSE_HARD_BOUNCE_PERCENT',
    '8',
    'emails to addresses that do not exist, per 100 emails in 24 hours, that pause a tenant automatically (warning at half), or `off`',
    (v) => percent(v, 8),
  ),
  autoPauseMinEmails: setting(
    'POSTRIDER_AUTO_PAUSE_MIN_EMAILS',
    '100',
    'minimum emails in 24 hours before a tenant can be paused automatically',
    (v) => countFrom(v, 100),
  ),
  keepContentDays: setting('POSTRIDER_KEEP_CONTENT_DAYS', '30', 'retention of email content, in days', (v) => countFrom(v, 30)),
  keepEmailDays: setting('POSTRIDER_KEEP_EMAIL_DAYS', '90', 'retention of emails, their attempts and events, in days', (v) =>
    countFrom(v, 90),
  ),
  keepLogDays: setting('POSTRIDER_KEEP_LOG_DAYS', '90', 'retention of request logs, in days', (v) => countFrom(v, 90)),
  keepWebhookDays: setting('POSTRIDER_KEEP_WEBHOOK_DAYS', '30', 'retention of webhook deliveries, in days', (v) => countFrom(v, 30)),
  keepReportDays: setting(
    'POSTRIDER_KEEP_REPORT_DAYS',
    '400',
    'retention of DMARC and TLS reports and of the figures of reputation, in days',
    (v) => countFrom(v, 400),
  ),
  keepReceivedDays: setting('POSTRIDER_KEEP_RECEIVED_DAYS', '30', 'retention of received mail, in days', (v) => countFrom(v, 30)),
} as const
