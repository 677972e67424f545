/**
 * The API of Postmark, translated: messages to submissions, refusals to Postmark's error codes, emails, bounces and suppressions to its
 * objects.
 * Owns: no tables. Uses: base, mail, suppressions, emails, tracking, accept, webhooks, vendors. Used by: http.
 * Promises: any JSON value is either translated or refused in Postmark's form; a field that is not served is refused, never ignored.
 */
export { bounceStatuses, postmarkBounce } from './bounces.ts'
export { inactiveRefusal, PostmarkRefusal, postmarkError, postmarkFailure } from './errors.ts'
export { maxPostmarkRecipients, maxPostmarkVisits, postmarkDetails, postmarkListed } from './message-objects.ts'
export { maxPostmarkBatch, postmarkSent, readPostmarkBatch, readPostmarkEmail } from './read-message.ts'
export { readBounceQuery, readMessageQuery, readSuppressionQuery } from './read-queries.ts'
export { postmarkSuppression, readSuppressionList } from './suppressions.ts'
export { postmarkWebhook, readPostmarkWebhook } from './webhook-objects.ts'
