/**
 * Reads and writes messages: addresses, header fields and MIME.
 * Owns: no tables. Uses: no modules. Used by: bounces, openid, credentials, domains, suppressions, tracking, accept, delivery, returns,
 * domain-reports, tls-reports, received-mail, message-checks, postal, resend, sendgrid, postmark, ses, mailgun, imports, inbound,
 * http, cli.
 * Promises: built messages have only CRLF line ends and no line over 998 octets; reading has fixed limits and never throws.
 */
export { type Address, type Mailbox, parseAddress, parseDomain } from './address.ts'
export { buildMessage } from './build-message.ts'
export { decodeCharset } from './charsets.ts'
export { dotStuff } from './encode-body.ts'
export { textFromHtml } from './html-text.ts'
export { linksOf } from './links.ts'
export { parseMailbox, parseSender } from './mailbox.ts'
export { isMailboxListField, parseMailboxField } from './mailbox-field.ts'
export type { Originator } from './originators.ts'
export { fieldText, type RawField, splitMessage, structured } from './parse-fields.ts'
export { prepareRaw, readFields, readRaw, toSevenBit, traceHeaderField, withoutFields } from './raw-message.ts'
export { decodeBody, partsOf, readHeaders, readMessage } from './read-message.ts'
export { changeHtml } from './replace-html.ts'
export type { BuiltMessage } from './types.ts'
export { dateText, mailboxText } from './write-header.ts'
