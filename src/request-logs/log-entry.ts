/** An entry of the request log, before and after it is stored. */
import type { HeldBody } from './redact.ts'

/** Details of an entry that are not columns; null: unknown. */
export interface LogDetails {
  rateLimit: { limit: number | null; remaining: number | null; reset: number | null; limited: boolean }
  context: {
    ipAddress: string | null
    userAgent: string | null
    idempotencyKey: string | null
    queryParams: Record<string, unknown> | null
  }
  error: { code: string; message: string | null } | null
  email: { id: string; recipientCount: number | null } | null
  sdk: { name: string; version: string | null } | null
}

export interface LogEntry extends LogDetails {
  requestId: string
  at: Date
  method: string
  /** Without the query. */
  path: string
  endpoint: string
  statusCode: number
  durationMs: number
  credentialId: number
  keyPrefix: string
  /** The tenant concerned; null: the organisation. */
  tenantId: string | null
}

export interface NewEntry extends LogEntry {
  request: { size: number | null; body: HeldBody | null; isBroken: boolean }
  response: HeldBody | null
}

/** With its number within its process. */
export type NumberedEntry = NewEntry & { nth: number }
