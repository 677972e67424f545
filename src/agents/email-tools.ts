/** Tools that answer questions about emails: which there are, how one fares and why, and why a person got no email. */
import Type from 'typebox'
import { Refusal } from '#base'
import { type Fields, facts, fieldsOf, listOf, question, rehearsal, type Tool, type ToolContext } from './tool.ts'

export const EmailId = Type.String({ minLength: 1, maxLength: 40, description: 'Id of the email' })
export const AddressInput = Type.String({ minLength: 3, maxLength: 320, description: 'Email address' })
export const TenantId = Type.Optional(
  Type.String({ maxLength: 64, description: 'Tenant id; default: the tenant of the key, or all tenants' }),
)
export const Limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'Default 20' }))
export const usualLimit = 20

const statuses = ['pending', 'sent', 'softfail', 'hardfail', 'held', 'bounced'] as const
const Status = Type.Optional(Type.Unsafe<(typeof statuses)[number]>({ type: 'string', enum: [...statuses] }))

const itemFacts = ['id', 'tenantId', 'status', 'test', 'timestampIso', 'scheduledAt', 'cancelledAt']

const textsOf = (email: Fields, { quote }: ToolContext) => ({
  to: quote.address(email.to),
  from: quote.text(email.from),
  subject: quote.text(email.subject),
  ...(email.tag === undefined ? {} : { tag: quote.text(email.tag) }),
})

const itemOf = (email: Fields, context: ToolContext) => ({ ...facts(email, itemFacts), untrusted: textsOf(email, context) })

const attemptFacts = ['status', 'timestampIso', 'code', 'classification', 'smtpEnhancedCode', 'sentWithSsl', 'transport', 'outcomeUnknown']

const attemptOf = (attempt: Fields, { quote }: ToolContext) => ({
  ...facts(attempt, attemptFacts),
  untrusted: {
    details: quote.text(attempt.details, 500),
    reply: quote.text(attempt.output, 500),
    remoteHost: quote.text(attempt.remoteHost),
  },
})

function explanationOf(email: Fields, { quote }: ToolContext) {
  const explanation = fieldsOf(email.explanation)
  return {
    ...facts(explanation, ['nextAt', 'blockedBy', 'queuePosition']),
    untrusted: { now: quote.text(explanation.now, 700), next: quote.text(explanation.next, 500) },
  }
}

export async function expandedEmail(emailId: string, expand: string, { caller }: ToolContext): Promise<Fields> {
  const { data } = await caller.call('emails.retrieve', { params: { emailId }, query: { expand } })
  return fieldsOf(data)
}

const maxAttempts = 10

const explainEmail = question({
  name: 'explain_email',
  title: 'Explain an email',
  description: 'The present state of one email, its reason, the next step, and its last attempt.',
  input: Type.Object({ emailId: EmailId }),
  async read({ emailId }, context) {
    const email = await expandedEmail(emailId, 'deliveries', context)
    const last = listOf(email.deliveries).at(-1)
    return {
      email: itemOf(email, context),
      explanation: explanationOf(email, context),
      lastAttempt: last ? attemptOf(last, context) : null,
    }
  },
})

const whyNoMail = question({
  name: 'why_no_mail',
  title: 'Explain why an address got nothing',
  description:
    'The newest emails to one address, whether it is suppressed, and the reason why the newest email did not arrive, in one answer.',
  input: Type.Object({ address: AddressInput, tenantId: TenantId }),
  async read({ address, tenantId }, context) {
    const { data, total } = await context.caller.call('emails.list', { query: { to: address, tenantId, perPage: 10 } })
    const emails = listOf(data)
    const suppressions = await suppressionsOf(address, tenantId, context)
    const newest = emails[0] === undefined ? undefined : await expandedEmail(String(emails[0].id), 'deliveries', context)
    const last = listOf(newest?.deliveries).at(-1)
    return {
      finding: findingOf(newest, suppressions),
      emails: emails.map((one) => itemOf(one, context)),
      emailsInAll: total ?? emails.length,
      explanationOfNewest: newest ? explanationOf(newest, context) : null,
      lastAttemptOfNewest: last ? attemptOf(last, context) : null,
      suppressions: suppressions?.map((one) => suppressionOf(one, context)) ?? 'unknown: the key lacks the permission suppressions:manage',
    }
  },
})

/** The address's own entries; undefined if the key may not read them. */
async function suppressionsOf(address: string, tenantId: string | undefined, { caller }: ToolContext): Promise<Fields[] | undefined> {
  try {
    const query = { address, tenantId, all: caller.credential.tenantId === null && tenantId === undefined ? true : undefined, perPage: 100 }
    const { data } = await caller.call('suppressions.list', { query })
    return listOf(data).filter((one) => one.address === address.trim().toLowerCase())
  } catch (error) {
    if (error instanceof Refusal && error.code === 'permission_denied') return undefined
    throw error
  }
}

export const suppressionOf = (entry: Fields, { quote }: ToolContext) => ({
  ...facts(entry, ['id', 'tenantId', 'createdAt', 'source', 'emailId']),
  untrusted: { address: quote.address(entry.address), reason: quote.text(entry.reason) },
})

