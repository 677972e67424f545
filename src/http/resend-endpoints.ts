/**
 * The API of Resend: at the root for requests with a Bearer key to one of its paths, and under /compat/resend. One id stands for all
 * recipients of a message: that of the first recipient's email.
 */
import Type from 'typebox'
import type { BatchResult, ResponseRenderer, WithMemory } from '#accept'
import { Refusal } from '#base'
import { deleteDomain } from '#delivery'
import { findMessageRecipients, listEmailsOfMessage, listMessages } from '#emails'
import {
  maxResendBatch,
  ResendRefusal,
  readIdempotencyKey,
  readResendBatch,
  readResendDomain,
  readResendEmail,
  readResendPage,
  readResendSchedule,
  resendDomain,
  resendDomainItem,
  resendEmail,
  resendEmailItem,
  resendFailure,
} from '#resend'
import { findComplaints } from '#returns'
import { findReaderMarks } from '#tracking'
import { keyIn } from './authorize.ts'
import { resendSuppressionEndpoints } from './resend-suppressions.ts'
import { resendWebhookEndpoints } from './resend-webhooks.ts'
import { messageTurns } from './v1/search-turns.ts'
import { callerOf } from './v1/send-emails.ts'
import type { VendorApi, VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'

/** First segments of Resend's paths, served or not. */
const rootPath =
  /^\/(?:emails|domains|api-keys|audiences|automations|broadcasts|contact-properties|contacts|events|inboxes|logs|oauth|segments|suppressions|templates|topics|usage|webhooks)(?:\/|$)/

const bearer = /^bearer\s/i

const noSuchEmail = () => new ResendRefusal(404, 'not_found', 'Email not found')

const Addresses = Type.Array(Type.String(), { maxItems: 50 })
/** Octets of attachments that came as a JSON array instead of base64. */
const maxListedOctets = 2_000_000
const Attachment = Type.Object({
  filename: Type.String(),
  content: Type.String(),
  content_type: Type.String(),
  content_id: Type.String(),
  path: Type.String(),
})
const messageFields = {
  from: Type.String(),
  to: Addresses,
  cc: Addresses,
  bcc: Addresses,
  reply_to: Addresses,
  headers: Type.Unsafe<object>({ type: 'object', maxProperties: 50, additionalProperties: { type: 'string' } }),
  tags: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), { maxItems: 75 }),
  attachments: Type.Array(Attachment, { maxItems: 100 }),
}
const SendBody = Type.Object({ ...messageFields, octets: Type.Array(Type.Integer(), { maxItems: maxListedOctets }) })
const BatchBody = Type.Array(Type.Object(messageFields), { maxItems: maxResendBatch })

/** Renders Resend's answer before the commit, so that it is stored with the caller's idempotency key. */
function rendererFor<Result>(call: VendorCall, toBody: (result: Result) => object): ResponseRenderer<Result> {
  const key = readIdempotencyKey(call.headers['idempotency-key'])
  return {
    render: (result) => Buffer.from(JSON.stringify(toBody(result))),
    ...(key === undefined ? {} : { idempotency: { key, fingerprint: call.fingerprint() } }),
  }
}

/** `strict` refuses the whole batch for its first wrong email, `permissive` sends the others. */
function validationOf({ headers }: VendorCall): 'strict' | 'permissive' {
  const mode = headers['x-batch-validation'] ?? 'strict'
  if (mode === 'strict' || mode === 'permissive') return mode
  throw new ResendRefusal(422, 'invalid_parameter', 'The `x-batch-validation` header must be `strict` or `permissive`.')
}

function batchBody(results: readonly BatchResult[], validation: 'strict' | 'permissive'): object {
  const errors = results.flatMap((one, index) => ('refused' in one ? [{ index, refusal: one.refused }] : []))
  const [first] = errors
  if (first && validation === 'strict') throw first.refusal
  const data = results.flatMap((one) => ('accepted' in one ? [{ id: one.accepted.id }] : []))
  if (validation === 'strict') return { data }
  return { data, errors: errors.map(({ index, refusal }) => ({ index, message: messageOf(refusal) })) }
}

const messageOf = (refusal: Refusal) => (JSON.parse(resendFailure(refusal).body) as { message: string }).message

const emailEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['POST'],
    path: '/emails',
    name: 'resend.emails.send',
    summary: 'Send an email',
    permission: 'emails:send',
    body: SendBody,
    sends: true,
    async answer(call, { accept }) {
      const { credential, body } = call
      const renderer = rendererFor(call, ({ id }: { id: string }) => ({ id }))
      const sent = await accept.send(undefined, readResendEmail(body, credential.mode), callerOf(credential), renderer)
      return { data: sent.body, sent }
    },
  },
  {
    methods: ['POST'],
    path: '/emails/batch',
    name: 'resend.emails.batch',
    summary: 'Send up to 100 emails',
    permission: 'emails:send',
    body: BatchBody,
    sends: true,
    async answer(call, { accept }) {
      const { credential } = call
      const validation = validationOf(call)
      const renderer = rendererFor(call, (results: readonly BatchResult[]) => batchBody(results, validation))
      const elements = readResendBatch(call.body, credential.mode)
      const sent = await accept.sendEach(undefined, elements, callerOf(credential), renderer, maxResendBatch)
      return { data: sent.body, sent }
    },
  },
  {
    methods: ['GET'],
    path: '/emails',
    name: 'resend.emails.list',
    summary: 'List emails, newest first',
    permission: 'emails:read',
    async answer({ credential, query }, { db }) {
      const { limit, after, before } = readResendPage(query)
      const found = await listMessages(db, { tenantId: credential.tenantId, after, before, most: limit + 1 })
      const hasMore = found.length > limit
      const page = before === undefined ? found.slice(0, limit) : found.slice(-limit)
      const recipients = await findMessageRecipients(db, page)
      const data = page.map((one) => resendEmailItem(one, recipients.get(one.contentId) ?? [one]))
      return { data: { object: 'list', has_more: hasMore, data } }
    },
  },
  {
    methods: ['GET'],
    path: '/emails/:id',
    name: 'resend.emails.get',
    summary: 'Get an email',
    large: true,
    permission: 'emails:read',
    async answer(call, deps) {
      const { tenantId } = call.credential
      const facts = await messageTurns.run({ tenantId, gone: call.connection.gone }, () => readFacts(call.params.id ?? '', tenantId, deps))
      const content = await deps.contents.use(facts.emails[0], call.connection, (held) => held.decode())
      return { data: resendEmail({ ...facts, content: content?.message.kind === 'parts' ? content.message : undefined }) }
    },
  },
  {
    methods: ['PATCH'],
    path: '/emails/:id',
    name: 'resend.emails.update',
    summary: 'Reschedule a scheduled email',
    permission: 'emails:send',
    async answer(call, { accept, contents }) {
      const withMemory: WithMemory = (email, work) => contents.rewrite(email, call.connection, work)
      const at = readResendSchedule(call.body)
      const { id } = await accept.reschedule(call.params.id ?? '', callerOf(call.credential), at, withMemory)
      return { data: { object: 'email', id } }
    },
  },
  {
    methods: ['POST'],
    path: '/emails/:id/cancel',
    name: 'resend.emails.cancel',
    summary: 'Cancel a scheduled email',
    permission: 'emails:send',
    async answer({ credential, params }, { accept }) {
      const { id } = await accept.cancel(params.id ?? '', callerOf(credential))
      return { data: { object: 'email', id } }
    },
  },
]

async function readFacts(id: string, tenantId: string | null, { db }: VendorDeps) {
  const [first, ...others] = await listEmailsOfMessage(db, id, tenantId)
  if (!first) throw noSuchEmail()
  const emails = [first, ...others] as const
  const ids = emails.map((one) => ({ tenantId: one.tenantId, emailId: one.id }))
  const [marks, complaints] = await Promise.all([findReaderMarks(db, ids), findComplaints(db, ids)])
  const all = [...marks.values()]
  return {
    emails,
    marks: {
      opened: all.some((one) => one.openedAt !== null),
      clicked: all.some((one) => one.clickedAt !== null),
      complained: complaints.size > 0,
    },
  }
}

const domainEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['POST'],
    path: '/domains',
    name: 'resend.domains.create',
    summary: 'Add a sending domain',
    permission: 'domains:manage',
    async answer({ credential, body }, { shownDomains, domains }) {
      const made = await shownDomains.create(credential.tenantId, readResendDomain(body))
      domains.forget()
      return { status: 201, data: resendDomain(made) }
    },
  },
  {
    methods: ['GET'],
    path: '/domains',
    name: 'resend.domains.list',
    summary: 'List sending domains',
    permission: 'domains:manage',
    async answer({ credential }, { shownDomains }) {
      return { data: { object: 'list', has_more: false, data: (await shownDomains.list(credential.tenantId)).map(resendDomainItem) } }
    },
  },
  {
    methods: ['GET'],
    path: '/domains/:id',
    name: 'resend.domains.get',
    summary: 'Get a sending domain',
    permission: 'domains:manage',
    async answer({ credential, params }, { shownDomains }) {
      return { data: { object: 'domain', ...resendDomain(await shownDomains.get(params.id ?? '', credential.tenantId)) } }
    },
  },
  {
    methods: ['POST'],
    path: '/domains/:id/verify',
    name: 'resend.domains.verify',
    summary: 'Check the DNS records of a sending domain',
    permission: 'domains:manage',
    async answer({ credential, params }, { shownDomains, domains }) {
      const { uuid } = await shownDomains.verify(params.id ?? '', credential.tenantId)
      domains.forget()
      return { data: { object: 'domain', id: uuid } }
    },
  },
  {
    methods: ['DELETE'],
    path: '/domains/:id',
    name: 'resend.domains.delete',
    summary: 'Delete a sending domain; its queued emails fail',
    permission: 'domains:manage',
    async answer({ credential, params }, { db, clock, shownDomains, domains }) {
      const domain = await shownDomains.get(params.id ?? '', credential.tenantId)
      await deleteDomain(db, domain, clock.nowMs())
      domains.forget()
      return { data: { object: 'domain', id: domain.uuid, deleted: true } }
    },
  },
]

export const resendApi: VendorApi = {
  name: 'resend',
  page: 'docs/resend-api.md',
  isAddressed: ({ authorization }, path) => authorization !== undefined && bearer.test(authorization) && rootPath.test(path),
  keyOf: ({ authorization }) => keyIn(authorization),
  failure: resendFailure,
  endpoints: [...emailEndpoints, ...domainEndpoints, ...resendSuppressionEndpoints, ...resendWebhookEndpoints],
}
