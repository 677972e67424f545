/**
 * The API of Postal, translated: parameters to submissions, refusals to Postal's errors, emails and attempts to its messages and deliveries.
 * Owns: no tables. Uses: base, mail, emails, tracking, accept, vendors. Used by: http.
 * Promises: any JSON value is either translated or refused in Postal's form; a field that is not served is refused, never ignored.
 */
export { failureEnvelope, successEnvelope } from './envelope.ts'
export { deliveriesToPostal, type MessageFacts, messageToPostal, sentToPostal } from './messages.ts'
export { type MessageCall, messageNotFound, type PostalExpansion, readMessageCall } from './read-message-call.ts'
export { readSendMessage } from './send-message.ts'
export { readSendRaw } from './send-raw.ts'
