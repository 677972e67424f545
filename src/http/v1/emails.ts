/** GET /emails, GET /emails/{emailId}/deliveries, POST /emails/{emailId}/retry (contract 7.7, 7.9, 7.10). */

import Type, { type Static } from 'typebox'
import { addressHashesOf, Refusal, wrongField } from '#base'
import { inSnapshot } from '#db'
import { type Email, emailStatuses, findEmail, hasContent, listAttempts, listEmails, maxCounted, queuedStatuses } from '#emails'
import { parseDomain } from '#mail'
import { mayHaveHashes } from '#privacy'
import { findQueued, type Queued } from '#spool'
import {
  instantFields,
  instantOf,
  knownEmailId,
  nullable,
  pageFields,
  queriedAddress,
  readInstant,
  tenantParameter,
  timesOf,
} from './common-schemas.ts'
import { listRoute, route } from './define-endpoint.ts'
import { AttemptSchema, deliveryToWire } from './delivery-schema.ts'
import { idsWith, type ListedEvent, listedEvents } from './email-events.ts'
import { query } from './query-parameters.ts'
import { searchTurns } from './search-turns.ts'

const EmailStatus = Type.Unsafe<(typeof emailStatuses)[number]>({ type: 'string', enum: emailStatuses })

const EmailItem = Type.Object({
  id: Type.String(),
  tenantId: Type.String(),
  to: Type.String(),
  from: Type.String(),
  subject: Type.String(),
  status: EmailStatus,
  test: Type.Boolean({ description: 'Sent with a test key' }),
  ...instantFields,
  tag: Type.Optional(Type.String()),
  messageId: Type.String(),
  scheduledAt: Type.Optional(Type.String({ format: 'date-time' })),
  cancelledAt: Type.Optional(Type.String({ format: 'date-time' })),
})

const countsTo = `with this filter, total stops at ${maxCounted.toLocaleString('en')}`

export const listEmailsRoute = listRoute({
  method: 'GET',
  path: '/emails',
  name: 'emails.list',
  summary: 'List emails, newest first',
  permission: 'emails:read',
  scope: 'organisation or tenant',
  families: 'organisation',
  query: query({
    ...pageFields,
    status: Type.Optional(EmailStatus),
    test: Type.Optional(
      Type.Boolean({ description: 'true: only mail sent with test keys; false: only live mail; with status, total stops at 1,000' }),
    ),
    to: Type.Optional(Type.String({ description: 'Recipient address' })),
    from: Type.Optional(Type.String({ description: 'Sender address, without display name' })),
    tag: Type.Optional(Type.String()),
    after: Type.Optional(Type.String({ description: 'Accepted later than: unix seconds or ISO 8601' })),
    before: Type.Optional(Type.String({ description: 'Accepted earlier than' })),
    subject: Type.Optional(Type.String({ maxLength: 200, description: `Words of the subject, or their prefixes; ${countsTo}` })),
    domain: Type.Optional(Type.String({ maxLength: 255, description: `Domain of the sender; ${countsTo}` })),
    credentialId: Type.Optional(Type.Integer({ minimum: 1, description: `Id of the sending key; ${countsTo}` })),
    metadata: Type.Optional(Type.String({ maxLength: 600, description: `name:value; ${countsTo}` })),
    complained: Type.Optional(
      Type.Boolean({ description: `true: only emails that drew a complaint, among the newest ${maxCounted.toLocaleString('en')} of them` }),
    ),
    event: Type.Optional(
      Type.Unsafe<ListedEvent>({
        type: 'string',
        enum: listedEvents,
        description: `Only emails that had this event, among the newest ${maxCounted.toLocaleString('en')} of them accepted between after and before`,
      }),
    ),
    tenantId: tenantParameter,
  }),
  data: EmailItem,
  refuses: ['invalid_email_format', 'tenant_mismatch', 'not_found'],
  handle: async ({ query, tenantId, credential, connection }, { db, clock, secrets }) => {
    const recipient = query.to && queriedAddress('to', query.to)
    const filter = {
      tenantId,
      status: query.status,
      test: query.test,
      recipient,
      recipientHashes: recipient && (await mayHaveHashes(db, tenantId)) ? addressHashesOf(secrets, recipient) : undefined,
      sender: query.from && queriedAddress('from', query.from),
      tag: query.tag,
      after: query.after === undefined ? undefined : readInstant('after', query.after),
      before: query.before === undefined ? undefined : readInstant('before', query.before),
      words: query.subject === undefined ? undefined : wordsIn(query.subject),
      domain: query.domain === undefined ? undefined : domainOf(query.domain),
      credentialId: query.credentialId,
      metadata: query.metadata === undefined ? undefined : metadataOf(query.metadata),
    }
    const events: ListedEvent[] = [...(query.event ? [query.event] : []), ...(query.complained ? ['complained' as const] : [])]
    const findIds = idsWith(events, filter, maxCounted)
    const taker = { tenantId: credential.tenantId, gone: connection?.gone }
    const { emails, total } = await searchTurns.run(taker, () =>
      listEmails(db, { ...filter, findIds }, { number: query.page, size: query.perPage }, clock.nowMs()),
    )
    return { items: emails.map(itemToWire), page: query.page, perPage: query.perPage, total }
  },
})

