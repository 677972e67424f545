/**
 * Response data of the dashboard's own endpoints, as JSON. The compiler checks the endpoints' responses against these types, and the pages
 * import them (docs/decisions/025-dashboard-types.md). This file has types only and imports no other, so that the browser's compiler can
 * read it.
 */

/** `Data` before it is written as JSON: a Date becomes a string. */
export type BeforeJson<Data> = Data extends string
  ? string extends Data
    ? string | Date
    : Data
  : Data extends readonly (infer Item)[]
    ? readonly BeforeJson<Item>[]
    : Data extends object
      ? { readonly [Name in keyof Data]: BeforeJson<Data[Name]> }
      : Data

export interface ShownMember {
  address: string
  role: 'owner' | 'admin' | 'viewer'
  /** null: the organisation. */
  tenantId: string | null
}

/** `provider`: an account of the identity provider, which replaces the password and the second factor. */
type SignInMeans = 'password' | 'provider'

export interface ShownListedMember extends ShownMember {
  signsInWith: SignInMeans
  /** The member has chosen a password. */
  hasPassword: boolean
  /** The member has signed in with an account of the identity provider, which is bound. */
  hasAccount: boolean
  hasSecondFactor: boolean
  createdAt: string
  /** The end of the sign-in link that the member has not used yet; null: it was used. */
  invitedUntil: string | null
  /** Of the newest session that has not ended; null: signed out, or never signed in. */
  lastSeenAt: string | null
}

/** Of `GET /session`, the sign-ins and `POST /sign-out`. */
export interface SessionResponse {
  /** null: signed out, or `choices` of several members. */
  member: ShownMember | null
  /** Several members have this address and password. */
  choices?: { tenantId: string | null; name: string | null }[]
}

export interface SignInLinkResponse {
  address: string
  needsCode: boolean
}

export interface OpenIdResponse {
  /** The name of the identity provider; null: not configured. */
  name: string | null
}

export interface OpenIdBeginResponse {
  /** At the identity provider. */
  url: string
}

export interface MembersResponse {
  members: ShownListedMember[]
  /** More members match than are listed. */
  isCut: boolean
  /** false: members of the organisation sign in with the identity provider only, and get no links. */
  passwordSignIn: boolean
}

export interface InvitationResponse {
  member: ShownMember
  /** null: the member signs in with the identity provider only. */
  signInUrl: string | null
}

/** Of `GET /account`: the signed-in member. */
export interface AccountResponse {
  signsInWith: SignInMeans
}

export interface SecondFactorResponse {
  isOn: boolean
  since: string | null
  recoveryCodesLeft: number
}

/** Of `GET /sessions`: the sessions of the signed-in member that have not ended, the newest use first. */
export interface OwnSessionsResponse {
  sessions: { startedAt: string; seenAt: string; isThis: boolean }[]
}

export interface EnrolmentResponse {
  secret: string
  uri: string
}

export interface RecoveryCodesResponse {
  recoveryCodes: string[]
}

export interface ShownAuditEntry {
  id: number
  at: string
  actor: { kind: 'member' | 'key' | 'command'; name: string }
  action: string
  tenantId: string | null
  requestId: string | null
  ipAddress: string | null
  data: Record<string, unknown>
}

export interface InstallationResponse {
  version: string
  /** `value` null: the default. */
  settings: { name: string; means: string; default: string; value: string | null }[]
}

export interface DoctorResponse {
  findings: { check: string; status: 'ok' | 'warning' | 'problem' | 'unknown'; detail: string; remedy: string | null }[]
}

/** Of `POST /templates/render`. */
export interface RenderedTemplateResponse {
  /** null: the source or its values have a fault. */
  subject: string | null
  fault: { message: string; suggestion: string } | null
}

/** Of `GET /use/tracking`: emails accepted in the last seven days that people opened, or whose links they used. */
export interface TrackingUseResponse {
  opened: number
  clicked: number
  /** false: there are more events than are counted. */
  isComplete: boolean
}

/** Of `GET /use/webhooks`, by id of the named webhooks: the newest requests of the last 24 hours. Webhooks without requests are absent. */
export interface WebhookUseResponse {
  webhooks: Record<
    string,
    {
      requests: number
      delivered: number
      medianMs: number
      /** Of 24 hours, the oldest first. */
      requestsByHour: number[]
      deliveredByHour: number[]
      isComplete: boolean
    }
  >
}

/** Of `GET /email-marks`, by email id. */
export interface EmailMarksResponse {
  marks: Record<
    string,
    {
      openedAt: string | null
      clickedAt: string | null
      complainedAt: string | null
      /** The last attempt or bounce; null: not tried yet. */
      last: { status: string; at: string } | null
    }
  >
}

/** Of `GET /emails/:emailId/findings`; empty if the content is gone. */
export interface EmailFindingsResponse {
  findings: { check: string; severity: 'ok' | 'advice' | 'problem'; message: string; suggestion: string | null }[]
}

