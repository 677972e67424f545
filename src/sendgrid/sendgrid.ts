/**
 * The API of SendGrid, translated: mails to submissions, refusals to SendGrid's errors, suppressions and webhooks to its objects.
 * Owns: no tables. Uses: base, mail, credentials, suppressions, emails, accept, webhooks, vendors. Used by: http.
 * Promises: any JSON value is either translated or refused in SendGrid's form; a field that is not served is refused, never ignored; the
 * work for one request is limited, for any personalizations.
 */
export { SendGridRefusal, sendgridFailure } from './errors.ts'
export { personalize } from './personalize.ts'
export { readSendGridMail } from './read-mail.ts'
export { sendgridScopes } from './scopes.ts'
export { readDeletion, readRecipientEmails, readSendGridPage, sendgridEntry, sendgridLists } from './suppression-objects.ts'
export { readSendGridWebhook, sendgridWebhook } from './webhook-objects.ts'
