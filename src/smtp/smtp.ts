/**
 * An SMTP client for one conversation: connect, STARTTLS, pipeline, replies. It contains no policy, retry or DNS. Owns: no tables. Uses:
 * base, net. Used by: delivery, mta-sts, doctor. Promises: a peer cannot make it throw, wait without limit or keep more than one reply of limited size;
 * each recipient gets one result, and `unknown` means exactly that the final dot was handed to the network and its reply never arrived.
 */
export { connect, ownGreeting } from './connect.ts'
export { happyEyeballs, type Target } from './happy-eyeballs.ts'
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
