/**
 * One SMTP conversation as a client (RFC 5321): connect, STARTTLS, pipeline, replies. No policy, no retry, no DNS.
 * Owns: nothing. Uses: base. Used by: delivery.
 * Promises: nothing a peer does throws; every read is bounded in lines, octets and time; whether the final dot was written is always
 * known, and so is whether its reply was seen.
 */
export { connect } from './connect.ts'
export type { ConnectOptions, Failure, Peer, RecipientResult, Reply, SmtpConnection, Transaction } from './types.ts'
