/**
 * Observations made outside the service: requests and responses, messages taken by the relay, and faults. The checker compares them with
 * the service's own records.
 */

/** One send request and its outcome. */
export interface SendRequest {
  path: '/emails' | '/emails/batch'
  body: string
  key: string | undefined
  /** Recipient → SHA-256 of the text sent to it. */
  texts: ReadonlyMap<string, string>
  beganMs: number
  /** `unanswered`: no response came, and without a key it must not be repeated; accepted or not are both correct. */
  state: 'open' | 'acknowledged' | 'unanswered' | 'refused'
  answeredMs: number
  /** Recipient → email id, if acknowledged. */
  emails: ReadonlyMap<string, string>
  answer: string
}

/** A recipient's message that the relay answered with 250, or would have when the connection broke. */
export interface AcceptedMessage {
  /** Part of the relay's reply, and so of the attempt that recorded it. */
  id: string
  recipient: string
  messageId: string
  /** SHA-256 of its text as received. */
  text: string
  connection: string
  /** When the final dot arrived. */
  atMs: number
}

/** A fault: messages in flight between `beganMs` and `endedMs` may be repeated. */
export interface InjectedFault {
  kind: string
  beganMs: number
  endedMs: number
}

/** An attempt as shown by the API. */
export interface ReportedAttempt {
  status: string
  output: string
  outcomeUnknown: boolean
  atMs: number
}

/** The service's record of one email. */
export interface ReportedEmail {
  id: string
  recipient: string
  status: string
  /** Names of its events, in order. */
  events: readonly string[]
  /** Only for emails that need a close look. */
  attempts: readonly ReportedAttempt[] | undefined
}
