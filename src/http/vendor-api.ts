/**
 * Serves the APIs of other vendors. Each is under `/compat/<name>`, and at the root for requests that its credential identifies. Admission,
 * limits and the request log are those of /v1; answers and errors have the vendor's form. The description of an API and its service are
 * one file, because each member is used in one place.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Type, { type TSchema } from 'typebox'
import type { AcceptedSubmission, ResponseRenderer, SubmissionResponse } from '#accept'
import { type Clock, type Log, networkOf, Refusal, sanitiseText, wrongField } from '#base'
import type { Credential, Permission } from '#credentials'
import { recordChange } from './audit.ts'
import { type AuthorizeDeps, authorize } from './authorize.ts'
import { type FormFields, smallOctets } from './read-body.ts'
import type { Readiness } from './readiness.ts'
import { admitSigned, type SignedCall } from './signed-call.ts'
import { refusalHeaders, toRefusal } from './to-refusal.ts'
import { type CallerConnection, connectionOf } from './v1/caller-connection.ts'
import type { ApiDeps, Endpoint, RouteResponse } from './v1/define-endpoint.ts'
import { jsonInSteps } from './v1/json-in-steps.ts'
import { fingerprint } from './v1/request-fingerprint.ts'
import { within } from './v1/response-deadline.ts'
import { jsonType } from './v1/response-envelope.ts'

export interface VendorDeps extends ApiDeps, Omit<AuthorizeDeps, 'config'> {
  config: ApiDeps['config'] & AuthorizeDeps['config']
  log: Log
  readiness: Readiness
  recordRequest(request: FastifyRequest, reply: FastifyReply, payload: unknown): void
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One admitted request. */
export interface VendorCall {
  requestId: string
  credential: Credential
  /** The URL of the API as its caller wrote it: that of the installation, with `/compat/<name>` if the caller's path has it. */
  baseUrl: string
  params: Readonly<Record<string, string>>
  query: Readonly<Record<string, unknown>>
  body: unknown
  headers: IncomingHttpHeaders
  /** SHA-256 over path and body, for idempotency keys. */
  fingerprint(): Buffer
  connection: CallerConnection
  /** Writes the audit entry now, for a change that may be refused after a part of it. */
  recordChange: () => Promise<void>
}

export interface VendorAnswer {
  /** HTTP status; default 200. */
  status?: number
  /** An object, or JSON as stored with an idempotency key; undefined: an empty body. */
  data: unknown
  headers?: Readonly<Record<string, string>>
  /** The media type of `data`, which is then a text as it is sent; absent: JSON. */
  type?: string
  /** The submission that the request made. */
  sent?: SubmissionResponse
}

export interface VendorEndpoint {
  methods: readonly Method[]
  /** Below the vendor's base URL, with `:name` for a parameter. */
  path: string
  /** For the request log, such as `resend.emails.send`. */
  name: string
  summary: string
  permission: Permission | 'any key'
  /** Limits the number of keys and values of a body. */
  body?: TSchema
  /** Of bodies that are forms with a field for each member. */
  formFields?: FormFields
  /** A POST that only reads: it is not in the audit log. */
  reads?: true
  /** Answers may have megabytes: they are encoded in steps. */
  large?: true
  /** Sends emails: bodies may be large. */
  sends?: boolean
  answer(call: VendorCall, deps: VendorDeps): Promise<VendorAnswer>
  /** The body is a form: returns its parameters. Takes turns, because a form may have megabytes. */
  readForm?: (form: Buffer) => Promise<object>
  /** Returns the answer to a request with the vendor's public test token; it has no effect. Absent: the token is refused. */
  rehearse?(body: unknown, clock: Clock): Promise<object>
}

export interface VendorFailure {
  status: number
  body: string
  /** The media type; absent: JSON. */
  type?: string
  headers?: Readonly<Record<string, string>>
}

/** The facts of a refused request. */
export interface FailureFacts {
  headers: IncomingHttpHeaders
  /** Below the vendor's base URL, without the query. */
  path: string
  requestId: string
  seconds: number
  isUnknownPath: boolean
}

/** A request names its caller with a key, or with a signature by one. */
type Identification =
  | {
      /** The key; throws the refusal of a missing one. */
      keyOf(headers: IncomingHttpHeaders): string
    }
  | { authenticate(request: FastifyRequest, deps: VendorDeps): Promise<SignedCall> }

export type VendorApi = Identification & VendorDescription

