/**
 * Serves the API of Postal: at its own paths to requests with X-Server-API-Key, and under /compat/postal. Every answer has HTTP status 200
 * and Postal's envelope. Admission, limits and the request log are those of /v1.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Type, { type TSchema } from 'typebox'
import type { AcceptedSubmission, ResponseRenderer, SubmissionResponse } from '#accept'
import type { Clock, Log } from '#base'
import { Refusal } from '#base'
import type { Credential } from '#credentials'
import { inSnapshot } from '#db'
import {
  decodeContent,
  type Email,
  findContentBody,
  findNumberedEmail,
  findNumbers,
  lastAttempts,
  listAttempts,
  openReturnPaths,
} from '#emails'
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
import { listHits, openTokens } from '#tracking'
import { type AuthorizeDeps, authorize } from './authorize.ts'
import type { Readiness } from './readiness.ts'
import { refusalHeaders, toRefusal } from './to-refusal.ts'
import type { ApiDeps, Endpoint, RouteResponse } from './v1/define-endpoint.ts'
import { type Expansion as ContentPart, contentToWire } from './v1/email-details.ts'
import { within } from './v1/response-deadline.ts'
import { jsonType } from './v1/response-envelope.ts'
import { callerOf } from './v1/send-emails.ts'

export interface PostalDeps extends ApiDeps, Omit<AuthorizeDeps, 'config'> {
  config: ApiDeps['config'] & AuthorizeDeps['config']
  log: Log
  readiness: Readiness
  recordRequest(request: FastifyRequest, reply: FastifyReply, payload: unknown): void
}

const keyHeader = 'x-server-api-key'
const ownPrefix = '/compat/postal'
const admitWithinMs = 3000
const answerWithinMs = 32_000
const sendBodyLimit = 64 * 1_048_576
/** Longer than any key. */
const maxKeyLength = 200
const methods = ['GET', 'POST', 'PUT', 'PATCH'] as const

type Parameters = Readonly<Record<string, unknown>>

interface PostalEndpoint {
  path: string
  name: string
  summary: string
  permission: 'emails:send' | 'emails:read'
  /** Limits the number of keys and values of a body. */
  body: TSchema
  bodyLimit?: number
  /** Returns `data`, and the emails it made. */
  answer(parameters: Parameters, credential: Credential, deps: PostalDeps): Promise<{ data: unknown; sent?: SubmissionResponse }>
}

const Addresses = Type.Array(Type.String(), { maxItems: 1000 })
const Attachment = Type.Object({ name: Type.String(), content_type: Type.String(), data: Type.String() })
const SendBody = Type.Object({
  to: Addresses,
  cc: Addresses,
  bcc: Addresses,
  headers: Type.Unsafe<object>({ type: 'object', maxProperties: 200, additionalProperties: { type: 'string' } }),
  attachments: Type.Array(Attachment, { maxItems: 200 }),
})

/** Keeps the result of acceptance, because Postal's answer needs the emails' numbers, which the commit gives them. */
function rendererFor(): { renderer: ResponseRenderer<AcceptedSubmission>; result: () => AcceptedSubmission } {
  let accepted: AcceptedSubmission | undefined
  return {
    renderer: {
      render(result) {
        accepted = result
        return Buffer.alloc(0)
      },
    },
    result() {
      if (!accepted) throw new Error('a submission was answered without a result')
      return accepted
    },
  }
}

/** The emails are committed: a failure to read their numbers must not make the caller send them again. */
async function answerSent(sent: SubmissionResponse, accepted: AcceptedSubmission, { db, log }: PostalDeps) {
  const ids = accepted.emails.map(({ id }) => id)
  const numbers = await findNumbers(db, accepted.tenantId, ids).catch((error: unknown) => {
    log.warn({ err: error }, 'failed to read the numbers of sent emails')
    return new Map<string, number>()
  })
  return { data: sentToPostal(accepted, numbers), sent }
}