const findings: Readonly<Record<string, string>> = {
  pending: 'the newest email waits: see explanationOfNewest',
  softfail: 'the newest email failed temporarily and will be attempted again',
  hardfail: 'the newest email failed permanently: see lastAttemptOfNewest',
  held: 'the newest email is held: its recipient is suppressed, or its tenant is paused or suspended',
  bounced: 'a mail server accepted the newest email and returned it later',
  sent: "the recipient's server accepted the newest email: look in the spam folder, or ask its postmaster",
}

function findingOf(newest: Fields | undefined, suppressions: readonly Fields[] | undefined): string {
  if (!newest) return 'no email to this address was accepted within the retention time: the caller never sent it, or the address differs'
  const state = findings[String(newest.status)] ?? 'see explanationOfNewest'
  return suppressions !== undefined && suppressions.length > 0 ? `the address is suppressed; ${state}` : state
}

const Time = Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601, or unix seconds' }))

const listEmails = question({
  name: 'list_emails',
  title: 'List emails',
  description: 'Emails, newest first, by recipient, sender, status, words of the subject, tag or time.',
  input: Type.Object({
    to: Type.Optional(AddressInput),
    from: Type.Optional(AddressInput),
    status: Status,
    subject: Type.Optional(Type.String({ maxLength: 200, description: 'Words of the subject' })),
    tag: Type.Optional(Type.String({ maxLength: 100 })),
    after: Time,
    before: Time,
    test: Type.Optional(Type.Boolean({ description: 'true: only test mail; false: only live mail' })),
    page: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    limit: Limit,
    tenantId: TenantId,
  }),
  async read({ limit = usualLimit, ...query }, context) {
    const { data, total } = await context.caller.call('emails.list', { query: { ...query, perPage: limit } })
    return { emails: listOf(data).map((one) => itemOf(one, context)), total: total ?? null }
  },
})

const showEmail = question({
  name: 'show_email',
  title: 'Show an email',
  description: 'One email with its metadata and, if asked for, the beginning of its text and its headers.',
  input: Type.Object({
    emailId: EmailId,
    includeContent: Type.Optional(Type.Boolean({ description: 'true: the beginning of its text, and its headers' })),
  }),
  async read({ emailId, includeContent }, context) {
    const email = await expandedEmail(emailId, includeContent === true ? 'content,headers' : '', context)
    const { quote } = context
    return {
      ...facts(email, [...itemFacts, 'spam']),
      explanation: explanationOf(email, context),
      untrusted: {
        ...textsOf(email, context),
        messageId: quote.text(email.messageId),
        metadata: quote.fields(email.metadata),
        ...(includeContent === true
          ? { text: quote.text(email.plainBody ?? email.htmlBody, 1500), headers: quote.fields(email.headers) }
          : {}),
      },
    }
  },
})

const listAttempts = question({
  name: 'list_attempts',
  title: 'List the attempts of an email',
  description: 'The newest ten attempts to deliver one email, with the replies of the servers, and the time of the next one.',
  input: Type.Object({ emailId: EmailId }),
  async read({ emailId }, context) {
    const { data } = await context.caller.call('emails.retrieveDeliveries', { params: { emailId } })
    const found = fieldsOf(data)
    const attempts = listOf(found.deliveries)
    return {
      ...facts(found, ['id', 'tenantId', 'status', 'canRetryManually']),
      attempts: attempts.slice(-maxAttempts).map((one) => attemptOf(one, context)),
      attemptsInAll: attempts.length,
      retryState: facts(fieldsOf(found.retryState), ['attempt', 'maxAttempts', 'attemptsRemaining', 'processing', 'nextRetryAtIso']),
    }
  },
})

/** A sender and a recipient of the simulator, which need no set-up. */
const rehearsedFrom = 'agent@simulator.test'
const rehearsedTo = 'delivered@simulator.test'

const sendTestEmail = rehearsal({
  name: 'send_test_email',
  title: 'Send a test email',
  description:
    'Sends an email with a test key: the simulator takes it, and it never leaves the installation. Refused with a live key. Read the outcome with explain_email.',
  input: Type.Object({
    from: Type.Optional(Type.String({ maxLength: 320, description: `Default ${rehearsedFrom}` })),
    to: Type.Optional(
      Type.String({ maxLength: 320, description: `Default ${rehearsedTo}; other names of simulator.test cause other outcomes` }),
    ),
    subject: Type.String({ minLength: 1, maxLength: 200 }),
    text: Type.String({ minLength: 1, maxLength: 20_000 }),
    tenantId: TenantId,
  }),
  async rehearse({ from = rehearsedFrom, to = rehearsedTo, subject, text, tenantId }, { caller }) {
    if (caller.credential.mode !== 'test')
      throw new Refusal('permission_denied', {
        message: 'send_test_email needs a test key: an agent cannot send live mail',
        suggestion: 'Connect with a key that begins with svc_test_',
      })
    const body = { from, to: [to], subject, text, ...(tenantId === undefined ? {} : { tenantId }) }
    const { data } = await caller.call('emails.send', { body })
    return { sent: true, ...facts(fieldsOf(data), ['id', 'tenantId', 'status']) }
  },
})

export const emailTools: readonly Tool[] = [explainEmail, whyNoMail, listEmails, showEmail, listAttempts, sendTestEmail]