const RetryState = Type.Object({
  attempt: Type.Integer(),
  maxAttempts: Type.Integer(),
  attemptsRemaining: Type.Integer(),
  manual: Type.Boolean(),
  processing: Type.Boolean(),
  nextRetryAt: nullable(Type.Number()),
  nextRetryAtIso: nullable(Type.String({ format: 'date-time' })),
})

const Deliveries = Type.Object({
  id: Type.String(),
  tenantId: Type.String(),
  status: EmailStatus,
  canRetryManually: Type.Boolean({ description: 'true while the content is stored' }),
  deliveries: Type.Array(AttemptSchema),
  retryState: nullable(RetryState),
})

export const listDeliveriesEndpoint = route({
  method: 'GET',
  path: '/emails/{emailId}/deliveries',
  name: 'emails.retrieveDeliveries',
  summary: 'List all delivery attempts of an email',
  permission: 'emails:read',
  scope: 'organisation or tenant',
  families: 'organisation',
  query: query({ tenantId: tenantParameter }),
  data: Deliveries,
  refuses: ['not_found', 'tenant_mismatch'],
  handle: async ({ params, tenantId }, { db, clock, config }) => {
    const id = knownEmailId(params.emailId)
    const { email, attempts, canRetryManually, queued } = await inSnapshot(db, async (tx) => {
      const email = await findEmail(tx, id, tenantId)
      if (!email) throw new Refusal('not_found', { message: 'no such email' })
      const isQueued = queuedStatuses.includes(email.status)
      return {
        email,
        attempts: await listAttempts(tx, email),
        canRetryManually: await hasContent(tx, email),
        queued: isQueued ? await findQueued(tx, { tenantId: email.tenantId, emailId: email.id }) : undefined,
      }
    })
    return {
      id: email.id,
      tenantId: email.tenantId,
      status: email.status,
      canRetryManually,
      deliveries: attempts.map(deliveryToWire),
      retryState: queued ? retryStateOf(queued, config.maxAttempts, clock.nowMs()) : null,
    }
  },
})

export const retryEmail = route({
  method: 'POST',
  path: '/emails/{emailId}/retry',
  name: 'emails.retry',
  summary: 'Retry an email now',
  permission: 'emails:send',
  scope: 'organisation or tenant',
  families: 'organisation',
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({ id: Type.String(), message: Type.String(), tenantId: Type.String() }),
  refuses: ['not_found', 'email_not_retryable', 'email_content_expired', 'tenant_suspended', 'tenant_archived', 'tenant_mismatch'],
  handle: async ({ params, tenantId, credential }, { accept }) => {
    const retried = await accept.retry(knownEmailId(params.emailId), { tenantId, allowedFrom: credential.bounds?.from })
    return { ...retried, message: 'The email is pending and will be attempted now' }
  },
})

const maxWords = 10

function wordsIn(text: string): string[] | undefined {
  const words = text.split(/\s+/).filter((word) => word !== '')
  if (words.length > maxWords) throw wrongField('subject', `has more than ${maxWords} words`)
  return words.length === 0 ? undefined : words
}

function domainOf(text: string): string {
  const domain = parseDomain(text)
  if (domain === undefined) throw wrongField('domain', 'is not a domain')
  return domain
}

function metadataOf(text: string): Record<string, string> {
  const at = text.indexOf(':')
  if (at < 1) throw wrongField('metadata', 'must have the form name:value')
  return { [text.slice(0, at)]: text.slice(at + 1) }
}

function itemToWire(email: Email): Static<typeof EmailItem> {
  return {
    id: email.id,
    tenantId: email.tenantId,
    to: email.recipient,
    from: email.fromHeader,
    subject: email.subject,
    status: email.status,
    test: email.test,
    ...instantOf(email.acceptedAt),
    ...(email.tag === null ? {} : { tag: email.tag }),
    messageId: email.messageId,
    ...timesOf(email),
  }
}

const hourMs = 3_600_000

function retryStateOf({ state, attempts, manualRetry, dueAt }: Queued, maxAttempts: number, nowMs: number): Static<typeof RetryState> {
  const due =
    state === 'over_limit'
      ? new Date((Math.floor(nowMs / hourMs) + 1) * hourMs)
      : state === 'deferred' || state === 'scheduled'
        ? dueAt
        : null
  const next = due && due.getTime() > nowMs ? due : null
  return {
    attempt: attempts,
    maxAttempts,
    attemptsRemaining: Math.max(0, maxAttempts - attempts),
    manual: manualRetry,
    processing: state === 'sending',
    nextRetryAt: next && instantOf(next).timestamp,
    nextRetryAtIso: next && instantOf(next).timestampIso,
  }
}
