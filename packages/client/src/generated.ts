/** Made from the OpenAPI document by `npm run golden`. Do not edit. */
import { type Api, at, type Options, type SendOptions } from './api.ts'
import type { Pages } from './pages.ts'
import type { EventStream } from './stream.ts'

/** What a request may be refused with. */
export type ErrorCode =
  | 'authentication_required'
  | 'invalid_api_key'
  | 'expired_api_key'
  | 'permission_denied'
  | 'tenant_mismatch'
  | 'credential_on_hold'
  | 'tenant_suspended'
  | 'tenant_archived'
  | 'sandbox_recipient_not_allowed'
  | 'not_found'
  | 'rate_limit_exceeded'
  | 'sandbox_limit_exceeded'
  | 'validation_error'
  | 'invalid_email_format'
  | 'invalid_json'
  | 'invalid_content_type'
  | 'payload_too_large'
  | 'domain_not_verified'
  | 'invalid_raw_message'
  | 'email_not_retryable'
  | 'email_content_expired'
  | 'invalid_idempotency_key'
  | 'idempotency_key_reused'
  | 'idempotency_in_progress'
  | 'default_tenant_protected'
  | 'domain_already_exists'
  | 'track_domain_already_exists'
  | 'webhook_disabled'
  | 'webhook_url_not_allowed'
  | 'internal_error'

