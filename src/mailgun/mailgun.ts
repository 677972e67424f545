/**
 * The API of Mailgun, translated: messages to submissions, refusals to Mailgun's errors, suppressions, domains and webhooks to its objects.
 * Owns: no tables. Uses: base, mail, domains, suppressions, emails, accept, webhooks, vendors. Used by: http.
 * Promises: any body or query is either translated or refused in Mailgun's form; a parameter that is not served is refused, never ignored;
 * the work for one request is limited, for any recipient variables.
 */
export { mailgunDomain, mailgunDomainDetails } from './domain-objects.ts'
export { MailgunRefusal, mailgunFailure } from './errors.ts'
export { maxMailgunRecipients, readMailgunMessage, readMailgunRaw } from './read-message.ts'
export { type EventsQuery, eventsPage, type Filter, readDomainsQuery, readEventsQuery, readSuppressionsQuery } from './read-queries.ts'
export { mailgunRawSubmission, mailgunSubmissions, messagesOf } from './submissions.ts'
export { addedAnswer, mailgunEntry, mailgunLists, readNewEntries } from './suppression-objects.ts'
export { eventsOfWebhook, mailgunWebhookIds, readMailgunWebhook, urlsOf } from './webhook-objects.ts'