const endpoints: readonly PostalEndpoint[] = [
  {
    path: '/send/message',
    name: 'postal.send.message',
    summary: 'Send a message',
    permission: 'emails:send',
    body: SendBody,
    bodyLimit: sendBodyLimit,
    async answer(parameters, credential, deps) {
      const { renderer, result } = rendererFor()
      const sent = await deps.accept.send(undefined, readSendMessage(parameters), callerOf(credential), renderer)
      return answerSent(sent, result(), deps)
    },
  },
  {
    path: '/send/raw',
    name: 'postal.send.raw',
    summary: 'Send a raw message',
    permission: 'emails:send',
    body: Type.Object({ rcpt_to: Addresses }),
    bodyLimit: sendBodyLimit,
    async answer(parameters, credential, deps) {
      const { renderer, result } = rendererFor()
      const sent = await deps.accept.sendRaw(undefined, readSendRaw(parameters), callerOf(credential), renderer)
      return answerSent(sent, result(), deps)
    },
  },
  {
    path: '/messages/message',
    name: 'postal.messages.message',
    summary: 'Get a message',
    permission: 'emails:read',
    body: Type.Object({ _expansions: Type.Array(Type.String(), { maxItems: 20 }) }),
    async answer(parameters, credential, deps) {
      const { wanted, expansions } = readMessageCall(parameters)
      const email = await findNumberedEmail(deps.db, wanted, credential.tenantId)
      if (!email) throw messageNotFound(parameters.id)
      return { data: messageToPostal(await factsOf(email, expansions, deps), expansions) }
    },
  },
  {
    path: '/messages/deliveries',
    name: 'postal.messages.deliveries',
    summary: 'List the deliveries of a message',
    permission: 'emails:read',
    body: Type.Object({}),
    async answer(parameters, credential, { db }) {
      const { wanted } = readMessageCall(parameters)
      const attempts = await inSnapshot(db, async (tx) => {
        const email = await findNumberedEmail(tx, wanted, credential.tenantId)
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
  { db, domains, secrets }: PostalDeps,
): Promise<MessageFacts> {
  const wanted = new Set([...expansions].flatMap((one) => partsOf[one] ?? []))
  const [attempts, body, activity] = await Promise.all([
    expansions.has('status') ? lastAttempts(db, [{ tenantId: email.tenantId, emailId: email.id }]) : undefined,
    wanted.size > 0 ? findContentBody(db, email) : undefined,
    expansions.has('activity_entries') ? listHits(db, email) : undefined,
  ])
  const shown = body
    ? await contentToWire(decodeContent(body), email, wanted, {
        domains,
        tokens: openTokens(secrets),
        returnPaths: openReturnPaths(secrets),
      })
    : {}
  return {
    email,
    lastAttempt: attempts?.get(email.id),
    raw: shown.rawMessage === undefined ? undefined : Buffer.from(shown.rawMessage, 'base64'),
    html: shown.htmlBody,
    text: shown.plainBody,
    attachments: (shown.attachments ?? []).map((one) => ({ ...one, content: Buffer.from(one.data, 'base64') })),
    activity,
  }
}

/** In the form of the endpoints of /v1, so that admission, body limits and the request log treat it alike. */
function asEndpoint({ path, name, summary, permission, body, bodyLimit }: Omit<PostalEndpoint, 'answer'>): Endpoint {
  return {
    method: 'POST',
    path,
    name,
    summary,
    permission,
    scope: 'organisation or tenant',
    families: 'organisation',
    body,
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
    refuses: [],
    reply: Type.Object({}),
    streams: false,
    sends: bodyLimit !== undefined,
    takesTenant: false,
    respond: async (): Promise<RouteResponse> => {
      throw new Error('an endpoint of Postal is not served under /v1')
    },
  }
}

/** The key as given; undefined without one. */
function keyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers[keyHeader]
  const text = Array.isArray(key) ? key[0] : key
  return text?.trim() === '' ? undefined : text?.trim()
}

const isUnderPrefix = ({ url }: FastifyRequest) => url.startsWith(`${ownPrefix}/`) || url.startsWith(`${ownPrefix}?`) || url === ownPrefix
/** At the root, the header distinguishes a caller of Postal's API from other requests. */
const isOfPostal = (request: FastifyRequest) => request.headers[keyHeader] !== undefined || isUnderPrefix(request)

export function servePostal(app: FastifyInstance, deps: PostalDeps): void {
  app.addHook('onRequest', async (request, reply) => {
    if (!isOfPostal(request)) return reply.callNotFound()
    await within(admit(request, reply, deps), admitWithinMs, deps.clock)
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    if (isOfPostal(request)) deps.recordRequest(request, reply, payload)
    done()
  })
  app.setErrorHandler(async (error, request, reply) => {
    const refusal = toRefusal(error)
    request.refusal = refusal
    deps.readiness.recordError(error)
    if (refusal.status === 500 && refusal.shouldRetry) deps.readiness.recordOutage(error)
    else if (refusal.status === 500) deps.log.error({ requestId: request.id, err: error }, 'request failed')
    const { 'www-authenticate': _, ...headers } = refusalHeaders(refusal)
    if (request.server.server.listening) reply.removeHeader('connection')
    const body = failureEnvelope(refusal, keyOf(request)?.slice(0, maxKeyLength), secondsSince(request, deps.clock))
    return reply.code(200).headers(headers).type(jsonType).send(body)
  })
  for (const prefix of ['', ownPrefix]) {
    for (const endpoint of endpoints) register(app, `${prefix}/api/v1${endpoint.path}`, endpoint, deps)
    for (const url of prefix === '' ? ['/api/v1/*'] : [prefix, `${prefix}/*`])
      app.route({ method: [...methods, 'DELETE'], url, handler: refuseUnknown })
  }
}

async function admit(request: FastifyRequest, reply: FastifyReply, deps: PostalDeps): Promise<void> {
  const key = keyOf(request)
  if (key === undefined) throw new Refusal('authentication_required')
  await authorize(request, reply, request.routeOptions.config.endpoint, deps, key)
}

const secondsSince = ({ arrivedMs }: FastifyRequest, clock: Clock) => Math.max(0, clock.monotonicMs() - arrivedMs) / 1000

function register(app: FastifyInstance, url: string, endpoint: PostalEndpoint, deps: PostalDeps): void {
  app.route({
    method: [...methods],
    url,
    bodyLimit: endpoint.bodyLimit ?? 1_048_576,
    config: { endpoint: asEndpoint(endpoint), takesForms: true },
    handler: async (request, reply) => {
      const { admission } = request
      if (!admission) throw new Error('a request bypassed authorisation')
      const { data, sent } = await within(endpoint.answer(parametersOf(request), admission.credential, deps), answerWithinMs, deps.clock)
      request.acceptedEmailIds = sent?.emailIds ?? null
      return reply
        .code(200)
        .type(jsonType)
        .send(successEnvelope(data, secondsSince(request, deps.clock)))
    },
  })
}

/** The query's parameters too, as in Postal; the body's take precedence. */
function parametersOf({ query, body }: FastifyRequest): Parameters {
  if (body !== undefined && (typeof body !== 'object' || body === null || Array.isArray(body)))
    throw new Refusal('validation_error', { message: 'the body must be a JSON object' })
  return { ...(query as object), ...(body as object | undefined) }
}

const refuseUnknown = async ({ method, url }: FastifyRequest) => {
  throw new Refusal('not_found', {
    message: `${method} ${url.split('?', 1)[0]?.slice(0, 200)} is not served: docs/postal-api.md lists the endpoints`,
  })
}
