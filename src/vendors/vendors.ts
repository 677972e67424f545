/**
 * Parts that the APIs of all other vendors share: a reader of JSON objects that refuses every field that it was not asked for, lists of
 * addresses in one text, and content types by file name. Also base64 in lines, header fields that mail libraries add, HTTP statuses, and field
 * names for refusals.
 * Owns: no tables. Uses: base. Used by: postal, resend, sendgrid, postmark, ses, mailgun.
 * Promises: a member of an object is either read or refused; reading takes time in proportion to the text.
 */
export { withoutSpaces } from './base64-text.ts'
export { contentTypeOf } from './content-type.ts'
export { usualStatuses } from './http-statuses.ts'
export { JsonFields, type RefuseField } from './json-fields.ts'
export { isMailerField } from './mailer-fields.ts'
export { type FieldNames, renameFields } from './rename-fields.ts'
export { splitAddresses } from './split-addresses.ts'