interface VendorDescription {
  /** As in `/compat/<name>`, in lower case. */
  name: string
  /** The page with the table of endpoints. */
  page: string
  /** Whether a request at the root belongs to this vendor. `path`: without the query, which `url` has. */
  isAddressed(headers: IncomingHttpHeaders, path: string, url: string): boolean
  /** Whether a request has the vendor's test token, which every caller may use. */
  isRehearsal?(headers: IncomingHttpHeaders): boolean
  /** Encloses the data of a success; absent: the data is the answer. `seconds`: the time since the request began. */
  success?(data: unknown, seconds: number): object
  failure(refusal: Refusal, facts: FailureFacts): VendorFailure
  /** The header with the request's id in every answer, beside Postrider's own. */
  requestIdHeader?: string
  /** Bodies may be forms, with the JSON in their field `params`, or with a field for each member. */
  takesForms?: 'params' | 'fields'
  endpoints: readonly VendorEndpoint[]
}

const admitWithinMs = 3000
const answerWithinMs = 32_000
const sendBodyLimit = 64 * 1_048_576
const maxShownPath = 200
const maxShownName = 60

const prefixOf = ({ name }: VendorApi) => `/compat/${name}`

/** Moves a root path that belongs to a vendor below its prefix; returns other URLs unchanged. */
export function vendorUrl(apis: readonly VendorApi[], url: string, headers: IncomingHttpHeaders): string {
  const path = url.split('?', 1)[0] ?? ''
  if (path.startsWith('/v1/') || path.startsWith('/compat/')) return url
  const api = apis.find((one) => one.isAddressed(headers, path, url))
  return api ? prefixOf(api) + url : url
}

/** The request's URL as its caller wrote it. */
const shownPath = (api: VendorApi, { url }: FastifyRequest) => url.slice(prefixOf(api).length).split('?', 1)[0]?.slice(0, maxShownPath)

export async function serveVendor(root: FastifyInstance, api: VendorApi, deps: VendorDeps): Promise<void> {
  await root.register(
    async (app) => {
      const unserved = asEndpoint(api, { methods: ['GET'], path: '/', name: `${api.name}.unknown`, summary: '', permission: 'emails:read' })
      app.addHook('onRequest', async (request, reply) => {
        const known = request.is404 ? undefined : request.routeOptions.config.endpoint
        if (api.requestIdHeader !== undefined) reply.header(api.requestIdHeader, request.id)
        if (api.isRehearsal?.(request.headers)) return admitRehearsal(request, api, deps)
        const endpoint = known ?? { ...unserved, permission: 'any key' as const }
        const admit = (by: string | Credential) => within(authorize(request, reply, endpoint, deps, by), admitWithinMs, deps.clock)
        await ('authenticate' in api
          ? admitSigned(request, await api.authenticate(request, deps), admit)
          : admit(api.keyOf(request.headers)))
      })
      // Requests without a body, which no reader of bodies checks.
      app.addHook('preValidation', async (request) => request.checkBody?.(Buffer.alloc(0)))
      app.addHook('onSend', (request, reply, payload, done) => {
        deps.recordRequest(request, reply, payload)
        done()
      })
      app.setErrorHandler(async (error, request, reply) => answerFailure(error, { request, reply, api, deps }))
      app.setNotFoundHandler(async (request) => {
        const path = `${request.method} ${shownPath(api, request)}`
        throw new Refusal('not_found', { message: `${path} is not served: ${api.page} lists the endpoints` })
      })
      for (const endpoint of api.endpoints) register(app, api, endpoint, deps)
    },
    { prefix: prefixOf(api) },
  )
}

/** Bodies without a key are small, so that no memory is reserved for them, and each network may send as many as a key. */
function admitRehearsal(request: FastifyRequest, api: VendorApi, { rateLimiter, limitSettings }: VendorDeps): void {
  const rate = rateLimiter(`address:${networkOf(request.ip)}`, limitSettings.usualRate())
  if (!rate.allowed)
    throw new Refusal('rate_limit_exceeded', {
      message: `more than ${rate.limit} requests per second`,
      retryAfterSeconds: rate.retryAfterSeconds,
    })
  const { endpoint } = request.routeOptions.config
  if (!api.endpoints.some((one) => one.name === endpoint?.name && 'rehearse' in one)) throw new Refusal('invalid_api_key')
  const announced = Number(request.headers['content-length'] ?? Number.NaN)
  if (!(announced <= smallOctets)) throw new Refusal('payload_too_large', { message: 'the test token takes bodies up to 256 KiB' })
}

const secondsSince = ({ arrivedMs }: FastifyRequest, clock: Clock) => Math.max(0, clock.monotonicMs() - arrivedMs) / 1000

interface Failed {
  request: FastifyRequest
  reply: FastifyReply
  api: VendorApi
  deps: VendorDeps
}

