/**
 * The API of Postal: at its own paths for requests with X-Server-API-Key, and under /compat/postal. Every answer has HTTP status 200 and
 * Postal's envelope.
 */
import type { IncomingHttpHeaders } from 'node:http'
import Type from 'typebox'
import type { AcceptedSubmission, SubmissionResponse } from '#accept'
import { Refusal } from '#base'
import { inSnapshot } from '#db'
import type { ContentPart } from '#delivery'
import { type Email, findNumberedEmail, findNumbers, lastAttempts, listAttempts } from '#emails'
import {
  deliveriesToPostal,
  failureEnvelope,
  type MessageCall,
  type MessageFacts,
  messageNotFound,
  messageToPostal,
  type PostalExpansion,
  readMessageCall,
  readSendMessage,
  readSendRaw,
  sentToPostal,
  successEnvelope,
} from '#postal'
import { listHits } from '#tracking'
import type { CallerConnection } from './v1/caller-connection.ts'
import { callerOf } from './v1/send-emails.ts'
import { keepingRenderer, type VendorApi, type VendorCall, type VendorDeps, type VendorEndpoint } from './vendor-api.ts'

const keyHeader = 'x-server-api-key'
/** Longer than any key. */
const maxKeyLength = 200
const methods = ['GET', 'POST', 'PUT', 'PATCH'] as const

type Parameters = Readonly<Record<string, unknown>>

const Addresses = Type.Array(Type.String(), { maxItems: 1000 })
const Attachment = Type.Object({ name: Type.String(), content_type: Type.String(), data: Type.String() })
const SendBody = Type.Object({
  to: Addresses,
  cc: Addresses,
  bcc: Addresses,
  headers: Type.Unsafe<object>({ type: 'object', maxProperties: 200, additionalProperties: { type: 'string' } }),
  attachments: Type.Array(Attachment, { maxItems: 200 }),
})

/** The emails are committed: a failure to read their numbers must not make the caller send them again. */
async function answerSent(sent: SubmissionResponse, accepted: AcceptedSubmission, { db, log }: VendorDeps) {
  const ids = accepted.emails.map(({ id }) => id)
  const numbers = await findNumbers(db, accepted.tenantId, ids).catch((error: unknown) => {
    log.warn({ err: error }, 'failed to read the numbers of sent emails')
    return new Map<string, number>()
  })
  return { data: sentToPostal(accepted, numbers), sent }
}

const endpoints: readonly VendorEndpoint[] = [
  {
    methods,
    path: '/api/v1/send/message',
    name: 'postal.send.message',
    summary: 'Send a message',
    permission: 'emails:send',
    body: SendBody,
    sends: true,
    async answer(call, deps) {
      const { renderer, result } = keepingRenderer()
      const sent = await deps.accept.send(undefined, readSendMessage(parametersOf(call)), callerOf(call.credential), renderer)
      return answerSent(sent, result(), deps)
    },
  },
  {
    methods,
    path: '/api/v1/send/raw',
    name: 'postal.send.raw',
    summary: 'Send a raw message',
    permission: 'emails:send',
    body: Type.Object({ rcpt_to: Addresses }),
    sends: true,
    async answer(call, deps) {
      const { renderer, result } = keepingRenderer()
      const sent = await deps.accept.sendRaw(undefined, readSendRaw(parametersOf(call)), callerOf(call.credential), renderer)
      return answerSent(sent, result(), deps)
    },
  },
  {
    methods,
    path: '/api/v1/messages/message',
    name: 'postal.messages.message',
    summary: 'Get a message',
    permission: 'emails:read',
    large: true,
    body: Type.Object({ _expansions: Type.Array(Type.String(), { maxItems: 20 }) }),
    async answer(call, deps) {
      const parameters = parametersOf(call)
      const { wanted, expansions } = readMessageCall(parameters)
      const email = await findNumberedEmail(deps.db, wanted, call.credential.tenantId)
      if (!email) throw messageNotFound(parameters.id)
      return { data: await messageToPostal(await factsOf(email, expansions, deps, call.connection), expansions) }
    },
  },
  {
    methods,
    path: '/api/v1/messages/deliveries',
    name: 'postal.messages.deliveries',
    summary: 'List the deliveries of a message',
    permission: 'emails:read',
    body: Type.Object({}),
    async answer(call, { db }) {
      const parameters = parametersOf(call)
      const { wanted } = readMessageCall(parameters)
      const attempts = await inSnapshot(db, async (tx) => {
        const email = await findNumberedEmail(tx, wanted, call.credential.tenantId)
        return email && listAttempts(tx, email)
      })
      if (!attempts) throw messageNotFound(parameters.id)
      return { data: deliveriesToPostal(attempts) }
    },
  },
]

/** The parts of stored content that each expansion needs. */
const partsOf: Partial<Record<PostalExpansion, ContentPart>> = {
  details: 'raw',
  plain_body: 'content',
  html_body: 'content',
  attachments: 'attachments',
  headers: 'raw',
  raw_message: 'raw',
}

async function factsOf(
  email: Email & { number: number },
  expansions: MessageCall['expansions'],
  { db, contents }: VendorDeps,
  connection: CallerConnection,
): Promise<MessageFacts> {
  const wanted = new Set([...expansions].flatMap((one) => partsOf[one] ?? []))
  const [attempts, content, activity] = await Promise.all([
    expansions.has('status') ? lastAttempts(db, [{ tenantId: email.tenantId, emailId: email.id }]) : undefined,
    wanted.size > 0 ? contents.use(email, connection, (held) => held.read(wanted)) : undefined,
    expansions.has('activity_entries') ? listHits(db, email) : undefined,
  ])
  return {
    email,
    lastAttempt: attempts?.get(email.id),
    raw: content?.raw,
    html: content?.html,
    text: content?.text,
    attachments: content?.attachments ?? [],
    activity,
  }
}

/** The key as given; undefined without one. */
function keyIn(headers: IncomingHttpHeaders): string | undefined {
  const key = headers[keyHeader]
  const text = Array.isArray(key) ? key[0] : key
  return text?.trim() === '' ? undefined : text?.trim()
}

export const postalApi: VendorApi = {
  name: 'postal',
  page: 'docs/postal-api.md',
  takesForms: 'params',
  isAddressed: (headers, path) => headers[keyHeader] !== undefined && path.startsWith('/api/v1'),
  keyOf(headers) {
    const key = keyIn(headers)
    if (key === undefined) throw new Refusal('authentication_required')
    return key
  },
  success: successEnvelope,
  failure: (refusal, { headers, seconds }) => ({
    status: 200,
    body: failureEnvelope(refusal, keyIn(headers)?.slice(0, maxKeyLength), seconds),
  }),
  endpoints,
}

/** The query's parameters too, as in Postal; the body's take precedence. */
function parametersOf({ query, body }: VendorCall): Parameters {
  if (body !== undefined && (typeof body !== 'object' || body === null || Array.isArray(body)))
    throw new Refusal('validation_error', { message: 'the body must be a JSON object' })
  return { ...query, ...(body as object | undefined) }
}
