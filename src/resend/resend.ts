/**
 * The API of Resend, translated: emails to submissions, refusals to Resend's errors, messages, domains and webhooks to its objects.
 * Owns: no tables. Uses: base, mail, suppressions, domains, emails, accept, webhooks, vendors. Used by: http.
 * Promises: any JSON value is either translated or refused in Resend's form; a field that is not served is refused, never ignored.
 */
export { readResendDomain, resendDomain, resendDomainItem } from './domain-objects.ts'
export { resendEmail, resendEmailItem } from './email-objects.ts'
export { ResendRefusal, resendFailure } from './errors.ts'
export { maxResendBatch, readResendBatch, readResendEmail, readResendSchedule } from './read-email.ts'
export { readIdempotencyKey, readResendPage, readSuppressedEmail, readSuppressedEmails, readSuppressionPage } from './read-parameters.ts'
export { resendSuppression } from './suppression-objects.ts'
export { readResendWebhook, resendWebhook } from './webhook-objects.ts'
