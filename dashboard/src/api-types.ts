/** API responses, as far as the pages use them (docs/generated/openapi.json). */

export type Status = 'pending' | 'sent' | 'softfail' | 'hardfail' | 'bounced' | 'held'
export const statuses: readonly Status[] = ['pending', 'sent', 'softfail', 'hardfail', 'bounced', 'held']

export interface Member {
  address: string
  role: 'owner' | 'admin' | 'viewer'
  tenantId: string | null
}

export interface Email {
  id: string
  tenantId: string
  to: string
  from: string
  subject: string
  status: Status
  timestampIso: string
  test: boolean
  tag?: string
}

export interface Attempt {
  id: string
  status: Status
  timestampIso: string
  details: string
  output: string
  code?: number
  sentWithSsl: boolean
  classification: string | null
  smtpEnhancedCode: string | null
  remoteHost: string | null
  tls?: { version: string | null; cipher: string | null; certificate: string | null; policy: string; mtaStsTestingFailure: string | null }
  sourceAddress?: string
  outcomeUnknown?: boolean
}

export interface TrackingEvent {
  url?: string
  ipAddress: string
  userAgent: string
  timestampIso: string
  source: 'human' | 'machine' | 'unknown'
  reason: string
}

type HitCounts = Record<'opens' | 'clicks', Record<'human' | 'machine', number>>

export interface EmailMore {
  attempts: { id: string; durationMs: number; conversation: string | null }[]
  request: Pick<LogEntry, 'requestId' | 'method' | 'path' | 'credential' | 'context'> | null
  webhooks: (WebhookDelivery & { webhookId: string; webhookName: string })[]
}

export interface EmailDetails extends Email {
  messageId: string
  test: boolean
  explanation: { now: string; next: string; nextAt: string | null; blockedBy: string | null; queuePosition: number | null }
  metadata?: Record<string, string>
  htmlBody?: string
  plainBody?: string
  headers?: Record<string, string>
  deliveries?: Attempt[]
  activity?: { opens: TrackingEvent[]; clicks: TrackingEvent[]; counts: HitCounts | undefined }
  attachments?: { filename: string; contentType: string; size: number; data: string }[]
  rawMessage?: string
}

export interface DnsRecord {
  type: string
  fullName: string
  value: string
  status: 'OK' | 'Missing' | 'Invalid' | null
  found: string[]
  problem: string | null
  suggestion: string | null
}

export interface DomainItem {
  id: number
  name: string
  verified: boolean
  tenantId: string
  tenant_name: string
  createdAt: string
}

export interface Domain extends DomainItem {
  dnsCheckedAt: string | null
  dnsRecords: { zone: string } & Record<'spf' | 'dkim' | 'dkimEd25519' | 'returnPath' | 'dmarc' | 'mx', DnsRecord | undefined>
}

export interface Suppression {
  id: string
  address: string
  reason?: string
  createdAt: string
  tenantId: string | null
  source: 'manual' | 'automatic'
  emailId?: string
}

export const webhookEvents = [
  'MessageSent',
  'MessageDelayed',
  'MessageDeliveryFailed',
  'MessageBounced',
  'MessageLoaded',
  'MessageLinkClicked',
  'MessageHeld',
  'DomainDNSError',
] as const

export interface Webhook {
  id: string
  name: string
  url: string
  events: string[]
  allEvents: boolean
  enabled: boolean
  disabledAt: string | null
  disabledReason: 'endpoint_gone' | 'requested' | null
  failingSince: string | null
  createdAt: string
  tenantId: string | null
  secret?: string
}

export interface WebhookDelivery {
  id: string
  event: string
  url: string
  attempt: number
  success: boolean
  statusCode: number | null
  willRetry: boolean
  timestamp: string
}

export interface WebhookDeliveryDetails extends WebhookDelivery {
  request: { headers: Record<string, string>; payload: object }
  response: { statusCode: number | null; body: string | null; duration: number; error: string | null }
}

export const permissions = ['emails:send', 'emails:read', 'domains:manage', 'webhooks:manage', 'suppressions:manage'] as const

export interface Key {
  id: number
  name: string
  type: 'api' | 'smtp'
  mode: 'live' | 'test'
  hold: boolean
  key?: string
  smtpUsername?: string
  lastUsedAt: string | null
  createdAt: string
  tenantId: string | null
  permissions: string[] | null
  keyPrefix: string
}

export interface Tenant {
  id: string
  name: string
  status: 'active' | 'suspended' | 'archived'
  isDefault: boolean
  pauseReason: string | null
  createdAt: string
}

export interface Counts {
  sent: number
  delivered: number
  soft_failed: number
  hard_failed: number
  bounced: number
  held: number
}

export interface Point extends Counts {
  timestamp: string
  complained: number
}

export interface OverTime {
  firstDay: string
  lastDay: string
  points: Point[]
}

export interface SendLimit {
  limit: number | null
  used: number
}

export interface Recent {
  delivered: { emails: number; p50Ms: number | null; p99Ms: number | null }
  failing: {
    recipientDomain: string
    deferred: number
    failed: number
    bounced: number
    classification: string | null
    lastReply: string
    lastAt: string
  }[]
}

export interface Health {
  queue: Record<string, number>
  overdueMs: number
  shardsUnowned: number
  restoreWaiting: boolean
}

export interface QueuePause {
  tenantId: string
  kind: 'destination' | 'provider' | 'domain'
  name: string
  reason: string
  at: string
}

export interface Queue {
  recipientDomains: {
    recipientDomain: string
    ready: number
    sending: number
    deferred: number
    overLimit: number
    held: number
    oldestAt: string
    nextDueAt: string | null
    perMinute: number
    lastReply: { details: string; output: string } | null
    delayReason: string | null
    pauseReason: string | null
  }[]
  pauses: QueuePause[]
  providers: {
    source: string
    provider: string
    connectionsOpen: number
    connections: number
    rate: number | null
    backoffUntilMs: number | null
    cause: string | null
    changedAt: string | null
  }[]
  warmUps: { source: string; provider: string; day: number; taken: number; ceiling: number }[]
}

export interface LogEntry {
  requestId: string
  timestamp: string
  method: string
  path: string
  endpoint: string
  statusCode: number
  durationMs: number
  credential: { id: string; keyPrefix: string | null }
  context: { ipAddress: string | null; userAgent: string | null; idempotencyKey: string | null; queryParams: object | null }
  error?: { code: string; message: string | null }
  email?: { id: string }
  request?: { body: object | string | null; bodySize: number | null }
  response?: { body: object | string | null; bodySize: number | null }
}
