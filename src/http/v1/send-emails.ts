/** POST /emails, /emails/batch, /emails/raw (contract 7.4 to 7.6): converts a body to a submission, and accepted emails to `data`. */

import Type, { type Static } from 'typebox'
import type { AcceptedBatch, AcceptedSubmission, Caller, RawSubmission, ResponseRenderer, UnmadeElement } from '#accept'
import { Refusal } from '#base'
import type { Credential } from '#credentials'
import { nullable, optional, type ScopedCall, scheduledTime, tenantFields, tenantInBody } from './common-schemas.ts'
import { type Call, sendRoute } from './define-endpoint.ts'
import { type MessageDeps, messageFor } from './message-of-body.ts'
import { coveredPath, fingerprint } from './request-fingerprint.ts'
import { ErrorObject, errorOf, success } from './response-envelope.ts'
import { hasTemplate, refusalWithoutTemplate, templateFields } from './template-sends.ts'
import { compileSchema, refusalOf } from './validate.ts'

const largestText = 5_242_880
const AddressText = Type.String({ maxLength: 254, description: 'Address without display name' })
export const FromField = Type.String({ minLength: 1, maxLength: 1000, description: '`addr`, `Name <addr>` or `"Name" <addr>`' })

const Attachment = Type.Object({
  content: Type.String({ contentEncoding: 'base64', description: 'Standard base64, padding optional; at most 10 MB decoded' }),
  contentType: Type.String({ minLength: 1, maxLength: 255 }),
  filename: Type.String({ minLength: 1, maxLength: 255 }),
  contentId: optional(Type.String({ minLength: 1, maxLength: 250, description: 'Content-ID of the attachment; makes it inline' })),
})

const Metadata = Type.Unsafe<Record<string, string>>({
  type: 'object',
  maxProperties: 10,
  propertyNames: { type: 'string', pattern: '^[a-zA-Z][a-zA-Z0-9_]*$', maxLength: 40 },
  additionalProperties: { type: 'string', minLength: 1, maxLength: 500 },
  description: 'At most 4096 bytes as JSON; included in every webhook about the email, never in the message',
})

const Headers = Type.Unsafe<Record<string, string>>({
  type: 'object',
  maxProperties: 50,
  propertyNames: { type: 'string', minLength: 1, maxLength: 76 },
  additionalProperties: { type: 'string', maxLength: 998 },
})

const scheduledAt = Type.Optional(
  nullable(scheduledTime('When to send it: ISO 8601 with a zone, or Unix seconds; at most 30 days ahead. Absent or null: now')),
)

/** Fields of a single send and of a batch element. */
export const messageFields = {
  to: Type.Array(AddressText, { minItems: 1, maxItems: 50 }),
  subject: Type.String({ minLength: 1, maxLength: 998 }),
  cc: optional(Type.Array(AddressText, { maxItems: 50 })),
  bcc: optional(Type.Array(AddressText, { maxItems: 50 })),
  replyTo: optional(AddressText),
  replyRouteId: optional(
    Type.String({
      maxLength: 64,
      description: 'Route with replies: true that gets the replies, in place of replyTo; requires exactly one recipient',
    }),
  ),
  html: optional(Type.String({ maxLength: largestText })),
  text: optional(Type.String({ maxLength: largestText, description: 'Generated from html if absent' })),
  tag: optional(Type.String({ maxLength: 1000 })),
  headers: optional(Headers),
  attachments: optional(Type.Array(Attachment, { maxItems: 100 })),
  metadata: optional(Metadata),
  unsubscribe: optional(
    Type.Boolean({ description: 'true: adds one-click List-Unsubscribe headers (RFC 8058); requires exactly one recipient' }),
  ),
  scheduledAt,
}

const SendEmail = Type.Object({ from: FromField, ...messageFields, ...tenantFields })

/** A message whose subject and texts a template makes. */
const { subject, html, text, ...otherFields } = messageFields
const templateMessageFields = { ...otherFields, ...templateFields }
const SendTemplate = Type.Object({ from: FromField, ...templateMessageFields, ...tenantFields })

/** In the document, the fields of both kinds. */
const documentedFields = {
  ...messageFields,
  subject: Type.Optional(Type.String({ ...subject, description: 'Required without templateId' })),
  html,
  text,
  ...templateFields,
  templateId: optional(templateFields.templateId),
}

const MessageIds = Type.Unsafe<Record<string, { id: string }>>({
  type: 'object',
  additionalProperties: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
  description: 'Email of each recipient, cc and bcc included',
})