async function answerFailure(error: unknown, { request, reply, api, deps }: Failed): Promise<FastifyReply> {
  const refusal = toRefusal(error)
  request.refusal = refusal
  deps.readiness.recordError(error)
  if (refusal.status === 500 && refusal.shouldRetry) deps.readiness.recordOutage(error)
  else if (refusal.status === 500) deps.log.error({ requestId: request.id, err: error }, 'request failed')
  const { 'www-authenticate': _, ...headers } = refusalHeaders(refusal)
  if (request.server.server.listening) reply.removeHeader('connection')
  const { status, body, ...own } = api.failure(refusal, {
    headers: request.headers,
    path: shownPath(api, request) ?? '',
    requestId: request.id,
    seconds: secondsSince(request, deps.clock),
    isUnknownPath: request.is404,
  })
  return reply
    .code(status)
    .headers({ ...headers, ...own.headers })
    .type(own.type ?? jsonType)
    .send(body)
}

function register(app: FastifyInstance, api: VendorApi, endpoint: VendorEndpoint, deps: VendorDeps): void {
  const declared = asEndpoint(api, endpoint)
  app.route({
    method: [...endpoint.methods],
    url: endpoint.path,
    bodyLimit: endpoint.sends ? sendBodyLimit : 1_048_576,
    config: {
      endpoint: declared,
      ...(api.takesForms ? { takesForms: api.takesForms } : {}),
      ...(endpoint.formFields ? { formFields: endpoint.formFields } : {}),
      ...(endpoint.readForm ? { readForm: endpoint.readForm } : {}),
    },
    handler: async (request, reply) => {
      const { admission } = request
      const enclosed = (data: unknown) => (api.success ? api.success(data, secondsSince(request, deps.clock)) : data)
      if (!admission && endpoint.rehearse && api.isRehearsal?.(request.headers)) {
        const data = await endpoint.rehearse(request.body, deps.clock)
        return reply.type(jsonType).send(JSON.stringify(enclosed(data)))
      }
      if (!admission) throw new Error('a request bypassed authorisation')
      refuseNul(request.query as Record<string, unknown>)
      const path = `/v1${declared.path}`
      const call: VendorCall = {
        requestId: request.id,
        credential: admission.credential,
        baseUrl: deps.config.publicUrl + (request.originalUrl.startsWith(prefixOf(api)) ? prefixOf(api) : ''),
        params: request.params as Record<string, string>,
        query: request.query as Record<string, unknown>,
        body: request.body,
        headers: request.headers,
        fingerprint: () =>
          request.fingerprint?.path === path ? request.fingerprint.sha256 : fingerprint(request.method, path, request.body ?? {}),
        connection: connectionOf(reply.raw),
        recordChange: () => record(),
      }
      // Mail is in the request log and the list of emails.
      let isRecorded = !endpoint.permission.endsWith(':manage') || request.method === 'GET' || endpoint.reads === true
      const record = async (data?: unknown) => {
        if (isRecorded) return
        isRecorded = true
        await recordChange(request, declared, JSON.stringify({ data }), deps)
      }
      const respond = async () => {
        const answered = await endpoint.answer(call, deps)
        await record(answered.data)
        return answered
      }
      const { status = 200, data, type, headers = {}, sent } = await within(respond(), answerWithinMs, deps.clock)
      request.acceptedEmailIds = sent?.emailIds ?? null
      if (sent?.replayed) reply.header('idempotent-replayed', 'true')
      reply.code(status).headers(headers)
      if (data === undefined) return reply.send()
      if (type !== undefined) return reply.type(type).send(data)
      return reply
        .type(jsonType)
        .send(Buffer.isBuffer(data) ? data : endpoint.large ? await jsonInSteps(enclosed(data)) : JSON.stringify(enclosed(data)))
    },
  })
}

/** PostgreSQL stores no NUL, so no search has one, as under /v1. */
function refuseNul(query: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(query))
    if ([name, value].flat().some((one) => typeof one === 'string' && one.includes('\0')))
      throw wrongField(sanitiseText(name, maxShownName), 'contains a NUL character')
}

/** In the form of the endpoints of /v1, so that admission, body limits and the request log treat it alike. */
function asEndpoint(api: VendorApi, { path, name, summary, permission, body, sends }: Omit<VendorEndpoint, 'answer'>): Endpoint {
  return {
    method: 'POST',
    path: prefixOf(api) + path,
    name,
    summary,
    permission,
    scope: 'organisation or tenant',
    families: 'organisation',
    ...(body ? { body } : {}),
    ...(sends ? { bodyLimit: sendBodyLimit } : {}),
    refuses: [],
    reply: Type.Object({}),
    streams: false,
    sends: sends === true,
    takesTenant: false,
    respond: async (): Promise<RouteResponse> => {
      throw new Error('an endpoint of another vendor is not served under /v1')
    },
  }
}

/** Keeps the result of acceptance, for answers that need facts that only the commit gives. */
export function keepingRenderer<Result = AcceptedSubmission>(): { renderer: ResponseRenderer<Result>; result: () => Result } {
  let accepted: Result | undefined
  return {
    renderer: {
      render(result) {
        accepted = result
        return Buffer.alloc(0)
      },
    },
    result() {
      if (accepted === undefined) throw new Error('a submission was answered without a result')
      return accepted
    },
  }
}
