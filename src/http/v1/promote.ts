/** POST /emails/{emailId}/promote (an extension of the contract): sends an email of a test key for real, to the same recipient. */
import type { Submission } from '#accept'
import { Refusal } from '#base'
import { type Content, type Email, findEmail, type PartsContent } from '#emails'
import { parseMailboxField } from '#mail'
import { knownEmailId, tenantParameter } from './common-schemas.ts'
import { sendRoute } from './define-endpoint.ts'
import { query } from './query-parameters.ts'
import { callerOf, responseFor, SentEmail, sendRefusals, sentToWire } from './send-emails.ts'

export const promoteEmail = sendRoute({
  method: 'POST',
  path: '/emails/{emailId}/promote',
  name: 'emails.promote',
  summary: 'Send a test email as live mail, with a live key, to its recipient only',
  permission: 'emails:send',
  scope: 'organisation or tenant',
  families: 'organisation',
  query: query({ tenantId: tenantParameter }),
  data: SentEmail,
  refuses: [...sendRefusals, 'sandbox_recipient_not_allowed', 'sandbox_limit_exceeded', 'invalid_raw_message', 'email_content_expired'],
  handle: async (call, { db, accept, contents }) => {
    const { credential, tenantId } = call
    const id = knownEmailId(call.params.emailId)
    const email = await findEmail(db, id, tenantId)
    if (!email) throw new Refusal('not_found', { message: 'no such email' })
    if (credential.mode === 'test')
      throw new Refusal('permission_denied', {
        message: 'a test key cannot promote an email: use a live key',
        suggestion: 'Use a live key',
      })
    if (!email.test) throw new Refusal('validation_error', { field: 'emailId', message: 'emailId: the email was not sent with a test key' })
    const content = await contents.use(email, call.connection, (held) => held.decode())
    if (!content) throw new Refusal('email_content_expired')
    const { message } = content
    const bounce = content.returnPathDomain === null
    const planned = responseFor(call, `/v1/emails/${id}/promote`, sentToWire)
    const caller = callerOf(credential)
    if (message.kind === 'parts') return accept.send(email.tenantId, submissionOf(message, content, email), caller, planned)
    const { fromHeader: from, recipient, tag, metadata } = email
    const vendor = { replyTo: [], bounce }
    const submission = { from, to: [recipient], rawMessage: message.raw, bounce, tag, metadata, vendor }
    return accept.sendRaw(email.tenantId, submission, caller, planned)
  },
})

/** In the forms of other vendors' APIs, through which the email may have been accepted. */
const submissionOf = (
  message: PartsContent,
  { unsubscribe, returnPathDomain }: Content,
  { recipient, tag, metadata }: Email,
): Submission => ({
  from: message.from,
  to: [recipient],
  vendor: { replyTo: mailboxesIn(message.replyTo ?? ''), bounce: returnPathDomain === null },
  subject: message.subject,
  html: message.html,
  text: message.text,
  headers: Object.fromEntries(message.headers),
  attachments: message.attachments,
  tag,
  metadata,
  unsubscribe: unsubscribe !== undefined,
})

/** Of a field with a line for each mailbox. Its names are encoded, and a submission would encode them once more. */
const mailboxesIn = (field: string): string[] =>
  (field === '' ? [] : field.split(',\r\n ')).map((text) => {
    const { name, address } = parseMailboxField(Buffer.from(text).toString('latin1')) ?? {}
    if (!address) return text
    return name === undefined ? address.text : `"${name.replace(/["\\]/g, '\\$&')}" <${address.text}>`
  })
