/**
 * What is known outside of the service: what was asked of it and what it answered, what the relay took, and when something was done to
 * its processes. The checker compares this with what the service says of itself.
 */

/** One request to send, and what became of it. */
export interface SendRequest {
  path: '/emails' | '/emails/batch'
  body: string
  key: string | undefined
  /** Recipient → SHA-256 of the text sent to it. */
  texts: ReadonlyMap<string, string>
  beganMs: number
  /** `unanswered`: no answer came, and without a key it may not be asked again; accepted or not, both would be right. */
  state: 'open' | 'acknowledged' | 'unanswered' | 'refused'
  answeredMs: number
  /** Recipient → email id, when acknowledged. */
  emails: ReadonlyMap<string, string>
  answer: string
}

/** One recipient's message that the relay answered with 250, or was about to when the connection broke. */
export interface Taken {
  /** Stands in the relay's reply, and therefore in the attempt that recorded it. */
  id: string
  recipient: string
  messageId: string
  /** SHA-256 of its text as it arrived. */
  text: string
  connection: string
  /** When the final dot was here. */
  atMs: number
}

/** Something done to processes: what was in flight between `beganMs` and `endedMs` may be repeated. */
export interface Fault {
  kind: string
  beganMs: number
  endedMs: number
}

/** An attempt as the API tells it. */
export interface ToldAttempt {
  status: string
  output: string
  outcomeUnknown: boolean
  atMs: number
}

/** What the service says of one email. */
export interface ToldEmail {
  id: string
  recipient: string
  status: string
  /** Names of its events, in their order. */
  events: readonly string[]
  /** Of those that were looked at closely. */
  attempts: readonly ToldAttempt[] | undefined
}