export const SentEmail = Type.Object({
  id: Type.String({ description: 'Id of the email of the first recipient' }),
  tenantId: Type.String(),
  messageId: Type.String(),
  to: Type.Array(Type.String()),
  status: Type.Unsafe<'pending'>({ type: 'string', enum: ['pending', 'sent'] }),
  sandbox: Type.Optional(Type.Boolean()),
  scheduledAt: Type.Optional(Type.String({ format: 'date-time', description: 'When it leaves, if it is scheduled' })),
  messages: MessageIds,
})

export const sendRefusals = [
  'invalid_email_format',
  'domain_not_verified',
  'payload_too_large',
  'invalid_idempotency_key',
  'idempotency_key_reused',
  'idempotency_in_progress',
  'tenant_mismatch',
  'tenant_suspended',
  'tenant_archived',
  'not_found',
] as const

const sends = { permission: 'emails:send', scope: 'organisation or tenant', families: 'organisation' } as const

export const sendEmail = sendRoute({
  method: 'POST',
  path: '/emails',
  name: 'emails.send',
  summary: 'Send one email',
  ...sends,
  body: SendEmail,
  bodyWith: { field: 'templateId', schema: SendTemplate },
  documentedBody: Type.Object({ from: FromField, ...documentedFields, ...tenantFields }),
  data: SentEmail,
  refuses: [...sendRefusals, 'sandbox_recipient_not_allowed', 'sandbox_limit_exceeded'],
  handle: (call, deps) => {
    const { body } = call
    const refused = hasTemplate(body) ? undefined : refusalWithoutTemplate(body)
    if (refused) throw refused
    const { from } = body
    const message = messageFor(body, deps)
    const given =
      typeof message === 'function' ? async (tenant: { id: string }) => ({ from, ...(await message(tenant)) }) : { from, ...message }
    return deps.accept.send(tenantOf(call), given, callerOf(call.credential), responseFor(call, '/v1/emails', sentToWire))
  },
})

const BatchEmail = Type.Object(messageFields)
const BatchTemplate = Type.Object(templateMessageFields)

/** Elements are validated one by one, because an invalid one fails only itself. */
const SendBatch = Type.Object({
  from: FromField,
  emails: Type.Unsafe<Record<string, unknown>[]>({ type: 'array', minItems: 1, maxItems: 100, items: { type: 'object' } }),
  ...tenantFields,
})

const BatchSent = Type.Object({
  total: Type.Integer(),
  accepted: Type.Integer(),
  failed: Type.Integer(),
  messages: MessageIds,
  tenantId: Type.String(),
  sandbox: Type.Optional(Type.Boolean()),
  results: Type.Array(
    Type.Object({
      index: Type.Integer(),
      status: Type.Unsafe<'accepted' | 'failed'>({ type: 'string', enum: ['accepted', 'failed'] }),
      id: Type.Optional(Type.String()),
      scheduledAt: Type.Optional(Type.String({ format: 'date-time' })),
      messages: Type.Optional(MessageIds),
      error: Type.Optional(ErrorObject()),
    }),
    { description: 'One result per element, in order' },
  ),
})

const batchEmailProblems = compileSchema(BatchEmail)
const batchTemplateProblems = compileSchema(BatchTemplate)

export const sendBatch = sendRoute({
  method: 'POST',
  path: '/emails/batch',
  name: 'emails.sendBatch',
  summary: 'Send up to 100 emails',
  ...sends,
  body: SendBatch,
  documentedBody: Type.Object({
    ...SendBatch.properties,
    emails: Type.Array(Type.Object(documentedFields), { minItems: 1, maxItems: 100 }),
  }),
  data: BatchSent,
  refuses: [...sendRefusals, 'sandbox_recipient_not_allowed', 'sandbox_limit_exceeded'],
  handle: (call, deps) =>
    deps.accept.sendBatch(
      tenantOf(call),
      call.body.from,
      call.body.emails.map((element, index) => readElement(element, index, deps)),
      callerOf(call.credential),
      responseFor(call, '/v1/emails/batch', batchToWire),
    ),
})

const SendRaw = Type.Object({
  from: FromField,
  to: messageFields.to,
  rawMessage: Type.String({ contentEncoding: 'base64', description: 'An RFC 5322 message, at most 14 MB decoded' }),
  bounce: optional(Type.Boolean({ description: 'true: sent with an empty return path' })),
  scheduledAt,
  ...tenantFields,
})

