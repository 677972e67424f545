/** The bodies of webhooks and of the event stream. Times are seconds since the epoch. */

export interface EventMessage {
  id: number
  /** The email's id in the API. */
  token: string
  direction: 'outgoing' | 'incoming'
  /** Without angle brackets. */
  message_id: string
  to: string
  from: string
  subject: string
  timestamp: number
  spam_status: string
  tag: string | null
  metadata: Record<string, string> | null
}

interface WithMetadata {
  metadata: Record<string, string> | null
}

interface Attempted<Status extends string> extends WithMetadata {
  message: EventMessage
  status: Status
  details: string
  output: string
  sent_with_ssl: boolean
  timestamp: number
  /** Duration of the attempt in seconds. */
  time: number
}

interface FailedAttempt<Status extends string> extends Attempted<Status> {
  classification: string
  classification_code: number
  smtp_enhanced_code: string | null
  remote_host: string | null
}

interface Loaded extends WithMetadata {
  message: EventMessage
  ip_address: string
  user_agent: string
}

interface Server {
  uuid: string
  name: string
  permalink: string
  organization: string
}

type RecordStatus = 'OK' | 'Missing' | 'Invalid' | null
type Checked = { [Name in 'spf' | 'dkim' | 'mx' | 'return_path' as `${Name}_status`]: RecordStatus } & {
  [Name in 'spf' | 'dkim' | 'mx' | 'return_path' as `${Name}_error`]: string | null
}

interface LimitReached {
  server: Server
  volume: number
  limit: number
}

interface ListChanged extends WithMetadata {
  /** Lower case. */
  address: string
  reason: string | null
  source: 'manual' | 'automatic'
  /** The email that caused the change; null: a request caused it. */
  message: EventMessage | null
}

/** A message that a route received. Its bodies are cut at 20,000 characters of text and 40,000 of HTML; `url` and `raw_url` have the rest. */
interface Received {
  id: string
  recipients: { address: string; route_id: string }[]
  /** Empty: the null reverse-path, as of bounces and automatic replies. */
  envelope_from: string
  client_address: string
  /** Empty unless From has exactly one address. */
  from: string
  from_name: string
  to: string
  cc: string
  reply_to: string
  subject: string
  message_id: string
  date: string
  text: string | null
  html: string | null
  headers: { name: string; value: string }[]
  attachments: { filename: string; content_type: string; size: number }[]
  /** A part was cut or left out. */
  truncated: boolean
  /** Such as auto-replied (RFC 3834). */
  auto_submitted: string
  /** Servers that the message passed. */
  hops: number
  size: number
  /** The id of the email that it replies to. */
  in_reply_to: string | null
  /** It was sent to the signed address of that email, which only its readers know. */
  in_reply_to_proven: boolean
  /** Checks when it arrived; null: the message was too costly to read. */
  authentication: {
    spf: { result: 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'temperror' | 'permerror'; domain: string }
    /** Of any domain. */
    dkim: { result: 'pass' | 'fail' | 'temperror'; domain: string; selector: string }[]
    /** `policy`: the one to apply if the result is fail. */
    dmarc: { result: 'pass' | 'fail' | 'none' | 'temperror' | 'permerror'; domain: string; policy: string | null }
  } | null
  url: string
  raw_url: string
}

interface ReputationChanged {
  kind: 'blocklist_new' | 'complaint_rate_high' | 'block_rate_up' | 'dmarc_pass_rate_down' | 'tls_share_down' | ''
  severity: 'warning' | 'problem' | ''
  /** UTC, such as `2026-03-01`. */
  day: string
  domain: string | null
  /** Empty: the operating system chose the address. */
  source: string | null
  provider: string | null
  /** The DNS zone. */
  blocklist: string | null
  /** Shares from 0 to 1; null: without comparison. */
  before: number | null
  now: number | null
  text: string
}

export interface EventPayloads {
  MessageSent: Attempted<'Sent'>
  MessageDelayed: FailedAttempt<'SoftFail'>
  MessageDeliveryFailed: FailedAttempt<'HardFail'>
  MessageHeld: Attempted<'Held'>
  MessageBounced: WithMetadata & { original_message: EventMessage; bounce: EventMessage }
  MessageLoaded: Loaded
  MessageLinkClicked: Loaded & { url: string; token: string }
  DomainDNSError: Checked & { domain: string; uuid: string; dns_checked_at: number; server: Server }
  SendLimitApproaching: LimitReached
  SendLimitExceeded: LimitReached
  /** Sent only to subscriptions that name it, like the five below. */
  ComplaintReceived: WithMetadata & {
    message: EventMessage
    matched_by: 'return path' | 'trace header' | ''
    dkim: 'pass' | 'fail' | 'none' | ''
  }
  RecipientUnsubscribed: WithMetadata & { message: EventMessage }
  SuppressionAdded: ListChanged
  SuppressionRemoved: ListChanged
  MessageReceived: Received
  ReputationWarning: ReputationChanged
}

export type EventName = keyof EventPayloads

/** Distinguished by `event`. */
export type WebhookEvent = {
  [Name in EventName]: {
    event: Name
    timestamp: number
    /** The same on every attempt; ignore those you have already processed. */
    uuid: string
    tenant_id: string
    payload: EventPayloads[Name]
    /** Only in a sample sent by the platform's test. */
    _test?: true
  }
}[EventName]
