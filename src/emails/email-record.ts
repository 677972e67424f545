/**
 * The email record in the form that every statement reads.
 */
import { sql } from '#db'
import type { EmailStatus } from './status-transitions.ts'

export interface Email {
  tenantId: string
  id: string
  contentId: string
  recipient: string
  /** Bare address, lower case. */
  sender: string
  /** `from` as submitted. */
  fromHeader: string
  subject: string
  tag: string | null
  metadata: Record<string, string> | null
  messageId: string
  test: boolean
  status: EmailStatus
  acceptedAt: Date
  /** When it is to leave or left; null: not scheduled. */
  scheduledAt: Date | null
  /** When it was cancelled before its scheduled time; null: it was not. */
  cancelledAt: Date | null
}

export const emailColumns = sql.part`
  tenant_id as "tenantId", id, content_id as "contentId", recipient, sender, from_header as "fromHeader", subject, tag, metadata,
  message_id as "messageId", test, status, accepted_at as "acceptedAt", scheduled_at as "scheduledAt", cancelled_at as "cancelledAt"`