export const sendRaw = sendRoute({
  method: 'POST',
  path: '/emails/raw',
  name: 'emails.sendRaw',
  summary: 'Send a raw message',
  ...sends,
  body: SendRaw,
  data: SentEmail,
  refuses: [...sendRefusals, 'invalid_raw_message'],
  handle: (call, { accept }) =>
    accept.sendRaw(tenantOf(call), rawOf(call.body), callerOf(call.credential), responseFor(call, '/v1/emails/raw', sentToWire)),
})

/** Only known fields are passed on; others are ignored. */
const rawOf = ({ from, to, rawMessage, bounce, scheduledAt }: Static<typeof SendRaw>): RawSubmission => ({
  from,
  to,
  rawMessage,
  bounce,
  scheduledAt,
})

export const callerOf = ({ id, tenantId, mode, bounds }: Credential): Caller => ({
  credentialId: id,
  tenantId,
  mode,
  allowedFrom: bounds?.from,
})

/** The body's tenant takes precedence over the query's. */
const tenantOf = ({ body, credential, tenantId }: ScopedCall) => tenantInBody(body, credential) ?? tenantId

const idempotencyKey = /^[\w\-.~]{1,255}$/

export function responseFor<Result>(
  call: Call<string, unknown, unknown>,
  path: string,
  toWire: (result: Result) => unknown,
): ResponseRenderer<Result> {
  const render = (result: Result) => Buffer.from(success(toWire(result), call.requestId))
  const key = call.idempotencyKey
  if (key === undefined) return { render }
  if (!idempotencyKey.test(key)) {
    const message = 'Idempotency-Key must have 1 to 255 of the characters A-Z a-z 0-9 _ - . ~'
    throw new Refusal('invalid_idempotency_key', { field: 'Idempotency-Key', message })
  }
  const covered = coveredPath(path, call)
  const known = call.fingerprint?.path === covered ? call.fingerprint.sha256 : undefined
  return { render, idempotency: { key, fingerprint: known ?? fingerprint('POST', covered, call.body) } }
}

function readElement(element: Record<string, unknown>, index: number, deps: MessageDeps): UnmadeElement {
  const place = `emails[${index}]`
  const isTemplate = hasTemplate(element)
  const problems = (isTemplate ? batchTemplateProblems : batchEmailProblems)(element, place)
  const lists = [element.to, element.cc, element.bcc].map((list) => (Array.isArray(list) ? list.length : 0))
  const recipients = lists.reduce((sum, count) => sum + count, 0)
  if (problems.length > 0) return { refused: refusalOf(problems), recipients }
  const refused = isTemplate ? undefined : refusalWithoutTemplate(element, `${place}.`)
  if (refused) return { refused, recipients }
  const body = element as unknown as Static<typeof BatchEmail>
  // A refusal of a template is one of this element, when its message is made.
  if (isTemplate) return { make: async (tenant) => made(messageFor(body, deps), tenant), recipients }
  const message = messageFor(body, deps)
  return typeof message === 'function' ? { make: message, recipients } : { submission: message }
}

const made = (message: ReturnType<typeof messageFor>, tenant: { id: string }) => (typeof message === 'function' ? message(tenant) : message)

const messagesOf = (emails: AcceptedSubmission['emails']) => Object.fromEntries(emails.map(({ id, recipient }) => [recipient, { id }]))

export function sentToWire({ id, tenantId, messageId, to, sandbox, scheduledAt, emails }: AcceptedSubmission): Static<typeof SentEmail> {
  return {
    id,
    tenantId,
    messageId,
    to: [...to],
    status: 'pending',
    ...(sandbox ? { sandbox } : {}),
    ...scheduleToWire(scheduledAt),
    messages: messagesOf(emails),
  }
}

const scheduleToWire = (at: Date | null) => (at === null ? {} : { scheduledAt: at.toISOString() })

function batchToWire({ tenantId, sandbox, results }: AcceptedBatch): Static<typeof BatchSent> {
  const accepted = results.flatMap((one) => ('accepted' in one ? one.accepted.emails : []))
  const count = results.filter((one) => 'accepted' in one).length
  return {
    total: results.length,
    accepted: count,
    failed: results.length - count,
    messages: messagesOf(accepted),
    tenantId,
    ...(sandbox ? { sandbox } : {}),
    results: results.map((one, index) =>
      'accepted' in one
        ? {
            index,
            status: 'accepted',
            id: one.accepted.id,
            ...scheduleToWire(one.accepted.scheduledAt),
            messages: messagesOf(one.accepted.emails),
          }
        : { index, status: 'failed', error: errorOf(one.refused) },
    ),
  }
}