export interface EmailToSend {
  /** `addr`, `Name <addr>` or `"Name" <addr>` */
  from: string
  to: string[]
  subject: string
  cc?: string[] | null | undefined
  bcc?: string[] | null | undefined
  /** A bare address */
  replyTo?: string | null | undefined
  html?: string | null | undefined
  /** Made from html when absent */
  text?: string | null | undefined
  tag?: string | null | undefined
  headers?: Record<string, string> | null | undefined
  attachments?: ({
    /** Standard base64, padding optional; at most 10 MB decoded */
    content: string
    contentType: string
    filename: string
    /** Makes the part inline, with this Content-ID */
    contentId?: string | null | undefined
  })[] | null | undefined
  /** At most 4096 octets as JSON; in every webhook about the email, never in the message */
  metadata?: Record<string, string> | null | undefined
  /** true: with one-click List-Unsubscribe headers (RFC 8058); needs exactly one recipient */
  unsubscribe?: boolean | null | undefined
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface SentEmail {
  /** The email of the first recipient */
  id: string
  tenantId: string
  messageId: string
  to: string[]
  status: 'pending' | 'sent'
  sandbox?: boolean
  /** Email of each recipient, cc and bcc included */
  messages: Record<string, {
    id: string
  }>
}

export interface EmailsListQuery {
  page?: number | undefined
  perPage?: number | undefined
  status?: 'pending' | 'sent' | 'softfail' | 'hardfail' | 'bounced' | 'held' | undefined
  /** Only mail sent with test keys, or (false) only live mail; with status, total counts to 1,000 */
  test?: boolean | undefined
  /** Recipient address */
  to?: string | undefined
  /** Sender address, without display name */
  from?: string | undefined
  tag?: string | undefined
  /** Accepted later than: unix seconds or ISO 8601 */
  after?: string | undefined
  /** Accepted earlier than */
  before?: string | undefined
  /** Words of the subject, or their beginnings; with it, total counts to 1,000 */
  subject?: string | undefined
  /** The sender's domain; with it, total counts to 1,000 */
  domain?: string | undefined
  /** The key it was sent with; with it, total counts to 1,000 */
  credentialId?: number | undefined
  /** name:value; with it, total counts to 1,000 */
  metadata?: string | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface ListedEmail {
  id: string
  tenantId: string
  to: string
  from: string
  subject: string
  status: 'pending' | 'sent' | 'softfail' | 'hardfail' | 'bounced' | 'held'
  /** Sent with a test key */
  test: boolean
  /** Seconds since the epoch */
  timestamp: number
  timestampIso: string
  tag?: string
  messageId: string
}

export interface BatchToSend {
  /** `addr`, `Name <addr>` or `"Name" <addr>` */
  from: string
  emails: ({
    to: string[]
    subject: string
    cc?: string[] | null | undefined
    bcc?: string[] | null | undefined
    /** A bare address */
    replyTo?: string | null | undefined
    html?: string | null | undefined
    /** Made from html when absent */
    text?: string | null | undefined
    tag?: string | null | undefined
    headers?: Record<string, string> | null | undefined
    attachments?: ({
      /** Standard base64, padding optional; at most 10 MB decoded */
      content: string
      contentType: string
      filename: string
      /** Makes the part inline, with this Content-ID */
      contentId?: string | null | undefined
    })[] | null | undefined
    /** At most 4096 octets as JSON; in every webhook about the email, never in the message */
    metadata?: Record<string, string> | null | undefined
    /** true: with one-click List-Unsubscribe headers (RFC 8058); needs exactly one recipient */
    unsubscribe?: boolean | null | undefined
  })[]
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface SentBatch {
  total: number
  accepted: number
  failed: number
  /** Email of each recipient, cc and bcc included */
  messages: Record<string, {
    id: string
  }>
  tenantId: string
  sandbox?: boolean
  /** One for each element, in order */
  results: ({
    index: number
    status: 'accepted' | 'failed'
    id?: string
    /** Email of each recipient, cc and bcc included */
    messages?: Record<string, {
      id: string
    }>
    error?: {
      code: 'authentication_required' | 'invalid_api_key' | 'expired_api_key' | 'permission_denied' | 'tenant_mismatch' | 'credential_on_hold' | 'tenant_suspended' | 'tenant_archived' | 'sandbox_recipient_not_allowed' | 'not_found' | 'rate_limit_exceeded' | 'sandbox_limit_exceeded' | 'validation_error' | 'invalid_email_format' | 'invalid_json' | 'invalid_content_type' | 'payload_too_large' | 'domain_not_verified' | 'invalid_raw_message' | 'email_not_retryable' | 'email_content_expired' | 'invalid_idempotency_key' | 'idempotency_key_reused' | 'idempotency_in_progress' | 'default_tenant_protected' | 'domain_already_exists' | 'track_domain_already_exists' | 'webhook_disabled' | 'webhook_url_not_allowed' | 'internal_error'
      /** For people; may change */
      message: string
      suggestion: string
      /** JSON path of the first field concerned, such as `to[3]` */
      field?: string
      /** Every field concerned, at most 20 */
      details?: {
        field: string
        message: string
      }[]
    }
  })[]
}

export interface RawEmailToSend {
  /** `addr`, `Name <addr>` or `"Name" <addr>` */
  from: string
  to: string[]
  /** An RFC 5322 message, at most 14 MB decoded */
  rawMessage: string
  /** true: sent with the empty return path */
  bounce?: boolean | null | undefined
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface EmailsRetrieveQuery {
  /** Comma-separated: full, content, headers, deliveries, activity, attachments, raw */
  expand?: string | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface Email {
  id: string
  tenantId: string
  to: string
  from: string
  subject: string
  status: 'pending' | 'sent' | 'softfail' | 'hardfail' | 'bounced' | 'held'
  scope: 'outgoing' | 'incoming'
  /** Seconds since the epoch */
  timestamp: number
  timestampIso: string
  messageId: string
  tag?: string
  spam: boolean
  spamScore: number
  /** Sent with a test key */
  test: boolean
  /** Where the email is and why, and what comes next */
  explanation: {
    now: string
    next: string
    nextAt: string | null
    blockedBy: string | null
    queuePosition: number | null
  }
  metadata?: Record<string, string>
  /** expand: content */
  htmlBody?: string
  /** expand: content */
  plainBody?: string
  /** expand: headers */
  headers?: Record<string, string>
  /** expand: deliveries */
  deliveries?: ({
    id: string
    status: 'sent' | 'softfail' | 'hardfail' | 'held' | 'bounced'
    /** Seconds since the epoch */
    timestamp: number
    timestampIso: string
    details: string
    /** The remote's reply; empty when there was none */
    output: string
    /** SMTP reply code */
    code?: number
    sentWithSsl: boolean
    classification: string | null
    classificationCode: number | null
    smtpEnhancedCode: string | null
    remoteHost: string | null
    /** The encryption of the connection; absent when none was made */
    tls?: {
      /** Null: it was not encrypted */
      version: string | null
      cipher: string | null
      /** `valid`, or what is wrong with it */
      certificate: string | null
      /** `dane`, `mta-sts`, `mta-sts testing`, `required` or `opportunistic` */
      policy: string
      /** What an MTA-STS policy in testing would not have let pass */
      mtaStsTestingFailure: string | null
    }
    /** Our address it was sent from, where sources are set up */
    sourceAddress?: string
    /** Only when it is not known whether the remote took the message */
    outcomeUnknown?: boolean
  })[]
  /** expand: activity; oldest first */
  activity?: {
    opens: ({
      ipAddress: string
      userAgent: string
      /** Seconds since the epoch */
      timestamp: number
      timestampIso: string
      /** Whether a person did it or a program, as far as can be told */
      source: 'human' | 'machine' | 'unknown'
      /** Why `source` is what it is */
      reason: string
    })[]
    clicks: ({
      url: string
      ipAddress: string
      userAgent: string
      /** Seconds since the epoch */
      timestamp: number
      timestampIso: string
      /** Whether a person did it or a program, as far as can be told */
      source: 'human' | 'machine' | 'unknown'
      /** Why `source` is what it is */
      reason: string
    })[]
    counts: {
      opens: {
        human: number
        machine: number
        unknown: number
      }
      clicks: {
        human: number
        machine: number
        unknown: number
      }
    }
  }
  /** expand: attachments */
  attachments?: {
    filename: string
    contentType: string
    /** Octets */
    size: number
    /** SHA-256 */
    hash: string
    data: string
  }[]
  /** expand: raw; the octets that were sent. A server without 8BITMIME was sent an 8-bit message in seven bits, signed anew */
  rawMessage?: string
}

export interface OfTenant {
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface EmailDeliveries {
  id: string
  tenantId: string
  status: 'pending' | 'sent' | 'softfail' | 'hardfail' | 'bounced' | 'held'
  /** The content is still stored */
  canRetryManually: boolean
  deliveries: ({
    id: string
    status: 'sent' | 'softfail' | 'hardfail' | 'held' | 'bounced'
    /** Seconds since the epoch */
    timestamp: number
    timestampIso: string
    details: string
    /** The remote's reply; empty when there was none */
    output: string
    /** SMTP reply code */
    code?: number
    sentWithSsl: boolean
    classification: string | null
    classificationCode: number | null
    smtpEnhancedCode: string | null
    remoteHost: string | null
    /** The encryption of the connection; absent when none was made */
    tls?: {
      /** Null: it was not encrypted */
      version: string | null
      cipher: string | null
      /** `valid`, or what is wrong with it */
      certificate: string | null
      /** `dane`, `mta-sts`, `mta-sts testing`, `required` or `opportunistic` */
      policy: string
      /** What an MTA-STS policy in testing would not have let pass */
      mtaStsTestingFailure: string | null
    }
    /** Our address it was sent from, where sources are set up */
    sourceAddress?: string
    /** Only when it is not known whether the remote took the message */
    outcomeUnknown?: boolean
  })[]
  retryState: {
    attempt: number
    maxAttempts: number
    attemptsRemaining: number
    manual: boolean
    processing: boolean
    nextRetryAt: number | null
    nextRetryAtIso: string | null
  } | null
}

export interface EmailsRetryData {
  id: string
  message: string
  tenantId: string
}

export interface TenantsCreateBody {
  name: string
  /** At most 8192 bytes as JSON */
  metadata?: Record<string, string | number | boolean | null> | null | undefined
}

export interface Tenant {
  id: string
  name: string
  status: 'active' | 'suspended' | 'archived'
  /** At most 8192 bytes as JSON */
  metadata: Record<string, string | number | boolean | null>
  createdAt: string
  updatedAt: string
  /** Older spelling of createdAt */
  created_at: string
  /** Older spelling of updatedAt */
  updated_at: string
  /** Emails without a tenantId are sent from it */
  isDefault: boolean
  /** Why its mail is held, by an operator or by the abuse brake; null: it is not paused */
  pauseReason: string | null
}

export interface TenantsListQuery {
  page?: number | undefined
  perPage?: number | undefined
  status?: 'active' | 'suspended' | 'archived' | undefined
}

export interface TenantsUpdateBody {
  name?: string | undefined
  /** At most 8192 bytes as JSON */
  metadata?: Record<string, string | number | boolean | null> | null | undefined
  status?: 'active' | 'suspended' | 'archived' | undefined
}

export interface Deleted {
  deleted: true
}

export interface CredentialsCreateBody {
  name: string
  type: 'api' | 'smtp'
  mode?: 'live' | 'test' | null | undefined
  /** null: full access */
  permissions?: ('emails:send' | 'emails:read' | 'domains:manage' | 'webhooks:manage' | 'suppressions:manage')[] | null | undefined
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface Credential {
  id: number
  name: string
  type: 'api' | 'smtp'
  /** Every request with it is refused */
  hold: boolean
  /** The secret; shown when it is made */
  key?: string
  /** Of an SMTP login, together with the key */
  smtpUsername?: string
  lastUsedAt: string | null
  createdAt: string
  updatedAt: string
  /** null: organisation-level */
  tenantId: string | null
  mode: 'live' | 'test'
  /** null: full access */
  permissions: ('emails:send' | 'emails:read' | 'domains:manage' | 'webhooks:manage' | 'suppressions:manage')[] | null
  keyPrefix: string
}

export interface CredentialsListQuery {
  page?: number | undefined
  perPage?: number | undefined
  type?: 'api' | 'smtp' | undefined
  /** Without tenantId: of all tenants as well, not only those of the organisation */
  all?: boolean | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface Reveal {
  /** With its key, where the operator keeps keys (POSTRIDER_REVEAL_KEYS) */
  reveal?: boolean | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface CredentialsUpdateBody {
  name?: string | undefined
  hold?: boolean | undefined
  /** null: full access */
  permissions?: ('emails:send' | 'emails:read' | 'domains:manage' | 'webhooks:manage' | 'suppressions:manage')[] | null | undefined
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface DomainsCreateBody {
  /** A host name of at least two labels */
  name: string
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface Domain {
  id: number
  /** A-labels */
  name: string
  /** Mail may be sent from it */
  verified: boolean
  tenant_id: string
  tenant_name: string
  tenantId: string
  createdAt: string
  uuid: string
  verifiedAt: string | null
  dnsCheckedAt: string | null
  dnsRecords: {
    /** The registrable domain by the Public Suffix List */
    zone: string
    spf: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** What to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** What the last check found instead or as well; at most 5 values */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    dkim: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** What to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** What the last check found instead or as well; at most 5 values */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    returnPath: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** What to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** What the last check found instead or as well; at most 5 values */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    /** Not needed for verified */
    dkimEd25519: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** What to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** What the last check found instead or as well; at most 5 values */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    /** Advice only */
    dmarc: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** What to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** What the last check found instead or as well; at most 5 values */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    /** Advice only; the value is an example */
    mx: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** What to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** What the last check found instead or as well; at most 5 values */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
  }
}

export interface DomainsListData {
  domains: {
    id: number
    /** A-labels */
    name: string
    /** Mail may be sent from it */
    verified: boolean
    tenant_id: string
    tenant_name: string
    tenantId: string
    createdAt: string
  }[]
}

export interface DoneMessage {
  message: string
}

export interface TrackingCreateBody {
  domainId: number | string
  name: string
  sslEnabled?: boolean | null | undefined
  trackClicks?: boolean | null | undefined
  trackOpens?: boolean | null | undefined
  /** Host names, comma-separated; links to them and below are left alone */
  excludedClickDomains?: string | null | undefined
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TrackDomain {
  id: string
  name: string
  fullName: string
  /** The number of the sending domain */
  domainId: string
  trackClicks: boolean
  trackOpens: boolean
  sslEnabled: boolean
  /** The CNAME has been seen */
  dnsOk: boolean
  dnsStatus: 'ok' | 'missing' | 'invalid' | null
  dnsError: string | null
  dnsCheckedAt: string | null
  dnsRecord: {
    type: 'CNAME'
    /** Relative to the zone */
    name: string
    fullName: string
    value: string
  } | null
  /** Comma-separated */
  excludedClickDomains: string | null
  createdAt: string
  updatedAt: string | null
  tenantId: string
}

export interface TrackingListData {
  trackDomains: ({
    id: string
    name: string
    fullName: string
    /** The number of the sending domain */
    domainId: string
    trackClicks: boolean
    trackOpens: boolean
    sslEnabled: boolean
    /** The CNAME has been seen */
    dnsOk: boolean
    dnsStatus: 'ok' | 'missing' | 'invalid' | null
    dnsError: string | null
    dnsCheckedAt: string | null
    dnsRecord: {
      type: 'CNAME'
      /** Relative to the zone */
      name: string
      fullName: string
      value: string
    } | null
    /** Comma-separated */
    excludedClickDomains: string | null
    createdAt: string
    updatedAt: string | null
    tenantId: string
  })[]
}

export interface TrackingUpdateBody {
  sslEnabled?: boolean | null | undefined
  trackClicks?: boolean | null | undefined
  trackOpens?: boolean | null | undefined
  /** Host names, comma-separated; links to them and below are left alone */
  excludedClickDomains?: string | null | undefined
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TrackingVerifyData {
  id: string
  fullName: string
  /** The CNAME has been seen */
  dnsOk: boolean
  dnsStatus: 'ok' | 'missing' | 'invalid' | null
  dnsError: string | null
  dnsCheckedAt: string | null
  dnsRecord: {
    type: 'CNAME'
    /** Relative to the zone */
    name: string
    fullName: string
    value: string
  } | null
}

export interface SuppressionsCreateBody {
  address: string
  reason?: string | null | undefined
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface Suppression {
  id: string
  /** Lower case */
  address: string
  reason?: string
  createdAt: string
  /** null: the organisation's list */
  tenantId: string | null
  source: 'manual' | 'automatic'
  /** The email that an automatic entry came from */
  emailId?: string
}

export interface SuppressionsListQuery {
  page?: number | undefined
  perPage?: number | undefined
  /** Contained in the address */
  address?: string | undefined
  /** Exactly this reason */
  reason?: string | undefined
  /** Without tenantId: of all tenants as well, not only those of the organisation */
  all?: boolean | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface SuppressionsBulkCreateBody {
  suppressions: ({
    address: string
    reason?: string | null | undefined
  })[]
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface SuppressionsBulkCreateData {
  totalRequested: number
  added: number
  /** Listed already, or repeated in the request */
  updated: number
  /** No valid address */
  failed: number
}

export interface SuppressionsRetrieveData {
  address: string
  suppressed: boolean
  reason: string | null
  createdAt: string | null
}

export interface WebhooksCreateBody {
  name: string
  /** https; leads to no private network */
  url: string
  events?: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError')[] | null | undefined
  /** Wins over events */
  allEvents?: boolean | null | undefined
  enabled?: boolean | null | undefined
  /** How long an answer is waited for; 5 when not given */
  timeoutSeconds?: number | null | undefined
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface Webhook {
  id: string
  uuid: string
  name: string
  url: string
  /** Empty: all */
  events: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError')[]
  allEvents: boolean
  enabled: boolean
  /** null: it is enabled, or was disabled before this was kept */
  disabledAt: string | null
  /** `endpoint_gone`: its receiver answered 410; `requested`: over the API or in the dashboard */
  disabledReason: 'endpoint_gone' | 'requested' | null
  timeoutSeconds: number
  /** null: it does not fail, or it is off */
  failingSince: string | null
  createdAt: string
  updatedAt: string
  /** null: hears of every tenant */
  tenantId: string | null
  /** `whsec_` and base64: the key of webhook-signature */
  secret?: string
}

export interface WebhooksListQuery {
  /** Without tenantId: of all tenants as well, not only those of the organisation */
  all?: boolean | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface WebhooksListData {
  webhooks: ({
    id: string
    uuid: string
    name: string
    url: string
    /** Empty: all */
    events: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError')[]
    allEvents: boolean
    enabled: boolean
    /** null: it is enabled, or was disabled before this was kept */
    disabledAt: string | null
    /** `endpoint_gone`: its receiver answered 410; `requested`: over the API or in the dashboard */
    disabledReason: 'endpoint_gone' | 'requested' | null
    timeoutSeconds: number
    /** null: it does not fail, or it is off */
    failingSince: string | null
    createdAt: string
    updatedAt: string
    /** null: hears of every tenant */
    tenantId: string | null
    /** `whsec_` and base64: the key of webhook-signature */
    secret?: string
  })[]
}

export interface WebhooksRetrieveQuery {
  /** With its secret */
  reveal?: boolean | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface WebhooksUpdateBody {
  name?: string | null | undefined
  /** https; leads to no private network */
  url?: string | null | undefined
  events?: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError')[] | null | undefined
  /** Wins over events */
  allEvents?: boolean | null | undefined
  enabled?: boolean | null | undefined
  /** How long an answer is waited for; 5 when not given */
  timeoutSeconds?: number | null | undefined
  /** Makes a new secret; the old one signs too for 24 hours */
  rotateSecret?: boolean | null | undefined
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface WebhooksTestBody {
  event: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError'
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface WebhooksTestData {
  /** A 2xx answer */
  success: boolean
  event: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError'
  /** Milliseconds */
  duration: number
  durationMs: number
  /** The beginning of the answer */
  body: string | null
  /** Why there was no answer */
  error: string | null
  statusCode: number | null
}

export interface WebhooksListDeliveriesQuery {
  page?: number | undefined
  perPage?: number | undefined
  /** Later than: unix seconds */
  after?: number | undefined
  /** Earlier than: unix seconds */
  before?: number | undefined
  success?: boolean | undefined
  event?: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface WebhookDelivery {
  id: string
  webhookId: string
  /** Of the event */
  tenantId: string
  event: string
  /** At the time of the attempt */
  url: string
  attempt: number
  /** A 2xx answer */
  success: boolean
  /** null: no HTTP answer */
  statusCode: number | null
  willRetry: boolean
  timestamp: string
}

export interface WebhooksRetrieveDeliveryData {
  id: string
  webhookId: string
  /** Of the event */
  tenantId: string
  event: string
  /** At the time of the attempt */
  url: string
  attempt: number
  /** A 2xx answer */
  success: boolean
  /** null: no HTTP answer */
  statusCode: number | null
  willRetry: boolean
  timestamp: string
  webhookName: string
  request: {
    headers: Record<string, string>
    /** The whole body sent */
    payload: Record<string, unknown>
  }
  response: {
    statusCode: number | null
    /** The beginning of the answer */
    body: string | null
    /** Milliseconds */
    duration: number
    /** Why there was no answer */
    error: string | null
  }
}

export interface WebhooksReplayDeliveryData {
  success: boolean
  statusCode: number | null
  /** Milliseconds */
  duration: number
  originalDeliveryId: string
  newDeliveryId: string
  timestamp: string
}

export interface WebhooksReplayBody {
  /** Later than: unix seconds */
  after: number
  /** Earlier than: unix seconds */
  before: number
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface WebhooksReplayData {
  /** Events that the webhook hears of again, each under the id it had before */
  queued: number
}

export interface PlatformWebhooksCreateBody {
  name: string
  /** https; leads to no private network */
  url: string
  /** Empty: all */
  events?: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError')[] | null | undefined
  enabled?: boolean | null | undefined
  /** How long an answer is waited for; 5 when not given */
  timeoutSeconds?: number | null | undefined
}

export interface PlatformWebhooksCreateData {
  id: string
  uuid: string
  name: string
  url: string
  /** Empty: all */
  events: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError')[]
  allEvents: boolean
  enabled: boolean
  /** null: it is enabled, or was disabled before this was kept */
  disabledAt: string | null
  /** `endpoint_gone`: its receiver answered 410; `requested`: over the API or in the dashboard */
  disabledReason: 'endpoint_gone' | 'requested' | null
  timeoutSeconds: number
  /** null: it does not fail, or it is off */
  failingSince: string | null
  createdAt: string
  updatedAt: string
  /** `whsec_` and base64: the key of webhook-signature */
  secret?: string
}

export interface PlatformWebhooksRetrieveQuery {
  /** With its secret */
  reveal?: boolean | undefined
}

export interface PlatformWebhooksUpdateBody {
  name?: string | null | undefined
  /** https; leads to no private network */
  url?: string | null | undefined
  /** Empty: all */
  events?: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError')[] | null | undefined
  enabled?: boolean | null | undefined
  /** How long an answer is waited for; 5 when not given */
  timeoutSeconds?: number | null | undefined
  /** Makes a new secret; the old one signs too for 24 hours */
  rotateSecret?: boolean | null | undefined
}

export interface PlatformWebhooksTestBody {
  event: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError'
}

export interface PlatformWebhooksTestData {
  /** A 2xx answer */
  success: boolean
  event: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError'
  /** Milliseconds */
  duration: number
  durationMs: number
  /** The beginning of the answer */
  body: string | null
  /** Why there was no answer */
  error: string | null
  /** 0: no HTTP answer */
  statusCode: number
}

export interface PlatformWebhooksListDeliveriesQuery {
  page?: number | undefined
  perPage?: number | undefined
  /** Later than: unix seconds */
  after?: number | undefined
  /** Earlier than: unix seconds */
  before?: number | undefined
  success?: boolean | undefined
  event?: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | undefined
  /** Only this tenant */
  tenantId?: string | undefined
  /** Only this webhook */
  webhookId?: string | undefined
}

export interface UsageRetrieveQuery {
  /** today, yesterday, this_week, last_week, this_month, last_month, last_7_days, last_30_days, last_90_days, a month, a day, or two days */
  period?: string | undefined
  /** IANA name; fixes when days begin */
  timezone?: string | undefined
}

export interface UsageRetrieveData {
  period: {
    start: string
    /** The last millisecond */
    end: string
  }
  emails: {
    /** All that were accepted */
    sent: number
    delivered: number
    soft_failed: number
    hard_failed: number
    bounced: number
    held: number
    /** Of those, sent with test keys */
    test: number
  }
  rates: {
    delivery_rate: number
    bounce_rate: number
  }
  tenants: {
    total: number
    active: number
    /** With at least one email in the period */
    withActivity: number
  }
  rateLimit: {
    limit: number
    remaining: number
    /** Unix seconds */
    reset: number
    period: 'second'
  }
  /** null while the counter is unavailable */
  sendLimit: {
    /** null: unlimited */
    limit: number | null
    used: number
    remaining: number | null
    usagePercent: number | null
    /** Over 90 % */
    approaching: boolean
    /** No capacity left this hour */
    exceeded: boolean
    period: 'hour'
    resetsAt: string
  } | null
  billing: null
}

export interface UsageListTenantsQuery {
  /** today, yesterday, this_week, last_week, this_month, last_month, last_7_days, last_30_days, last_90_days, a month, a day, or two days */
  period?: string | undefined
  /** IANA name; fixes when days begin */
  timezone?: string | undefined
  page?: number | undefined
  perPage?: number | undefined
  status?: 'active' | 'suspended' | 'archived' | undefined
  /** Only tenants with at least this many */
  minSent?: number | undefined
  /** Only mail sent with test keys, or (false) only live mail */
  test?: boolean | undefined
  /** With a minus: descending */
  sort?: 'sent' | '-sent' | 'delivered' | '-delivered' | 'bounce_rate' | '-bounce_rate' | 'delivery_rate' | '-delivery_rate' | 'tenant_name' | '-tenant_name' | undefined
}

export interface UsageListTenantsItem {
  tenantId: string
  tenantName: string
  /** externalId or external_id of its metadata */
  externalId: string | null
  status: 'active' | 'suspended' | 'archived'
  emails: {
    /** All that were accepted */
    sent: number
    delivered: number
    soft_failed: number
    hard_failed: number
    bounced: number
    held: number
    /** Of those, sent with test keys */
    test: number
  }
  rates: {
    delivery_rate: number
    bounce_rate: number
  }
}

export interface UsageExportQuery {
  /** today, yesterday, this_week, last_week, this_month, last_month, last_7_days, last_30_days, last_90_days, a month, a day, or two days */
  period?: string | undefined
  /** IANA name; fixes when days begin */
  timezone?: string | undefined
  status?: 'active' | 'suspended' | 'archived' | undefined
  /** Only tenants with at least this many */
  minSent?: number | undefined
  /** Else the Accept header decides */
  format?: 'csv' | 'jsonl' | 'json' | undefined
}

export interface UsageRetrieveTenantData {
  tenant_id: string
  tenant_name: string
  /** externalId or external_id of its metadata */
  external_id: string | null
  period: {
    start: string
    /** The last millisecond */
    end: string
  }
  emails: {
    /** All that were accepted */
    sent: number
    delivered: number
    soft_failed: number
    hard_failed: number
    bounced: number
    held: number
    /** Of those, sent with test keys */
    test: number
  }
  rates: {
    delivery_rate: number
    bounce_rate: number
  }
}

export interface UsageRetrieveTenantTimeseriesQuery {
  /** today, yesterday, this_week, last_week, this_month, last_month, last_7_days, last_30_days, last_90_days, a month, a day, or two days */
  period?: string | undefined
  /** IANA name; fixes when days begin */
  timezone?: string | undefined
  granularity?: 'hour' | 'day' | 'week' | 'month' | undefined
}

export interface UsageRetrieveTenantTimeseriesData {
  tenant_id: string
  tenant_name: string
  period: {
    start: string
    /** The last millisecond */
    end: string
  }
  granularity: 'hour' | 'day' | 'week' | 'month'
  data: {
    timestamp: string
    /** All that were accepted */
    sent: number
    delivered: number
    soft_failed: number
    hard_failed: number
    bounced: number
    held: number
  }[]
}

export interface Limits {
  rateLimit: {
    limit: number
    remaining: number
    /** Unix seconds */
    reset: number
    period: 'second'
  }
  /** null while the counter is unavailable */
  sendLimit: {
    /** null: unlimited */
    limit: number | null
    used: number
    remaining: number | null
    usagePercent: number | null
    /** Over 90 % */
    approaching: boolean
    /** No capacity left this hour */
    exceeded: boolean
    period: 'hour'
    resetsAt: string
  } | null
  billing: null
}

export interface EventsStreamQuery {
  /** Only this tenant */
  tenantId?: string | undefined
  /** Only these, separated by commas: MessageSent, MessageDelayed, MessageDeliveryFailed, MessageBounced, MessageLoaded, MessageLinkClicked, MessageHeld, DomainDNSError, SendLimitApproaching, SendLimitExceeded */
  events?: string | undefined
  /** The id after which to go on; the header Last-Event-ID wins. Without either: from now on */
  after?: string | undefined
}

export interface TestAdvanceBody {
  seconds: number
  /** The tenant; absent or null: the key's own, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TestAdvanceData {
  /** What the test clock shows; less than asked for when 25 seconds were not enough */
  now: string
}

export interface TestInboxListQuery {
  page?: number | undefined
  perPage?: number | undefined
  /** Recipient address */
  to?: string | undefined
  /** Part of the recipient, the sender or the subject */
  search?: string | undefined
  /** Seconds to wait for mail that matches and comes after the request, or with since is there already */
  wait?: number | undefined
  /** An email id: that email and those accepted after it. Unix seconds or ISO 8601: accepted then or later */
  since?: string | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface ReceivedEmail {
  /** The same as emailId */
  id: string
  emailId: string
  /** The recipient */
  to: string
  from: string
  subject: string
  /** As it was sent; null: none */
  html: string | null
  /** As it was sent */
  text: string
  /** Those of html, then those of text, each once */
  links: string[]
  /** By the tenant's test clock */
  receivedAt: string
}

export interface TestInboxClearData {
  deleted: number
}

export interface LogsListQuery {
  page?: number | undefined
  perPage?: number | undefined
  /** error: 400 and above */
  status?: 'success' | 'error' | undefined
  statusCode?: number | undefined
  /** Exact log name, such as `emails.send` */
  endpoint?: string | undefined
  credentialId?: string | undefined
  /** A part of it */
  requestId?: string | undefined
  /** At or after: ISO 8601 */
  startDate?: string | undefined
  /** At or before */
  endDate?: string | undefined
  /** Only this tenant */
  tenantId?: string | undefined
}

export interface LoggedRequest {
  requestId: string
  timestamp: string
  method: string
  /** Without the query */
  path: string
  /** Its log name, such as `emails.send`; `unknown` for a route that does not exist */
  endpoint: string
  statusCode: number
  durationMs: number
  credential: {
    id: string
    /** The first 8 characters */
    keyPrefix: string | null
  }
  /** null: the key has no limit */
  rateLimit: {
    limit: number | null
    remaining: number | null
    /** Unix seconds */
    reset: number | null
    /** The request was refused for it */
    limited: boolean
  }
  context: {
    ipAddress: string | null
    userAgent: string | null
    idempotencyKey: string | null
    queryParams: Record<string, unknown> | null
  }
  error: {
    code: string
    message: string | null
  } | null
  /** On the endpoints of emails: the email, the first one of several */
  email: {
    id: string
    recipientCount: number | null
  } | null
  sdk: {
    name: string
    version: string | null
  } | null
  /** The tenant the request was about */
  tenantId: string | null
}

export interface LogsRetrieveData {
  requestId: string
  timestamp: string
  method: string
  /** Without the query */
  path: string
  /** Its log name, such as `emails.send`; `unknown` for a route that does not exist */
  endpoint: string
  statusCode: number
  durationMs: number
  credential: {
    id: string
    /** The first 8 characters */
    keyPrefix: string | null
  }
  /** null: the key has no limit */
  rateLimit: {
    limit: number | null
    remaining: number | null
    /** Unix seconds */
    reset: number | null
    /** The request was refused for it */
    limited: boolean
  }
  context: {
    ipAddress: string | null
    userAgent: string | null
    idempotencyKey: string | null
    queryParams: Record<string, unknown> | null
  }
  error: {
    code: string
    message: string | null
  } | null
  /** On the endpoints of emails: the email, the first one of several */
  email: {
    id: string
    recipientCount: number | null
  } | null
  sdk: {
    name: string
    version: string | null
  } | null
  /** The tenant the request was about */
  tenantId: string | null
  request: {
    /** At most 25,600 octets, without secrets and attached content; an object when it is complete JSON */
    body: Record<string, unknown> | string | null
    /** Octets of the whole */
    bodySize: number | null
  }
  response: {
    /** At most 25,600 octets, without secrets and attached content; an object when it is complete JSON */
    body: Record<string, unknown> | string | null
    /** Octets of the whole */
    bodySize: number | null
  }
}

/** What is the organisation's own; a tenant is named in the body or query, or not at all. */
export const organisationApi = (api: Api) => ({
  emails: {
    /** Send one email. Permission `emails:send`. */
    send(body: EmailToSend, options: SendOptions = {}): Promise<SentEmail> {
      return api.send(`/emails`, { body, options })
    },
    /** List emails, newest first. Permission `emails:read`. */
    list(query: EmailsListQuery = {}, options: Options = {}): Pages<ListedEmail> {
      return api.pages(`/emails`, query, options)
    },
    /** Send up to 100 emails. Permission `emails:send`. */
    sendBatch(body: BatchToSend, options: SendOptions = {}): Promise<SentBatch> {
      return api.send(`/emails/batch`, { body, options })
    },
    /** Send a message of your own making. Permission `emails:send`. */
    sendRaw(body: RawEmailToSend, options: SendOptions = {}): Promise<SentEmail> {
      return api.send(`/emails/raw`, { body, options })
    },
    /** One email in detail. Permission `emails:read`. */
    retrieve(emailId: string, query: EmailsRetrieveQuery = {}, options: Options = {}): Promise<Email> {
      return api.ask('GET', `/emails/${at(emailId)}`, { query, options })
    },
    /** Every delivery attempt of an email. Permission `emails:read`. */
    retrieveDeliveries(emailId: string, query: OfTenant = {}, options: Options = {}): Promise<EmailDeliveries> {
      return api.ask('GET', `/emails/${at(emailId)}/deliveries`, { query, options })
    },
    /** Try to deliver an email again, now. Permission `emails:send`. */
    retry(emailId: string, query: OfTenant = {}, options: Options = {}): Promise<EmailsRetryData> {
      return api.ask('POST', `/emails/${at(emailId)}/retry`, { query, options })
    },
    /** Send the email of a test key for real, with a live key, to its recipient alone. Permission `emails:send`. */
    promote(emailId: string, query: OfTenant = {}, options: SendOptions = {}): Promise<SentEmail> {
      return api.send(`/emails/${at(emailId)}/promote`, { query, options })
    },
  },
  tenants: {
    /** Make a tenant. A key with full access, at organisation level. */
    create(body: TenantsCreateBody, options: Options = {}): Promise<Tenant> {
      return api.ask('POST', `/tenants`, { body, options })
    },
    /** List tenants, newest first. A key with full access, at organisation level. */
    list(query: TenantsListQuery = {}, options: Options = {}): Pages<Tenant> {
      return api.pages(`/tenants`, query, options)
    },
    /** One tenant. An organisation-level key with full access, or any key of the tenant. */
    retrieve(tenantId: string, options: Options = {}): Promise<Tenant> {
      return api.ask('GET', `/tenants/${at(tenantId)}`, { options })
    },
    /** Change a tenant. A key with full access, at organisation level. */
    update(tenantId: string, body: TenantsUpdateBody, options: Options = {}): Promise<Tenant> {
      return api.ask('PATCH', `/tenants/${at(tenantId)}`, { body, options })
    },
    /** Delete a tenant with all it has; its emails and logs stay until their retention. A key with full access, at organisation level. */
    delete(tenantId: string, options: Options = {}): Promise<Deleted> {
      return api.ask('DELETE', `/tenants/${at(tenantId)}`, { options })
    },
  },
  platformWebhooks: {
    /** Make a webhook that hears of every tenant. Permission `webhooks:manage`, at organisation level. */
    create(body: PlatformWebhooksCreateBody, options: Options = {}): Promise<PlatformWebhooksCreateData> {
      return api.ask('POST', `/platform/webhooks`, { body, options })
    },
    /** List the webhooks that hear of every tenant. Permission `webhooks:manage`, at organisation level. */
    list(options: Options = {}): Promise<({
      id: string
      uuid: string
      name: string
      url: string
      /** Empty: all */
      events: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError')[]
      allEvents: boolean
      enabled: boolean
      /** null: it is enabled, or was disabled before this was kept */
      disabledAt: string | null
      /** `endpoint_gone`: its receiver answered 410; `requested`: over the API or in the dashboard */
      disabledReason: 'endpoint_gone' | 'requested' | null
      timeoutSeconds: number
      /** null: it does not fail, or it is off */
      failingSince: string | null
      createdAt: string
      updatedAt: string
      /** `whsec_` and base64: the key of webhook-signature */
      secret?: string
    })[]> {
      return api.ask('GET', `/platform/webhooks`, { options })
    },
    /** One webhook that hears of every tenant. Permission `webhooks:manage`, at organisation level. */
    retrieve(webhookId: string, query: PlatformWebhooksRetrieveQuery = {}, options: Options = {}): Promise<PlatformWebhooksCreateData> {
      return api.ask('GET', `/platform/webhooks/${at(webhookId)}`, { query, options })
    },
    /** Change a webhook that hears of every tenant. Permission `webhooks:manage`, at organisation level. */
    update(webhookId: string, body: PlatformWebhooksUpdateBody, options: Options = {}): Promise<PlatformWebhooksCreateData> {
      return api.ask('PATCH', `/platform/webhooks/${at(webhookId)}`, { body, options })
    },
    /** Delete a webhook that hears of every tenant. Permission `webhooks:manage`, at organisation level. */
    delete(webhookId: string, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `/platform/webhooks/${at(webhookId)}`, { options })
    },
    /** Send one sample request now, marked `_test`. Permission `webhooks:manage`, at organisation level. */
    test(webhookId: string, body: PlatformWebhooksTestBody, options: Options = {}): Promise<PlatformWebhooksTestData> {
      return api.ask('POST', `/platform/webhooks/${at(webhookId)}/test`, { body, options })
    },
    /** List the requests to the organisation's webhooks, newest first. Permission `webhooks:manage`, at organisation level. */
    listDeliveries(query: PlatformWebhooksListDeliveriesQuery = {}, options: Options = {}): Pages<WebhookDelivery> {
      return api.pages(`/platform/webhooks/deliveries`, query, options)
    },
    /** One request to one of the organisation's webhooks. Permission `webhooks:manage`, at organisation level. */
    retrieveDelivery(deliveryId: string, options: Options = {}): Promise<WebhooksRetrieveDeliveryData> {
      return api.ask('GET', `/platform/webhooks/deliveries/${at(deliveryId)}`, { options })
    },
    /** Send the same payload again, now and once. Permission `webhooks:manage`, at organisation level. */
    replayDelivery(deliveryId: string, options: Options = {}): Promise<WebhooksReplayDeliveryData> {
      return api.ask('POST', `/platform/webhooks/deliveries/${at(deliveryId)}/replay`, { options })
    },
  },
  usage: {
    /** The organisation's usage and limits. Permission `emails:read`, at organisation level. */
    retrieve(query: UsageRetrieveQuery = {}, options: Options = {}): Promise<UsageRetrieveData> {
      return api.ask('GET', `/usage`, { query, options })
    },
    /** Usage of each tenant. Permission `emails:read`, at organisation level. */
    listTenants(query: UsageListTenantsQuery = {}, options: Options = {}): Pages<UsageListTenantsItem> {
      return api.pages(`/usage/tenants`, query, options)
    },
    /** Usage of each tenant as a file, one row each, ordered by name. Permission `emails:read`, at organisation level. */
    export(query: UsageExportQuery = {}, options: Options = {}): Promise<string> {
      return api.text(`/usage/export`, query, options)
    },
    /** Usage of one tenant. Permission `emails:read`. */
    retrieveTenant(tenantId: string, query: UsageRetrieveQuery = {}, options: Options = {}): Promise<UsageRetrieveTenantData> {
      return api.ask('GET', `/tenants/${at(tenantId)}/usage`, { query, options })
    },
    /** Usage of one tenant over time. Permission `emails:read`. */
    retrieveTenantTimeseries(tenantId: string, query: UsageRetrieveTenantTimeseriesQuery = {}, options: Options = {}): Promise<UsageRetrieveTenantTimeseriesData> {
      return api.ask('GET', `/tenants/${at(tenantId)}/usage/timeseries`, { query, options })
    },
  },
  limits: {
    /** Rate limit and send limit. Any valid key. */
    retrieve(options: Options = {}): Promise<Limits> {
      return api.ask('GET', `/limits`, { options })
    },
  },
  events: {
    /** Events as they happen (server-sent events). Permission `emails:read`. */
    stream(query: EventsStreamQuery = {}, options: Options = {}): EventStream {
      return api.stream(`/events/stream`, query, options)
    },
  },
  test: {
    /** Move a tenant's test clock forward; answers once everything has happened that is due by then. Permission `emails:send`. */
    advance(body: TestAdvanceBody, options: Options = {}): Promise<TestAdvanceData> {
      return api.ask('POST', `/test/advance`, { body, options })
    },
    inbox: {
      /** Mail that was sent with test keys and received, newest first; waits for it. Permission `emails:read`. */
      list(query: TestInboxListQuery = {}, options: Options = {}): Pages<ReceivedEmail> {
        return api.pages(`/test/inbox`, query, options)
      },
      /** Clear the inbox; the emails stay in the list of emails. Permission `emails:read`. */
      clear(query: OfTenant = {}, options: Options = {}): Promise<TestInboxClearData> {
        return api.ask('DELETE', `/test/inbox`, { query, options })
      },
    },
  },
  logs: {
    /** List API requests, newest first. A key with full access. */
    list(query: LogsListQuery = {}, options: Options = {}): Pages<LoggedRequest> {
      return api.pages(`/logs`, query, options)
    },
    /** One API request, with its bodies. A key with full access. */
    retrieve(requestId: string, options: Options = {}): Promise<LogsRetrieveData> {
      return api.ask('GET', `/logs/${at(requestId)}`, { options })
    },
  },
})

/** What exists for the organisation and, below `/tenants/…`, for each tenant. */
export const sharedApi = (api: Api, under: string) => ({
  credentials: {
    /** Make an API key or an SMTP login. A key with full access, at organisation level unless the path names its tenant. */
    create(body: CredentialsCreateBody, options: Options = {}): Promise<Credential> {
      return api.ask('POST', `${under}/credentials`, { body, options })
    },
    /** List a tenant's credentials, or the organisation-level ones, newest first. A key with full access, at organisation level unless the path names its tenant. */
    list(query: CredentialsListQuery = {}, options: Options = {}): Pages<Credential> {
      return api.pages(`${under}/credentials`, query, options)
    },
    /** One credential. A key with full access, at organisation level unless the path names its tenant. */
    retrieve(credentialId: string | number, query: Reveal = {}, options: Options = {}): Promise<Credential> {
      return api.ask('GET', `${under}/credentials/${at(credentialId)}`, { query, options })
    },
    /** Rename a credential, hold it, or change its permissions. A key with full access, at organisation level unless the path names its tenant. */
    update(credentialId: string | number, body: CredentialsUpdateBody, query: Reveal = {}, options: Options = {}): Promise<Credential> {
      return api.ask('PATCH', `${under}/credentials/${at(credentialId)}`, { body, query, options })
    },
    /** Revoke a credential. A key with full access, at organisation level unless the path names its tenant. */
    delete(credentialId: string | number, query: OfTenant = {}, options: Options = {}): Promise<Deleted> {
      return api.ask('DELETE', `${under}/credentials/${at(credentialId)}`, { query, options })
    },
  },
  domains: {
    /** Add a sending domain. Permission `domains:manage`. */
    create(body: DomainsCreateBody, options: Options = {}): Promise<Domain> {
      return api.ask('POST', `${under}/domains`, { body, options })
    },
    /** List sending domains. Permission `domains:manage`. */
    list(query: OfTenant = {}, options: Options = {}): Promise<DomainsListData> {
      return api.ask('GET', `${under}/domains`, { query, options })
    },
    /** One sending domain, with the DNS records to publish. Permission `domains:manage`. */
    retrieve(domainId: string | number, query: OfTenant = {}, options: Options = {}): Promise<Domain> {
      return api.ask('GET', `${under}/domains/${at(domainId)}`, { query, options })
    },
    /** Delete a sending domain; its queued emails fail. Permission `domains:manage`. */
    delete(domainId: string | number, query: OfTenant = {}, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `${under}/domains/${at(domainId)}`, { query, options })
    },
    /** Check its DNS records now. Permission `domains:manage`. */
    verify(domainId: string | number, query: OfTenant = {}, options: Options = {}): Promise<Domain> {
      return api.ask('POST', `${under}/domains/${at(domainId)}/verify`, { query, options })
    },
  },
  tracking: {
    /** Make a track domain below a sending domain. Permission `domains:manage`. */
    create(body: TrackingCreateBody, options: Options = {}): Promise<TrackDomain> {
      return api.ask('POST', `${under}/tracking`, { body, options })
    },
    /** List track domains. Permission `domains:manage`. */
    list(query: OfTenant = {}, options: Options = {}): Promise<TrackingListData> {
      return api.ask('GET', `${under}/tracking`, { query, options })
    },
    /** One track domain. Permission `domains:manage`. */
    retrieve(trackingId: string, query: OfTenant = {}, options: Options = {}): Promise<TrackDomain> {
      return api.ask('GET', `${under}/tracking/${at(trackingId)}`, { query, options })
    },
    /** Change what a track domain counts. Permission `domains:manage`. */
    update(trackingId: string, body: TrackingUpdateBody, options: Options = {}): Promise<TrackDomain> {
      return api.ask('PATCH', `${under}/tracking/${at(trackingId)}`, { body, options })
    },
    /** Delete a track domain. Permission `domains:manage`. */
    delete(trackingId: string, query: OfTenant = {}, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `${under}/tracking/${at(trackingId)}`, { query, options })
    },
    /** Look for its CNAME now. Permission `domains:manage`. */
    verify(trackingId: string, query: OfTenant = {}, options: Options = {}): Promise<TrackingVerifyData> {
      return api.ask('POST', `${under}/tracking/${at(trackingId)}/verify`, { query, options })
    },
  },
  suppressions: {
    /** Put an address on the list, or change its reason. Permission `suppressions:manage`. */
    create(body: SuppressionsCreateBody, options: Options = {}): Promise<Suppression> {
      return api.ask('POST', `${under}/suppressions`, { body, options })
    },
    /** List suppressed addresses, newest first. Permission `suppressions:manage`. */
    list(query: SuppressionsListQuery = {}, options: Options = {}): Pages<Suppression> {
      return api.pages(`${under}/suppressions`, query, options)
    },
    /** Put up to 1000 addresses on the list. Permission `suppressions:manage`. */
    bulkCreate(body: SuppressionsBulkCreateBody, options: Options = {}): Promise<SuppressionsBulkCreateData> {
      return api.ask('POST', `${under}/suppressions/bulk`, { body, options })
    },
    /** Whether an address is on the list. Permission `suppressions:manage`. */
    retrieve(email: string, query: OfTenant = {}, options: Options = {}): Promise<SuppressionsRetrieveData> {
      return api.ask('GET', `${under}/suppressions/${at(email)}`, { query, options })
    },
    /** Take an address off the list. Permission `suppressions:manage`. */
    delete(email: string, query: OfTenant = {}, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `${under}/suppressions/${at(email)}`, { query, options })
    },
  },
  webhooks: {
    /** Make a webhook. Permission `webhooks:manage`. */
    create(body: WebhooksCreateBody, options: Options = {}): Promise<Webhook> {
      return api.ask('POST', `${under}/webhooks`, { body, options })
    },
    /** List webhooks. Permission `webhooks:manage`. */
    list(query: WebhooksListQuery = {}, options: Options = {}): Promise<WebhooksListData> {
      return api.ask('GET', `${under}/webhooks`, { query, options })
    },
    /** One webhook. Permission `webhooks:manage`. */
    retrieve(webhookId: string, query: WebhooksRetrieveQuery = {}, options: Options = {}): Promise<Webhook> {
      return api.ask('GET', `${under}/webhooks/${at(webhookId)}`, { query, options })
    },
    /** Change a webhook. Permission `webhooks:manage`. */
    update(webhookId: string, body: WebhooksUpdateBody, options: Options = {}): Promise<Webhook> {
      return api.ask('PATCH', `${under}/webhooks/${at(webhookId)}`, { body, options })
    },
    /** Delete a webhook. Permission `webhooks:manage`. */
    delete(webhookId: string, query: OfTenant = {}, options: Options = {}): Promise<DoneMessage> {
      return api.ask('DELETE', `${under}/webhooks/${at(webhookId)}`, { query, options })
    },
    /** Send one sample request now. Permission `webhooks:manage`. */
    test(webhookId: string, body: WebhooksTestBody, options: Options = {}): Promise<WebhooksTestData> {
      return api.ask('POST', `${under}/webhooks/${at(webhookId)}/test`, { body, options })
    },
    /** List the requests to a webhook, newest first. Permission `webhooks:manage`. */
    listDeliveries(webhookId: string, query: WebhooksListDeliveriesQuery = {}, options: Options = {}): Pages<WebhookDelivery> {
      return api.pages(`${under}/webhooks/${at(webhookId)}/deliveries`, query, options)
    },
    /** One request to a webhook, with what was sent and answered. Permission `webhooks:manage`. */
    retrieveDelivery(webhookId: string, deliveryId: string, query: OfTenant = {}, options: Options = {}): Promise<WebhooksRetrieveDeliveryData> {
      return api.ask('GET', `${under}/webhooks/${at(webhookId)}/deliveries/${at(deliveryId)}`, { query, options })
    },
    /** Send the same payload again, now and once. Permission `webhooks:manage`. */
    replayDelivery(webhookId: string, deliveryId: string, query: OfTenant = {}, options: Options = {}): Promise<WebhooksReplayDeliveryData> {
      return api.ask('POST', `${under}/webhooks/${at(webhookId)}/deliveries/${at(deliveryId)}/replay`, { query, options })
    },
    /** Send what happened in a time again. Permission `webhooks:manage`. */
    replay(webhookId: string, body: WebhooksReplayBody, options: Options = {}): Promise<WebhooksReplayData> {
      return api.ask('POST', `${under}/webhooks/${at(webhookId)}/replay`, { body, options })
    },
  },
})