/** Of `POST /emails/:emailId/check-links`. */
export interface EmailLinksResponse {
  links: {
    url: string
    state: 'works' | 'refuses' | 'broken' | 'unchecked'
    /** null: no HTTP response. */
    statusCode: number | null
    message: string
  }[]
}

export interface EmailMoreResponse {
  complainedAt: string | null
  /** Whether delivery holds mail for the recipient, by the list of the tenant or of the organisation. */
  isSuppressed: boolean
  /** When the recipient unsubscribed with this email. */
  unsubscribedAt: string | null
  attempts: { id: string; durationMs: number; conversation: string | null }[]
  /** The request that sent the email; null: unknown, or of another tenant. */
  request: {
    requestId: string
    timestamp: string
    method: string
    path: string
    credential: { id: string; keyPrefix: string | null }
    context: { ipAddress: string | null; userAgent: string | null; idempotencyKey: string | null }
  } | null
  webhooks: {
    id: string
    webhookId: string
    webhookName: string
    event: string
    attempt: number
    success: boolean
    statusCode: number | null
    willRetry: boolean
    timestamp: string
  }[]
}

/** Counts of one hour or day; `sent` counts accepted emails. */
export type ShownPoint = { timestamp: string } & Record<
  'sent' | 'delivered' | 'soft_failed' | 'hard_failed' | 'bounced' | 'held' | 'complained' | 'test',
  number
>

export interface OverTimeResponse {
  firstDay: string
  lastDay: string
  granularity: 'hour' | 'day' | 'week' | 'month'
  points: ShownPoint[]
}

/** Of `GET /before`: the sums of the period of the same length before, up to the same time of day. */
export interface BeforeResponse {
  counts: Omit<ShownPoint, 'timestamp'>
}

export interface RecentResponse {
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

export interface HealthResponse {
  /** Recipients by state. */
  queue: Record<string, number>
  overdueMs: number
  shardsUnowned: number
  restoreWaiting: boolean
}

export interface ShownQueuePause {
  tenantId: string
  kind: 'destination' | 'provider' | 'domain'
  name: string
  reason: string
  at: string
}

export interface QueueResponse {
  /** Of all queues. */
  totals: Record<'recipientDomains' | 'ready' | 'overLimit' | 'sending' | 'deferred' | 'held', number> &
    Record<'oldestAt' | 'nextDueAt', string | null>
  /** The list has only the longest queues. */
  isCut: boolean
  recipientDomains: {
    recipientDomain: string
    ready: number
    sending: number
    deferred: number
    overLimit: number
    held: number
    oldestAt: string
    nextDueAt: string | null
    /** Messages per minute. */
    perMinute: number
    lastReply: { details: string; output: string } | null
    delayReason: string | null
    pauseReason: string | null
  }[]
  pauses: ShownQueuePause[]
  providers: {
    source: string
    provider: string
    connectionsOpen: number
    connections: number
    /** Messages a second; null: unlimited. */
    rate: number | null
    backoffUntilMs: number | null
    cause: string | null
    changedAt: string | null
  }[]
  warmUps: { source: string; provider: string; day: number; taken: number; ceiling: number }[]
}

/** Of the pages of `GET /queue/emails`. */
export interface ShownWaitingEmail {
  id: string
  tenantId: string
  to: string
  acceptedAt: string
  state: 'ready' | 'sending' | 'deferred' | 'over_limit' | 'held' | 'scheduled'
  /** Failed attempts so far. */
  attempts: number
  /** Why it is held or delayed, when it does not wait for the next attempt. */
  reason: string | null
  lastReply: { at: string; details: string; output: string; remoteHost: string | null } | null
  /** null: due now, in flight, or held. */
  nextAttemptAt: string | null
  /** The expected time of the last attempt, after which it fails; null: it is held or scheduled. */
  lastAttemptAt: string | null
}

export interface FlushResponse {
  emails: number
}

interface ShownLeft {
  rows: number
  /** null: no row. */
  oldest: string | null
}

/** Of `GET /tenants/:tenantId/privacy-report`: the data that is left. */
export interface PrivacyReportResponse {
  tenantId: string
  at: string
  contentDays: number
  contents: ShownLeft & { ofQueuedEmails: number; ofTestMail: number }
  emails: ShownLeft & { erased: number }
  attempts: ShownLeft
  /** Emails whose record is not reduced. */
  records: ShownLeft & { notFinal: number }
  requests: ShownLeft & { ofNoTenant: ShownLeft }
  requestBodies: ShownLeft & { ofNoTenant: ShownLeft }
  events: ShownLeft
  opensAndClicks: ShownLeft
  webhookDeliveries: ShownLeft
  receivedMessages: ShownLeft
}

export interface TenantLimitsResponse {
  /** Emails per hour of the whole organisation; null: unlimited. */
  sendPerHour: number | null
  /** Emails per hour by tenant id. */
  ceilings: Record<string, number>
  /** Pause reason by tenant id. */
  paused: Record<string, string>
}
