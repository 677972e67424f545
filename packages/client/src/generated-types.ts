/** Made from the OpenAPI document by `npm run golden`. Do not edit. */

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
  | 'email_not_scheduled'
  | 'email_content_expired'
  | 'invalid_idempotency_key'
  | 'idempotency_key_reused'
  | 'idempotency_in_progress'
  | 'default_tenant_protected'
  | 'domain_already_exists'
  | 'track_domain_already_exists'
  | 'transport_already_exists'
  | 'webhook_disabled'
  | 'webhook_url_not_allowed'
  | 'internal_error'

export interface EmailToSend {
  /** `addr`, `Name <addr>` or `"Name" <addr>` */
  from: string
  to: string[]
  /** Required without templateId */
  subject?: string | undefined
  cc?: string[] | null | undefined
  bcc?: string[] | null | undefined
  /** Address without display name */
  replyTo?: string | null | undefined
  /** Route with replies: true that gets the replies, in place of replyTo; requires exactly one recipient */
  replyRouteId?: string | null | undefined
  html?: string | null | undefined
  /** Generated from html if absent */
  text?: string | null | undefined
  tag?: string | null | undefined
  headers?: Record<string, string> | null | undefined
  attachments?: ({
    /** Standard base64, padding optional; at most 10 MB decoded */
    content: string
    contentType: string
    filename: string
    /** Content-ID of the attachment; makes it inline */
    contentId?: string | null | undefined
  })[] | null | undefined
  /** At most 4096 bytes as JSON; included in every webhook about the email, never in the message */
  metadata?: Record<string, string> | null | undefined
  /** true: adds one-click List-Unsubscribe headers (RFC 8058); requires exactly one recipient */
  unsubscribe?: boolean | null | undefined
  /** When to send it: ISO 8601 with a zone, or Unix seconds; at most 30 days ahead. Absent or null: now */
  scheduledAt?: string | number | null | undefined
  /** Id or name of a template, instead of subject, html and text */
  templateId?: string | null | undefined
  /** Absent: the published version */
  templateVersion?: number | null | undefined
  /** Values of the variables of the template; at most 256 KiB */
  variables?: Record<string, unknown> | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface SentEmail {
  /** Id of the email of the first recipient */
  id: string
  tenantId: string
  messageId: string
  to: string[]
  status: 'pending' | 'sent'
  sandbox?: boolean
  /** When it leaves, if it is scheduled */
  scheduledAt?: string
  /** Email of each recipient, cc and bcc included */
  messages: Record<string, {
    id: string
  }>
}

export interface EmailsListQuery {
  page?: number | undefined
  perPage?: number | undefined
  status?: 'pending' | 'sent' | 'softfail' | 'hardfail' | 'bounced' | 'held' | undefined
  /** true: only mail sent with test keys; false: only live mail; with status, total stops at 1,000 */
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
  /** Words of the subject, or their prefixes; with this filter, total stops at 1,000 */
  subject?: string | undefined
  /** Domain of the sender; with this filter, total stops at 1,000 */
  domain?: string | undefined
  /** Id of the sending key; with this filter, total stops at 1,000 */
  credentialId?: number | undefined
  /** name:value; with this filter, total stops at 1,000 */
  metadata?: string | undefined
  /** true: only emails that drew a complaint, among the newest 1,000 of them */
  complained?: boolean | undefined
  /** Only emails that had this event, among the newest 1,000 of them accepted between after and before */
  event?: 'delivered' | 'delayed' | 'failed' | 'bounced' | 'complained' | 'opened' | 'clicked' | 'unsubscribed' | undefined
  /** Tenant id */
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
  scheduledAt?: string
  cancelledAt?: string
}

export interface BatchToSend {
  /** `addr`, `Name <addr>` or `"Name" <addr>` */
  from: string
  emails: ({
    to: string[]
    /** Required without templateId */
    subject?: string | undefined
    cc?: string[] | null | undefined
    bcc?: string[] | null | undefined
    /** Address without display name */
    replyTo?: string | null | undefined
    /** Route with replies: true that gets the replies, in place of replyTo; requires exactly one recipient */
    replyRouteId?: string | null | undefined
    html?: string | null | undefined
    /** Generated from html if absent */
    text?: string | null | undefined
    tag?: string | null | undefined
    headers?: Record<string, string> | null | undefined
    attachments?: ({
      /** Standard base64, padding optional; at most 10 MB decoded */
      content: string
      contentType: string
      filename: string
      /** Content-ID of the attachment; makes it inline */
      contentId?: string | null | undefined
    })[] | null | undefined
    /** At most 4096 bytes as JSON; included in every webhook about the email, never in the message */
    metadata?: Record<string, string> | null | undefined
    /** true: adds one-click List-Unsubscribe headers (RFC 8058); requires exactly one recipient */
    unsubscribe?: boolean | null | undefined
    /** When to send it: ISO 8601 with a zone, or Unix seconds; at most 30 days ahead. Absent or null: now */
    scheduledAt?: string | number | null | undefined
    /** Id or name of a template, instead of subject, html and text */
    templateId?: string | null | undefined
    /** Absent: the published version */
    templateVersion?: number | null | undefined
    /** Values of the variables of the template; at most 256 KiB */
    variables?: Record<string, unknown> | null | undefined
  })[]
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
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
  /** One result per element, in order */
  results: ({
    index: number
    status: 'accepted' | 'failed'
    id?: string
    scheduledAt?: string
    /** Email of each recipient, cc and bcc included */
    messages?: Record<string, {
      id: string
    }>
    error?: {
      code: 'authentication_required' | 'invalid_api_key' | 'expired_api_key' | 'permission_denied' | 'tenant_mismatch' | 'credential_on_hold' | 'tenant_suspended' | 'tenant_archived' | 'sandbox_recipient_not_allowed' | 'not_found' | 'rate_limit_exceeded' | 'sandbox_limit_exceeded' | 'validation_error' | 'invalid_email_format' | 'invalid_json' | 'invalid_content_type' | 'payload_too_large' | 'domain_not_verified' | 'invalid_raw_message' | 'email_not_retryable' | 'email_not_scheduled' | 'email_content_expired' | 'invalid_idempotency_key' | 'idempotency_key_reused' | 'idempotency_in_progress' | 'default_tenant_protected' | 'domain_already_exists' | 'track_domain_already_exists' | 'transport_already_exists' | 'webhook_disabled' | 'webhook_url_not_allowed' | 'internal_error'
      /** For humans; may change */
      message: string
      suggestion: string
      /** JSON path of the first invalid field, such as `to[3]` */
      field?: string
      /** All invalid fields, at most 20 */
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
  /** true: sent with an empty return path */
  bounce?: boolean | null | undefined
  /** When to send it: ISO 8601 with a zone, or Unix seconds; at most 30 days ahead. Absent or null: now */
  scheduledAt?: string | number | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface EmailsCheckBody {
  /** `addr`, `Name <addr>` or `"Name" <addr>` */
  from: string
  subject: string
  html?: string | null | undefined
  /** Generated from html if absent */
  text?: string | null | undefined
  /** Address without display name */
  replyTo?: string | null | undefined
  headers?: Record<string, string> | null | undefined
  attachments?: ({
    /** Standard base64, padding optional; at most 10 MB decoded */
    content: string
    contentType: string
    filename: string
    /** Content-ID of the attachment; makes it inline */
    contentId?: string | null | undefined
  })[] | null | undefined
  /** true: adds one-click List-Unsubscribe headers (RFC 8058); requires exactly one recipient */
  unsubscribe?: boolean | null | undefined
  /** true: the first 50 links are requested (HEAD, then GET), within 25 seconds */
  links?: boolean | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface EmailsCheckData {
  problems: number
  findings: ({
    /** Such as size, links or alignment */
    check: string
    severity: 'ok' | 'advice' | 'problem'
    message: string
    /** null: nothing to do */
    suggestion: string | null
  })[]
  /** Present if the links were requested */
  links?: ({
    url: string
    /** refuses: the server needs a login or refuses programs; unchecked: no request was sent */
    state: 'works' | 'refuses' | 'broken' | 'unchecked'
    /** null: no HTTP response */
    statusCode: number | null
    message: string
  })[]
}

export interface EmailsRetrieveQuery {
  /** Comma-separated: full, content, headers, deliveries, activity, attachments, raw */
  expand?: string | undefined
  /** Tenant id */
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
  /** When it leaves or left, if it was scheduled */
  scheduledAt?: string
  /** When it was cancelled before it left; its status is hardfail */
  cancelledAt?: string
  tag?: string
  spam: boolean
  spamScore: number
  /** Sent with a test key */
  test: boolean
  /** true: the tenant's contents are hidden for the role of the signed-in member */
  contentHidden?: boolean
  /** Current state of the email, its reason, and the next step */
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
    /** Reply of the remote MTA; empty without a reply */
    output: string
    /** SMTP reply code */
    code?: number
    sentWithSsl: boolean
    classification: string | null
    classificationCode: number | null
    smtpEnhancedCode: string | null
    remoteHost: string | null
    /** Encryption of the connection; absent without a connection */
    tls?: {
      /** null: not encrypted */
      version: string | null
      cipher: string | null
      /** `valid`, or the problem with the certificate */
      certificate: string | null
      /** `dane`, `mta-sts`, `mta-sts testing`, `required` or `opportunistic` */
      policy: string
      /** The failure that an MTA-STS policy in enforce mode would have caused; only for policies in testing mode */
      mtaStsTestingFailure: string | null
    }
    /** Egress source: the local address of the connection, if sources are configured */
    sourceAddress?: string
    /** Name of the transport, if the installation has transport rules; `mx`: direct delivery, `relay`: POSTRIDER_RELAY */
    transport?: string
    /** Only if the remote MTA may or may not have accepted the message */
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
      /** Human or machine, by best estimate */
      source: 'human' | 'machine' | 'unknown'
      /** Reason for the value of `source` */
      reason: string
    })[]
    clicks: ({
      url: string
      ipAddress: string
      userAgent: string
      /** Seconds since the epoch */
      timestamp: number
      timestampIso: string
      /** Human or machine, by best estimate */
      source: 'human' | 'machine' | 'unknown'
      /** Reason for the value of `source` */
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
    /** The complaint of the recipient; null: none */
    complaint: {
      /** Seconds since the epoch */
      timestamp: number
      timestampIso: string
    } | null
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
  /** expand: raw; the message as sent, base64. For a server without 8BITMIME, Postrider converts an 8-bit message to 7 bits and signs it again */
  rawMessage?: string
}

export interface EmailToReschedule {
  /** ISO 8601 with a zone, or Unix seconds; at most 30 days ahead, and at most 60 days after acceptance */
  scheduledAt: string | number
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface ScheduledEmail {
  /** Id of the email of the first recipient */
  id: string
  tenantId: string
  status: 'pending' | 'hardfail'
  scheduledAt: string
  cancelledAt?: string
  /** Email of each recipient; all of them are changed */
  messages: Record<string, {
    id: string
  }>
}

export interface OfTenant {
  /** Tenant id */
  tenantId?: string | undefined
}

export interface EmailDeliveries {
  id: string
  tenantId: string
  status: 'pending' | 'sent' | 'softfail' | 'hardfail' | 'bounced' | 'held'
  /** true while the content is stored */
  canRetryManually: boolean
  deliveries: ({
    id: string
    status: 'sent' | 'softfail' | 'hardfail' | 'held' | 'bounced'
    /** Seconds since the epoch */
    timestamp: number
    timestampIso: string
    details: string
    /** Reply of the remote MTA; empty without a reply */
    output: string
    /** SMTP reply code */
    code?: number
    sentWithSsl: boolean
    classification: string | null
    classificationCode: number | null
    smtpEnhancedCode: string | null
    remoteHost: string | null
    /** Encryption of the connection; absent without a connection */
    tls?: {
      /** null: not encrypted */
      version: string | null
      cipher: string | null
      /** `valid`, or the problem with the certificate */
      certificate: string | null
      /** `dane`, `mta-sts`, `mta-sts testing`, `required` or `opportunistic` */
      policy: string
      /** The failure that an MTA-STS policy in enforce mode would have caused; only for policies in testing mode */
      mtaStsTestingFailure: string | null
    }
    /** Egress source: the local address of the connection, if sources are configured */
    sourceAddress?: string
    /** Name of the transport, if the installation has transport rules; `mx`: direct delivery, `relay`: POSTRIDER_RELAY */
    transport?: string
    /** Only if the remote MTA may or may not have accepted the message */
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
  /** true: tenant of emails without a tenantId */
  isDefault: boolean
  /** Reason for a pause by an operator or by the automatic pause; null: not paused */
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

export interface TenantsRetrievePrivacyData {
  tenantId: string
  /** Days for which contents, and bodies in the request log, are kept; 0: until the email is final; null: as the installation */
  contentDays: number | null
  /** Days after acceptance until addresses are hashed, and contents deleted at the latest; null: addresses are not hashed */
  hashAddressesAfterDays: number | null
  /** Days after acceptance until records are reduced to id, times and status, and contents deleted at the latest; null: as the installation */
  recordDays: number | null
  /** Members who see contents in the dashboard: everyone; admins (and owners); owners. Keys are not members */
  contentVisibleTo: 'everyone' | 'admins' | 'owners'
}

export interface TenantsUpdatePrivacyBody {
  /** Days for which contents, and bodies in the request log, are kept; 0: until the email is final; null: as the installation */
  contentDays?: number | null | undefined
  /** Days after acceptance until addresses are hashed, and contents deleted at the latest; null: addresses are not hashed */
  hashAddressesAfterDays?: number | null | undefined
  /** Days after acceptance until records are reduced to id, times and status, and contents deleted at the latest; null: as the installation */
  recordDays?: number | null | undefined
  /** Members who see contents in the dashboard: everyone; admins (and owners); owners. Keys are not members */
  contentVisibleTo?: 'everyone' | 'admins' | 'owners' | undefined
}

export interface CredentialsCreateBody {
  name: string
  type: 'api' | 'smtp'
  mode?: 'live' | 'test' | null | undefined
  /** null: full access */
  permissions?: ('emails:send' | 'emails:read' | 'domains:manage' | 'webhooks:manage' | 'suppressions:manage')[] | null | undefined
  /** ses: an access key id and a secret that sign requests, as the SDKs of Amazon SES do */
  format?: 'postrider' | 'ses' | null | undefined
  /** Sending domains and addresses that the key may send from */
  allowedFrom?: string[] | null | undefined
  /** Networks in CIDR form that the key may be used from */
  allowedNetworks?: string[] | null | undefined
  /** ISO 8601; the key is refused from then on */
  expiresAt?: string | null | undefined
  /** Emails per clock hour with the key; further ones wait, as with the send limit */
  sendLimit?: number | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface Credential {
  id: number
  name: string
  type: 'api' | 'smtp'
  /** true: every request with the key is refused */
  hold: boolean
  /** The secret; returned on creation */
  key?: string
  /** Only for a key of format `ses`: names the key in the requests that it signs */
  accessKeyId?: string
  /** Only for an SMTP login, together with the key */
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
  /** The last four characters of the key, with `keyEnd=true` */
  keyEnd?: string
  /** Sending domains and addresses that the key may send from */
  allowedFrom?: string[]
  /** Networks in CIDR form that the key may be used from */
  allowedNetworks?: string[]
  expiresAt?: string
  /** Emails per clock hour with the key; further ones wait, as with the send limit */
  sendLimit?: number
}

export interface CredentialsListQuery {
  page?: number | undefined
  perPage?: number | undefined
  type?: 'api' | 'smtp' | undefined
  /** true, without tenantId: includes those of all tenants */
  all?: boolean | undefined
  /** true: includes the last four characters of the key, if they are known */
  keyEnd?: boolean | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface Reveal {
  /** true: includes the key, if the operator stores keys (POSTRIDER_REVEAL_KEYS) */
  reveal?: boolean | undefined
  /** true: includes the last four characters of the key, if they are known */
  keyEnd?: boolean | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface CredentialsUpdateBody {
  name?: string | undefined
  hold?: boolean | undefined
  /** null: full access */
  permissions?: ('emails:send' | 'emails:read' | 'domains:manage' | 'webhooks:manage' | 'suppressions:manage')[] | null | undefined
  /** Sending domains and addresses that the key may send from */
  allowedFrom?: string[] | null | undefined
  /** Networks in CIDR form that the key may be used from */
  allowedNetworks?: string[] | null | undefined
  /** ISO 8601; the key is refused from then on */
  expiresAt?: string | null | undefined
  /** Emails per clock hour with the key; further ones wait, as with the send limit */
  sendLimit?: number | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface CredentialsUpdateQuery {
  /** true: includes the key, if the operator stores keys (POSTRIDER_REVEAL_KEYS) */
  reveal?: boolean | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface DomainsCreateBody {
  /** Host name with at least two labels */
  name: string
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface Domain {
  id: number
  /** A-labels */
  name: string
  /** true: the tenant can send from the domain */
  verified: boolean
  tenant_id: string
  tenant_name: string
  tenantId: string
  createdAt: string
  uuid: string
  /** true: the operator lets the tenant send without DNS verification */
  trusted: boolean
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
      /** Value to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** Values found by the last check; at most 5 */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    dkim: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** Value to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** Values found by the last check; at most 5 */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    returnPath: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** Value to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** Values found by the last check; at most 5 */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    /** Optional: not required for verified */
    dkimEd25519: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** Value to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** Values found by the last check; at most 5 */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    /** Recommendation only */
    dmarc: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** Value to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** Values found by the last check; at most 5 */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    /** Recommendation only; the value is an example */
    mx: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** Value to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** Values found by the last check; at most 5 */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
    /** MX record for mail in; only for a domain with routes */
    receiving?: {
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** Value to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** Values found by the last check; at most 5 */
      found: string[]
      problem: string | null
      suggestion: string | null
    }
  }
  /** DKIM keys and their rotation */
  dkimKeys: {
    /** Length of the RSA key that signs; receivers distrust less than 2048 */
    bits: number
    /** Since when it signs */
    since: string
    /** true: the selectors are CNAMEs, and rotation needs nothing from the owner of the domain */
    delegated: boolean
    /** CNAME records to publish once in place of the TXT records; empty unless Postrider writes DNS */
    aliases: ({
      type: 'TXT' | 'CNAME' | 'MX'
      /** Relative to the zone; `@` at the apex */
      name: string
      fullName: string
      /** Value to publish */
      value: string
      /** null: not checked yet */
      status: 'OK' | 'Missing' | 'Invalid' | null
      /** Values found by the last check; at most 5 */
      found: string[]
      problem: string | null
      suggestion: string | null
    })[]
    next: {
      selector: string
      createdAt: string
      checkedAt: string | null
      /** Since when every resolver returns its record */
      seenSince: string | null
      /** When it signs, if the record stays */
      usedFrom: string | null
      problem: string | null
      /** TXT records to publish; with CNAME records they need no action */
      records: ({
        type: 'TXT' | 'CNAME' | 'MX'
        /** Relative to the zone; `@` at the apex */
        name: string
        fullName: string
        /** Value to publish */
        value: string
        /** null: not checked yet */
        status: 'OK' | 'Missing' | 'Invalid' | null
        /** Values found by the last check; at most 5 */
        found: string[]
        problem: string | null
        suggestion: string | null
      })[]
    } | null
    /** Keys that no longer sign, whose records must stay until then */
    kept: ({
      selector: string
      until: string | null
    })[]
  }
}

export interface DomainsListData {
  domains: ({
    id: number
    /** A-labels */
    name: string
    /** true: the tenant can send from the domain */
    verified: boolean
    tenant_id: string
    tenant_name: string
    tenantId: string
    createdAt: string
    /** DNS records that verification requires */
    recordsRequired: number
    /** Those of them that the last check found */
    recordsFound: number
    /** null: not checked yet */
    dnsCheckedAt: string | null
    /** Of the DMARC record that the last check found; null: none was found */
    dmarcPolicy: 'none' | 'quarantine' | 'reject' | null
  })[]
}

export interface DoneMessage {
  message: string
}

export interface DomainsRetrieveDmarcQuery {
  /** Tenant id */
  tenantId?: string | undefined
  /** Whole days (UTC) up to today */
  days?: number | undefined
}

export interface DomainsRetrieveDmarcData {
  /** Receives the DMARC and TLS reports of this domain */
  address: string
  /** The DMARC record of the domain with the report address */
  record: {
    type: 'TXT'
    fullName: string
    /** Value to publish */
    value: string
  }
  /** Published once by the operator: postrider dns lists it */
  authorisation: {
    type: 'TXT'
    fullName: string
    /** Value to publish */
    value: string
  }
  /** UTC */
  from: string
  totals: {
    messages: number
    /** Messages that pass DMARC: aligned by DKIM, SPF or both */
    aligned: number
    dkimAligned: number
    spfAligned: number
    quarantined: number
    rejected: number
    /** Messages of reports without a valid DKIM signature of their sender, which anyone can have written */
    unauthenticated: number
  }
  days: {
    /** UTC */
    day: string
    messages: number
    /** Messages that pass DMARC: aligned by DKIM, SPF or both */
    aligned: number
    dkimAligned: number
    spfAligned: number
    quarantined: number
    rejected: number
    /** Messages of reports without a valid DKIM signature of their sender, which anyone can have written */
    unauthenticated: number
  }[]
  /** The largest 200 */
  sources: ({
    /** IP address; empty: further sources, counted together */
    source: string
    /** own: an address of this installation; signed: mail with the key of the domain from elsewhere, such as a forwarder */
    kind: 'own' | 'signed' | 'other'
    headerFrom: string
    messages: number
    /** Messages that pass DMARC: aligned by DKIM, SPF or both */
    aligned: number
    dkimAligned: number
    spfAligned: number
    quarantined: number
    rejected: number
    /** Messages of reports without a valid DKIM signature of their sender, which anyone can have written */
    unauthenticated: number
    /** Days with at least one message */
    activeDays: number
    /** UTC */
    lastDay: string
    /** Keys whose signatures passed; at most 5 */
    signers: string[]
    /** Domains whose SPF check passed; at most 5 */
    spfDomains: string[]
  })[]
  moreSources: number
  reporters: {
    /** As the report names itself */
    reporter: string
    /** Domain of the mail */
    sender: string
    /** true: the mail had a valid DKIM signature of its sender */
    authenticated: boolean
    reports: number
    messages: number
    lastReceivedAt: string
  }[]
  advice: {
    policy: 'none' | 'quarantine' | 'reject' | null
    next: 'none' | 'quarantine' | 'reject' | null
    /** true: all evidence for next is met */
    ready: boolean
    text: string
    evidence: {
      met: boolean
      text: string
    }[]
  }
}

export interface DomainsRetrieveTlsReportsData {
  /** Receives the DMARC and TLS reports of this domain */
  address: string
  /** The record that asks for TLS reports */
  record: {
    type: 'TXT'
    fullName: string
    /** Value to publish */
    value: string
  }
  /** UTC */
  from: string
  totals: {
    successful: number
    failed: number
    /** Sessions of reports without a valid DKIM signature of their sender */
    unauthenticated: number
  }
  days: {
    /** UTC */
    day: string
    successful: number
    failed: number
    /** Sessions of reports without a valid DKIM signature of their sender */
    unauthenticated: number
  }[]
  reporters: {
    /** As the report names itself; empty: further reporters, counted together */
    reporter: string
    /** sts, tlsa, no-policy-found, or other: any other text */
    policyType: string
    successful: number
    failed: number
    /** Sessions of reports without a valid DKIM signature of their sender */
    unauthenticated: number
    /** UTC */
    lastDay: string
  }[]
  failures: {
    /** RFC 8460 section 4.3, such as certificate-expired */
    result: string
    receivingMx: string
    /** Sessions */
    failed: number
    reason: string
    /** UTC */
    lastDay: string
  }[]
}

export interface TrackingCreateBody {
  domainId: number | string
  name: string
  sslEnabled?: boolean | null | undefined
  trackClicks?: boolean | null | undefined
  trackOpens?: boolean | null | undefined
  /** Host names, comma-separated; links to them and their subdomains are not rewritten */
  excludedClickDomains?: string | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TrackDomain {
  id: string
  name: string
  fullName: string
  /** Id of the sending domain */
  domainId: string
  trackClicks: boolean
  trackOpens: boolean
  sslEnabled: boolean
  /** true: the CNAME record was found */
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
    /** Id of the sending domain */
    domainId: string
    trackClicks: boolean
    trackOpens: boolean
    sslEnabled: boolean
    /** true: the CNAME record was found */
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
  /** Host names, comma-separated; links to them and their subdomains are not rewritten */
  excludedClickDomains?: string | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TrackingVerifyData {
  id: string
  fullName: string
  /** true: the CNAME record was found */
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
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
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
  /** null: list of the organisation */
  tenantId: string | null
  source: 'manual' | 'automatic'
  /** Id of the email that caused an automatic entry */
  emailId?: string
}

export interface SuppressionsListQuery {
  page?: number | undefined
  perPage?: number | undefined
  /** Substring of the address */
  address?: string | undefined
  /** Exact reason */
  reason?: string | undefined
  /** true, without tenantId: includes those of all tenants */
  all?: boolean | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface SuppressionsBulkCreateBody {
  suppressions: ({
    address: string
    reason?: string | null | undefined
  })[]
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface SuppressionsBulkCreateData {
  totalRequested: number
  added: number
  /** Already listed, or repeated in the request */
  updated: number
  /** Invalid addresses */
  failed: number
}

export interface SuppressionsImportBody {
  suppressions: ({
    address: string
    reason?: string | null | undefined
    /** Time at the other service; default, and at most: now */
    createdAt?: string | null | undefined
    /** Default: manual */
    source?: 'manual' | 'automatic' | null | undefined
  })[]
  /** true: only counts */
  dryRun?: boolean | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface SuppressionsImportData {
  totalRequested: number
  added: number
  /** Already listed, or repeated in the request */
  existing: number
  /** Invalid addresses */
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
  /** https; must not resolve to a private network */
  url: string
  events?: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning')[] | null | undefined
  /** Has precedence over events */
  allEvents?: boolean | null | undefined
  enabled?: boolean | null | undefined
  /** Response timeout in seconds; default 5 */
  timeoutSeconds?: number | null | undefined
  /** `postal`: bodies and signatures as Postal sends them; `ses`: bodies as Amazon SES publishes them; otherwise absent */
  format?: 'postrider' | 'postal' | 'ses' | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface Webhook {
  id: string
  uuid: string
  name: string
  url: string
  /** Empty: all events */
  events: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning')[]
  allEvents: boolean
  enabled: boolean
  /** null: enabled, or disabled before this field existed */
  disabledAt: string | null
  /** `endpoint_gone`: the endpoint returned 410; `requested`: disabled through the API or in the dashboard */
  disabledReason: 'endpoint_gone' | 'requested' | null
  timeoutSeconds: number
  /** null: not failing, or disabled */
  failingSince: string | null
  /** `postal`: bodies and signatures as Postal sends them; `ses`: bodies as Amazon SES publishes them; otherwise absent */
  format?: 'postrider' | 'postal' | 'ses'
  createdAt: string
  updatedAt: string
  /** null: receives the events of all tenants */
  tenantId: string | null
  /** `whsec_` and base64: the key for webhook-signature */
  secret?: string
}

export interface WebhooksListQuery {
  /** true, without tenantId: includes those of all tenants */
  all?: boolean | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface WebhooksListData {
  webhooks: ({
    id: string
    uuid: string
    name: string
    url: string
    /** Empty: all events */
    events: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning')[]
    allEvents: boolean
    enabled: boolean
    /** null: enabled, or disabled before this field existed */
    disabledAt: string | null
    /** `endpoint_gone`: the endpoint returned 410; `requested`: disabled through the API or in the dashboard */
    disabledReason: 'endpoint_gone' | 'requested' | null
    timeoutSeconds: number
    /** null: not failing, or disabled */
    failingSince: string | null
    /** `postal`: bodies and signatures as Postal sends them; `ses`: bodies as Amazon SES publishes them; otherwise absent */
    format?: 'postrider' | 'postal' | 'ses'
    createdAt: string
    updatedAt: string
    /** null: receives the events of all tenants */
    tenantId: string | null
    /** `whsec_` and base64: the key for webhook-signature */
    secret?: string
  })[]
}

export interface WebhooksRetrieveQuery {
  /** true: includes the secret */
  reveal?: boolean | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface WebhooksUpdateBody {
  name?: string | null | undefined
  /** https; must not resolve to a private network */
  url?: string | null | undefined
  events?: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning')[] | null | undefined
  /** Has precedence over events */
  allEvents?: boolean | null | undefined
  enabled?: boolean | null | undefined
  /** Response timeout in seconds; default 5 */
  timeoutSeconds?: number | null | undefined
  /** `postal`: bodies and signatures as Postal sends them; `ses`: bodies as Amazon SES publishes them; otherwise absent */
  format?: 'postrider' | 'postal' | 'ses' | null | undefined
  /** true: creates a new secret; the old one also signs for 24 hours */
  rotateSecret?: boolean | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface WebhooksTestBody {
  event: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning'
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface WebhooksTestData {
  /** true: 2xx response */
  success: boolean
  event: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning'
  /** Milliseconds */
  duration: number
  durationMs: number
  /** Start of the response body */
  body: string | null
  /** Reason for the missing response */
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
  event?: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning' | undefined
  /** Only the attempts of this event */
  eventId?: string | undefined
  /** true: only the newest attempt of each event; the other filters apply to it */
  newest?: boolean | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface WebhookDelivery {
  id: string
  webhookId: string
  /** Tenant of the event */
  tenantId: string
  event: string
  /** The same for all attempts of one event */
  eventId: string
  /** null: the event is not about an email */
  emailId: string | null
  /** Of the email; null: the body names none */
  recipient: string | null
  /** URL at the time of the attempt */
  url: string
  attempt: number
  /** true: 2xx response */
  success: boolean
  /** null: no HTTP response */
  statusCode: number | null
  willRetry: boolean
  /** Earliest time of the next attempt; absent if this was not the last one, or none follows */
  nextAttemptAt?: string
  timestamp: string
}

export interface WebhooksRetrieveDeliveryData {
  id: string
  webhookId: string
  /** Tenant of the event */
  tenantId: string
  event: string
  /** The same for all attempts of one event */
  eventId: string
  /** null: the event is not about an email */
  emailId: string | null
  /** Of the email; null: the body names none */
  recipient: string | null
  /** URL at the time of the attempt */
  url: string
  attempt: number
  /** true: 2xx response */
  success: boolean
  /** null: no HTTP response */
  statusCode: number | null
  willRetry: boolean
  /** Earliest time of the next attempt; absent if this was not the last one, or none follows */
  nextAttemptAt?: string
  timestamp: string
  webhookName: string
  request: {
    headers: Record<string, string>
    /** Complete request body; empty if contentHidden */
    payload: Record<string, unknown>
  }
  response: {
    statusCode: number | null
    /** Start of the response body */
    body: string | null
    /** Milliseconds */
    duration: number
    /** Reason for the missing response */
    error: string | null
  }
  /** true: the tenant's contents are hidden for the role of the signed-in member */
  contentHidden?: boolean
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
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface WebhooksReplayData {
  /** Number of events queued again, each with its original id */
  queued: number
}

export interface PlatformWebhooksCreateBody {
  name: string
  /** https; must not resolve to a private network */
  url: string
  /** Empty: all events */
  events?: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning')[] | null | undefined
  enabled?: boolean | null | undefined
  /** Response timeout in seconds; default 5 */
  timeoutSeconds?: number | null | undefined
  /** `postal`: bodies and signatures as Postal sends them; `ses`: bodies as Amazon SES publishes them; otherwise absent */
  format?: 'postrider' | 'postal' | 'ses' | null | undefined
}

export interface PlatformWebhooksCreateData {
  id: string
  uuid: string
  name: string
  url: string
  /** Empty: all events */
  events: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning')[]
  allEvents: boolean
  enabled: boolean
  /** null: enabled, or disabled before this field existed */
  disabledAt: string | null
  /** `endpoint_gone`: the endpoint returned 410; `requested`: disabled through the API or in the dashboard */
  disabledReason: 'endpoint_gone' | 'requested' | null
  timeoutSeconds: number
  /** null: not failing, or disabled */
  failingSince: string | null
  /** `postal`: bodies and signatures as Postal sends them; `ses`: bodies as Amazon SES publishes them; otherwise absent */
  format?: 'postrider' | 'postal' | 'ses'
  createdAt: string
  updatedAt: string
  /** `whsec_` and base64: the key for webhook-signature */
  secret?: string
}

export interface PlatformWebhooksRetrieveQuery {
  /** true: includes the secret */
  reveal?: boolean | undefined
}

export interface PlatformWebhooksUpdateBody {
  name?: string | null | undefined
  /** https; must not resolve to a private network */
  url?: string | null | undefined
  /** Empty: all events */
  events?: ('MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning')[] | null | undefined
  enabled?: boolean | null | undefined
  /** Response timeout in seconds; default 5 */
  timeoutSeconds?: number | null | undefined
  /** `postal`: bodies and signatures as Postal sends them; `ses`: bodies as Amazon SES publishes them; otherwise absent */
  format?: 'postrider' | 'postal' | 'ses' | null | undefined
  /** true: creates a new secret; the old one also signs for 24 hours */
  rotateSecret?: boolean | null | undefined
}

export interface PlatformWebhooksTestBody {
  event: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning'
}

export interface PlatformWebhooksTestData {
  /** true: 2xx response */
  success: boolean
  event: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning'
  /** Milliseconds */
  duration: number
  durationMs: number
  /** Start of the response body */
  body: string | null
  /** Reason for the missing response */
  error: string | null
  /** 0: no HTTP response */
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
  event?: 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'MessageLoaded' | 'MessageLinkClicked' | 'MessageHeld' | 'DomainDNSError' | 'ComplaintReceived' | 'RecipientUnsubscribed' | 'SuppressionAdded' | 'SuppressionRemoved' | 'MessageReceived' | 'ReputationWarning' | undefined
  /** Only the attempts of this event */
  eventId?: string | undefined
  /** true: only the newest attempt of each event; the other filters apply to it */
  newest?: boolean | undefined
  /** Tenant id */
  tenantId?: string | undefined
  /** Id of the webhook */
  webhookId?: string | undefined
}

export interface UsageRetrieveQuery {
  /** today, yesterday, this_week, last_week, this_month, last_month, last_7_days, last_30_days, last_90_days, a month, a day, or two days */
  period?: string | undefined
  /** IANA name; determines the start of each day */
  timezone?: string | undefined
}

export interface UsageRetrieveData {
  period: {
    start: string
    /** Last millisecond of the period */
    end: string
  }
  emails: {
    /** All accepted emails */
    sent: number
    delivered: number
    soft_failed: number
    hard_failed: number
    bounced: number
    held: number
    /** Accepted emails sent with test keys */
    test: number
  }
  rates: {
    delivery_rate: number
    bounce_rate: number
  }
  tenants: {
    total: number
    active: number
    /** Tenants with at least one email in the period */
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
    /** Over 90% */
    approaching: boolean
    /** true: no capacity left this hour */
    exceeded: boolean
    period: 'hour'
    resetsAt: string
  } | null
  billing: null
}

export interface UsageListTenantsQuery {
  /** today, yesterday, this_week, last_week, this_month, last_month, last_7_days, last_30_days, last_90_days, a month, a day, or two days */
  period?: string | undefined
  /** IANA name; determines the start of each day */
  timezone?: string | undefined
  page?: number | undefined
  perPage?: number | undefined
  status?: 'active' | 'suspended' | 'archived' | undefined
  /** Only tenants with at least this number of emails */
  minSent?: number | undefined
  /** true: only mail sent with test keys; false: only live mail */
  test?: boolean | undefined
  /** A leading minus sorts in descending order */
  sort?: 'sent' | '-sent' | 'delivered' | '-delivered' | 'bounce_rate' | '-bounce_rate' | 'delivery_rate' | '-delivery_rate' | 'tenant_name' | '-tenant_name' | undefined
}

export interface UsageListTenantsItem {
  tenantId: string
  tenantName: string
  /** externalId or external_id from the metadata of the tenant */
  externalId: string | null
  status: 'active' | 'suspended' | 'archived'
  emails: {
    /** All accepted emails */
    sent: number
    delivered: number
    soft_failed: number
    hard_failed: number
    bounced: number
    held: number
    /** Accepted emails sent with test keys */
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
  /** IANA name; determines the start of each day */
  timezone?: string | undefined
  status?: 'active' | 'suspended' | 'archived' | undefined
  /** Only tenants with at least this number of emails */
  minSent?: number | undefined
  /** Default: by the Accept header */
  format?: 'csv' | 'jsonl' | 'json' | undefined
}

export interface UsageRetrieveTenantData {
  tenant_id: string
  tenant_name: string
  /** externalId or external_id from the metadata of the tenant */
  external_id: string | null
  period: {
    start: string
    /** Last millisecond of the period */
    end: string
  }
  emails: {
    /** All accepted emails */
    sent: number
    delivered: number
    soft_failed: number
    hard_failed: number
    bounced: number
    held: number
    /** Accepted emails sent with test keys */
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
  /** IANA name; determines the start of each day */
  timezone?: string | undefined
  granularity?: 'hour' | 'day' | 'week' | 'month' | undefined
}

export interface UsageRetrieveTenantTimeseriesData {
  tenant_id: string
  tenant_name: string
  period: {
    start: string
    /** Last millisecond of the period */
    end: string
  }
  granularity: 'hour' | 'day' | 'week' | 'month'
  data: {
    timestamp: string
    /** All accepted emails */
    sent: number
    delivered: number
    soft_failed: number
    hard_failed: number
    bounced: number
    held: number
  }[]
}

export interface ReputationRetrieveQuery {
  /** Tenant id */
  tenantId?: string | undefined
  /** Whole days (UTC) up to today */
  days?: number | undefined
  groupBy?: 'domain' | 'source' | 'provider' | undefined
  /** Only mail from this sending domain */
  domain?: string | undefined
  /** Only mail from this source address */
  source?: string | undefined
  /** Only mail to this mailbox provider */
  provider?: string | undefined
  /** true: only simulated mail; false: only live mail */
  test?: boolean | undefined
}

export interface ReputationRetrieveData {
  /** UTC */
  from: string
  /** UTC */
  to: string
  groupBy: 'domain' | 'source' | 'provider'
  totals: {
    /** Attempts that a server accepted */
    accepted: number
    /** Accepted over TLS */
    secured: number
    /** Attempts refused for a time */
    deferred: number
    /** Attempts refused permanently */
    failed: number
    /** Attempts refused as spam or for reputation; neither deferred nor failed */
    blocked: number
    /** Bounces that arrived later */
    bounced: number
    /** Complaints */
    complained: number
    /** null: no reports; they have neither the provider nor test mail */
    dmarc: {
      /** Messages of authenticated DMARC reports */
      messages: number
      /** Those that pass DMARC */
      aligned: number
    } | null
  }
  /** The largest 200 */
  groups: ({
    /** Empty: a source chosen by the operating system, or an unknown provider */
    name: string
    /** Attempts that a server accepted */
    accepted: number
    /** Accepted over TLS */
    secured: number
    /** Attempts refused for a time */
    deferred: number
    /** Attempts refused permanently */
    failed: number
    /** Attempts refused as spam or for reputation; neither deferred nor failed */
    blocked: number
    /** Bounces that arrived later */
    bounced: number
    /** Complaints */
    complained: number
    /** null: no reports; they have neither the provider nor test mail */
    dmarc: {
      /** Messages of authenticated DMARC reports */
      messages: number
      /** Those that pass DMARC */
      aligned: number
    } | null
  })[]
  moreGroups: number
  /** Days without figures are absent */
  days: {
    /** UTC */
    day: string
    /** Attempts that a server accepted */
    accepted: number
    /** Accepted over TLS */
    secured: number
    /** Attempts refused for a time */
    deferred: number
    /** Attempts refused permanently */
    failed: number
    /** Attempts refused as spam or for reputation; neither deferred nor failed */
    blocked: number
    /** Bounces that arrived later */
    bounced: number
    /** Complaints */
    complained: number
  }[]
  /** For a tenant: those that sent its mail in the period */
  sources: ({
    address: string
    /** null: the address of the host name, or the figures of a tenant */
    pool: string | null
    /** null: no warm-up, or a completed one */
    warmUp: {
      day: number
      /** To each provider */
      messagesPerDay: number
    } | null
    /** Those of POSTRIDER_BLOCKLISTS */
    blocklists: ({
      /** DNS zone, without the key of a registered user */
      blocklist: string
      listed: boolean
      /** Of the listing, in 127.0.0.0/8 */
      codes: string[]
      since: string
      /** null: not checked yet */
      checkedAt: string | null
      /** Why the list is ignored or did not answer */
      problem: string | null
    })[]
  })[]
  /** Changes since yesterday of live mail, without regard to the filters; at most 100 */
  findings: ({
    kind: 'blocklist_new' | 'complaint_rate_high' | 'block_rate_up' | 'dmarc_pass_rate_down' | 'tls_share_down'
    severity: 'warning' | 'problem'
    /** UTC */
    day: string
    /** null: of the whole installation */
    tenantId: string | null
    /** Sending domain */
    domain: string | null
    /** Source address; empty: chosen by the operating system */
    source: string | null
    /** Mailbox provider */
    provider: string | null
    /** DNS zone of the blocklist */
    blocklist: string | null
    /** Share on the day before; null: without comparison */
    before: number | null
    /** Share now */
    now: number | null
    text: string
  })[]
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
    /** Over 90% */
    approaching: boolean
    /** true: no capacity left this hour */
    exceeded: boolean
    period: 'hour'
    resetsAt: string
  } | null
  billing: null
}

export interface EventsStreamQuery {
  /** Tenant id */
  tenantId?: string | undefined
  /** Only these events, comma-separated: MessageSent, MessageDelayed, MessageDeliveryFailed, MessageBounced, MessageLoaded, MessageLinkClicked, MessageHeld, DomainDNSError, SendLimitApproaching, SendLimitExceeded, ComplaintReceived, RecipientUnsubscribed, SuppressionAdded, SuppressionRemoved, MessageReceived, ReputationWarning. Default: the first 10 */
  events?: string | undefined
  /** Id of the event to resume after; the header Last-Event-ID has precedence. Default: only new events */
  after?: string | undefined
}

export interface RoutesCreateBody {
  address: string
  /** Address that gets every message as well; null: not forwarded */
  forwardTo?: string | null | undefined
  enabled?: boolean | null | undefined
  /** true: receives only replies to emails that are sent with replyRouteId. The address has one * and at most 12 other characters */
  replies?: boolean | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface RoutesCreateData {
  id: string
  tenantId: string
  /** One * stands for any text; * alone before the @ for every address of the domain */
  address: string
  domainId: number
  /** Address that gets every message as well; null: not forwarded */
  forwardTo: string | null
  /** false: mail to the address is refused */
  enabled: boolean
  /** true: only replies to emails that were sent with its id as replyRouteId */
  replies: boolean
  mx: {
    fullName: string
    /** MX record to publish; its status is dnsRecords.receiving of the domain */
    value: string
  }
  createdAt: string
  updatedAt: string
}

export interface RoutesListQuery {
  page?: number | undefined
  perPage?: number | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface RoutesUpdateBody {
  /** Address that gets every message as well; null: not forwarded */
  forwardTo?: string | null | undefined
  enabled?: boolean | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface ReceivedListQuery {
  page?: number | undefined
  perPage?: number | undefined
  /** Route that received them */
  routeId?: string | undefined
  /** Address in From, or envelope sender */
  from?: string | undefined
  /** Recipient address */
  to?: string | undefined
  /** Id of the email that they answer */
  inReplyTo?: string | undefined
  /** Received later than: unix seconds or ISO 8601 */
  after?: string | undefined
  /** Received earlier than */
  before?: string | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface ReceivedListItem {
  id: string
  tenantId: string
  recipients: {
    address: string
    routeId: string
  }[]
  /** Empty: the null reverse-path, as of bounces and automatic replies */
  envelopeFrom: string
  /** IP address of the server that sent it */
  clientAddress: string
  /** Empty unless From has exactly one address */
  from: string
  fromName: string
  subject: string
  /** Without angle brackets */
  messageId: string
  /** Such as auto-replied (RFC 3834); empty for mail of a person */
  autoSubmitted: string
  /** Octets */
  size: number
  attachmentCount: number
  /** Id of the email that it replies to, by its address or the Message-ID in its header */
  inReplyTo: string | null
  /** true: it was sent to the signed address of that email (replyRouteId), which only its readers know */
  inReplyToProven: boolean
  /** Checks when it arrived; null: the message was too costly to read */
  authentication: {
    spf: {
      result: 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'temperror' | 'permerror'
      domain: string
    }
    /** The first 5 signatures, of any domain */
    dkim: ({
      result: 'pass' | 'fail' | 'temperror'
      domain: string
      selector: string
    })[]
    dmarc: {
      result: 'pass' | 'fail' | 'none' | 'temperror' | 'permerror'
      /** Of From */
      domain: string
      /** To apply if the result is fail: none, quarantine or reject */
      policy: string | null
    }
  } | null
  /** Copies, as emails of the tenant */
  forwarded: {
    to: string
    emailId: string
  }[]
  receivedAt: string
}

export interface ReceivedRetrieveData {
  id: string
  tenantId: string
  recipients: {
    address: string
    routeId: string
  }[]
  /** Empty: the null reverse-path, as of bounces and automatic replies */
  envelopeFrom: string
  /** IP address of the server that sent it */
  clientAddress: string
  /** Empty unless From has exactly one address */
  from: string
  fromName: string
  subject: string
  /** Without angle brackets */
  messageId: string
  /** Such as auto-replied (RFC 3834); empty for mail of a person */
  autoSubmitted: string
  /** Octets */
  size: number
  attachmentCount: number
  /** Id of the email that it replies to, by its address or the Message-ID in its header */
  inReplyTo: string | null
  /** true: it was sent to the signed address of that email (replyRouteId), which only its readers know */
  inReplyToProven: boolean
  /** Checks when it arrived; null: the message was too costly to read */
  authentication: {
    spf: {
      result: 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'temperror' | 'permerror'
      domain: string
    }
    /** The first 5 signatures, of any domain */
    dkim: ({
      result: 'pass' | 'fail' | 'temperror'
      domain: string
      selector: string
    })[]
    dmarc: {
      result: 'pass' | 'fail' | 'none' | 'temperror' | 'permerror'
      /** Of From */
      domain: string
      /** To apply if the result is fail: none, quarantine or reject */
      policy: string | null
    }
  } | null
  /** Copies, as emails of the tenant */
  forwarded: {
    to: string
    emailId: string
  }[]
  receivedAt: string
  to: string
  cc: string
  replyTo: string
  /** As the sender wrote it */
  date: string
  /** Received fields: servers that the message passed */
  hops: number
  text: string | null
  /** From a stranger: never show it without a sandbox */
  html: string | null
  /** The first 60, decoded */
  headers: {
    name: string
    value: string
  }[]
  /** The first 50 */
  attachments: {
    filename: string
    contentType: string
    /** Octets */
    size: number
  }[]
  /** A part was cut or left out; the raw message has it */
  truncated: boolean
  /** true: the tenant's contents are hidden for the role of the signed-in member */
  contentHidden?: boolean
}

export interface ReceivedRetrieveRawData {
  id: string
  rawMessage: string
}

export interface TemplatesCreateBody {
  /** Unique within the tenant */
  name: string
  /** Liquid, without HTML escaping */
  subject: string
  /** Liquid; values are escaped unless the template says raw */
  html?: string | null | undefined
  /** Liquid; null: generated from html */
  text?: string | null | undefined
  /** Type and default of each variable; a send must give those without a default */
  variables?: Record<string, {
    type: 'string' | 'number' | 'boolean' | 'array' | 'object'
    default?: unknown
  }> | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TemplatesCreateData {
  id: string
  tenantId: string
  name: string
  /** Of the draft */
  subject: string
  /** null: only a draft */
  publishedVersion: number | null
  createdAt: string
  updatedAt: string
  /** Liquid; values are escaped unless the template says raw */
  html: string | null
  /** Liquid; null: generated from html */
  text: string | null
  /** Type and default of each variable; a send must give those without a default */
  variables: Record<string, {
    type: 'string' | 'number' | 'boolean' | 'array' | 'object'
    default?: unknown
  }>
}

export interface TemplatesListItem {
  id: string
  tenantId: string
  name: string
  /** Of the draft */
  subject: string
  /** null: only a draft */
  publishedVersion: number | null
  createdAt: string
  updatedAt: string
}

export interface TemplatesUpdateBody {
  /** Unique within the tenant */
  name?: string | undefined
  /** Liquid, without HTML escaping */
  subject?: string | undefined
  /** Liquid; values are escaped unless the template says raw */
  html?: string | null | undefined
  /** Liquid; null: generated from html */
  text?: string | null | undefined
  /** Type and default of each variable; a send must give those without a default */
  variables?: Record<string, {
    type: 'string' | 'number' | 'boolean' | 'array' | 'object'
    default?: unknown
  }> | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TemplatesListVersionsItem {
  version: number
  publishedAt: string
  subject: string
  /** Liquid; values are escaped unless the template says raw */
  html: string | null
  /** Liquid; null: generated from html */
  text: string | null
  /** Type and default of each variable; a send must give those without a default */
  variables: Record<string, {
    type: 'string' | 'number' | 'boolean' | 'array' | 'object'
    default?: unknown
  }>
  /** true: the page has 4,000,000 characters before this version, which lacks html, text and variables. Set perPage to a lower number */
  truncated: boolean
}

export interface TemplatesPreviewBody {
  /** Absent: the published version */
  templateVersion?: number | null | undefined
  /** Values of the variables of the template; at most 256 KiB */
  variables?: Record<string, unknown> | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TemplatesPreviewData {
  subject: string
  html: string | null
  text: string | null
}

export interface TemplatesTestBody {
  /** `addr`, `Name <addr>` or `"Name" <addr>` */
  from: string
  to: string[]
  /** Absent: the published version */
  templateVersion?: number | null | undefined
  /** Values of the variables of the template; at most 256 KiB */
  variables?: Record<string, unknown> | null | undefined
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TestAdvanceBody {
  seconds: number
  /** Tenant id; absent or null: the tenant of the key, or the default tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TestAdvanceData {
  /** New time of the test clock; earlier than requested if 25 seconds were not enough */
  now: string
}

export interface TestInboxListQuery {
  page?: number | undefined
  perPage?: number | undefined
  /** Recipient address */
  to?: string | undefined
  /** Substring of the recipient, the sender or the subject */
  search?: string | undefined
  /** Seconds to wait for matching mail that arrives after the request; with since, earlier mail counts too */
  wait?: number | undefined
  /** Email id: that email and later ones. Unix seconds or ISO 8601 time: accepted at that time or later */
  since?: string | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface ReceivedEmail {
  /** Same as emailId */
  id: string
  emailId: string
  /** The recipient */
  to: string
  from: string
  subject: string
  /** As sent; null: absent */
  html: string | null
  /** As sent */
  text: string
  /** Links of html, then of text, without duplicates */
  links: string[]
  /** Time of the test clock of the tenant */
  receivedAt: string
  /** true: html, text and links are left out, because those before it on the page have 16,777,216 characters. A smaller perPage shows them */
  truncated?: boolean
  /** true: the tenant's contents are hidden for the role of the signed-in member */
  contentHidden?: boolean
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
  /** Substring of the request id */
  requestId?: string | undefined
  /** At or after: ISO 8601 */
  startDate?: string | undefined
  /** At or before */
  endDate?: string | undefined
  /** Tenant id */
  tenantId?: string | undefined
}

export interface LoggedRequest {
  requestId: string
  timestamp: string
  method: string
  /** Without the query string */
  path: string
  /** Log name of the endpoint, such as `emails.send`; `unknown` for an unknown route */
  endpoint: string
  statusCode: number
  durationMs: number
  credential: {
    id: string
    /** First 8 characters of the key */
    keyPrefix: string | null
  }
  /** null: the key has no limit */
  rateLimit: {
    limit: number | null
    remaining: number | null
    /** Unix seconds */
    reset: number | null
    /** true: the request exceeded the limit */
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
  /** On email endpoints: the email, or the first of several */
  email: {
    id: string
    recipientCount: number | null
  } | null
  sdk: {
    name: string
    version: string | null
  } | null
  /** Tenant of the request */
  tenantId: string | null
}

export interface LogsRetrieveData {
  requestId: string
  timestamp: string
  method: string
  /** Without the query string */
  path: string
  /** Log name of the endpoint, such as `emails.send`; `unknown` for an unknown route */
  endpoint: string
  statusCode: number
  durationMs: number
  credential: {
    id: string
    /** First 8 characters of the key */
    keyPrefix: string | null
  }
  /** null: the key has no limit */
  rateLimit: {
    limit: number | null
    remaining: number | null
    /** Unix seconds */
    reset: number | null
    /** true: the request exceeded the limit */
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
  /** On email endpoints: the email, or the first of several */
  email: {
    id: string
    recipientCount: number | null
  } | null
  sdk: {
    name: string
    version: string | null
  } | null
  /** Tenant of the request */
  tenantId: string | null
  request: {
    /** At most 25,600 bytes, without secrets and attachment content; an object if it is complete JSON. A text in square brackets if the tenant's retention of content has ended, or if contents are hidden for the role of the signed-in member */
    body: Record<string, unknown> | string | null
    /** Size of the whole body in bytes */
    bodySize: number | null
  }
  response: {
    /** At most 25,600 bytes, without secrets and attachment content; an object if it is complete JSON. A text in square brackets if the tenant's retention of content has ended, or if contents are hidden for the role of the signed-in member */
    body: Record<string, unknown> | string | null
    /** Size of the whole body in bytes */
    bodySize: number | null
  }
  /** true: the tenant's contents are hidden for the role of the signed-in member */
  contentHidden?: boolean
}

export interface TransportsCreateBody {
  /** Lower-case letters, digits, - and _ */
  name: string
  /** Host name or IP address */
  host: string
  /** Default 465 with implicit TLS, otherwise 587 */
  port?: number | undefined
  tls?: 'implicit' | 'required' | 'opportunistic' | undefined
  password?: string | undefined
  connections?: number | undefined
  rate?: number | null | undefined
  failover?: boolean | undefined
  /** Lower-case letters, digits, - and _ */
  fallback?: string | null | undefined
  username?: string | null | undefined
}

export interface Transport {
  name: string
  host: string
  port: number
  tls: 'implicit' | 'required' | 'opportunistic'
  /** null: no login */
  username: string | null
  /** Most connections at once, over all processes */
  connections: number
  /** Most messages per second, over all processes; null: unlimited */
  rate: number | null
  /** false: its mail waits while it is down */
  failover: boolean
  /** The transport of its mail while it is down; null: the default */
  fallback: string | null
  /** down: at least one process avoids it */
  state: 'up' | 'down'
  /** Empty while it is up */
  down: ({
    /** null: the mail of all tenants */
    tenantId: string | null
    /** failed: no connection, TLS or login; refused: it refused message after message */
    reason: 'failed' | 'refused'
    since: string
    /** The next email tries it again after this time */
    until: string
  })[]
  createdAt: string
}

export interface TransportsListData {
  /** The transport of all other mail */
  default: 'mx' | 'relay'
  transports: ({
    name: string
    host: string
    port: number
    tls: 'implicit' | 'required' | 'opportunistic'
    /** null: no login */
    username: string | null
    /** Most connections at once, over all processes */
    connections: number
    /** Most messages per second, over all processes; null: unlimited */
    rate: number | null
    /** false: its mail waits while it is down */
    failover: boolean
    /** The transport of its mail while it is down; null: the default */
    fallback: string | null
    /** down: at least one process avoids it */
    state: 'up' | 'down'
    /** Empty while it is up */
    down: ({
      /** null: the mail of all tenants */
      tenantId: string | null
      /** failed: no connection, TLS or login; refused: it refused message after message */
      reason: 'failed' | 'refused'
      since: string
      /** The next email tries it again after this time */
      until: string
    })[]
    createdAt: string
  })[]
  rules: ({
    /** null: mail of any tenant */
    tenantId: string | null
    /** Sending domain; null: any */
    domain: string | null
    /** null: any tag or none */
    tag: string | null
    /** The default has the rest */
    shares: {
      transport: string
      percent: number
    }[]
  })[]
}

export interface TransportsUpdateBody {
  /** Host name or IP address */
  host?: string | undefined
  /** Default 465 with implicit TLS, otherwise 587 */
  port?: number | undefined
  tls?: 'implicit' | 'required' | 'opportunistic' | undefined
  password?: string | undefined
  connections?: number | undefined
  rate?: number | null | undefined
  failover?: boolean | undefined
  /** Lower-case letters, digits, - and _ */
  fallback?: string | null | undefined
  username?: string | null | undefined
}

export interface TransportsShareBody {
  percent: number
  /** Only mail from this sending domain */
  domain?: string | null | undefined
  /** Only mail with this tag */
  tag?: string | null | undefined
  /** Only mail of this tenant */
  tenantId?: string | null | undefined
  /** Older spelling of tenantId @deprecated */
  tenant_id?: string | null | undefined
}

export interface TransportRule {
  /** null: mail of any tenant */
  tenantId: string | null
  /** Sending domain; null: any */
  domain: string | null
  /** null: any tag or none */
  tag: string | null
  /** The default has the rest */
  shares: {
    transport: string
    percent: number
  }[]
}

export interface TransportsTestData {
  works: boolean
  /** The address that was connected to */
  address: string | null
  secure: boolean
  /** The reason of a failure; empty: it works */
  message: string
  /** The conversation of a failure, without the password */
  conversation: string
}
