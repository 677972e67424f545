/**
 * One conversation as an SMTP client: connect, STARTTLS, pipeline, replies. No policy, no retry, no DNS.
 * Owns: nothing. Uses: base. Used by: delivery, doctor.
 * Promises: nothing a peer does makes it throw, wait for ever or keep more than a bounded reply; each recipient gets one result, and
 * `unknown` is said exactly when the final dot was handed to the network and its reply never seen.
 */
export { connect, ownGreeting } from './connect.ts'
export { reach, type Target } from './reach.ts'
export type {
  ConnectOptions,
  ConnectResult,
  Dial,
  Failure,
  Peer,
  RecipientResult,
  Reply,
  SmtpConnection,
  SmtpLimits,
  TlsDemand,
  TlsFacts,
  Transaction,
  TransactionResult,
} from './types.ts'
