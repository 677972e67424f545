/**
 * Builds the HTTP server: bounds every request, registers each endpoint from its declaration, and answers every failure in the contract's
 * envelope with a status of its closed set.
 */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { type Clock, type Config, type Ids, isInNetwork, type Log, metrics, Refusal, type Traces } from '#base'
import type { SendLimitUsage } from '#limits'
import type { RequestLogs } from '#request-logs'
import { recordChange } from './audit.ts'
import { type AuthorizeDeps, authorize, rateHeaders, reauthorize, weighBody } from './authorize.ts'
import { guardConnections, type HttpLimits } from './connection-limits.ts'
import { serveDashboard } from './dashboard.ts'
import type { DashboardDeps } from './dashboard-context.ts'
import { showNotFound } from './dashboard-files.ts'
import { answerBrokenRequest } from './malformed-http.ts'
import { serveMcp } from './mcp.ts'
import { openBodyReader } from './read-body.ts'
import type { Readiness } from './readiness.ts'
import { logEntryOf } from './request-log.ts'
import { refuseBadHost, routable } from './request-target.ts'
import { requestSpan } from './request-trace.ts'
import type { Streams } from './streaming-responses.ts'
import { type StsPolicyDeps, serveStsPolicy } from './sts-policy.ts'
import { refusalHeaders, toRefusal } from './to-refusal.ts'
import { serveTrackingEndpoints, type TrackingEndpointDeps } from './tracking-endpoints.ts'
import { connectionOf } from './v1/caller-connection.ts'
import { type ApiDeps, type Endpoint, usualBodyLimit } from './v1/define-endpoint.ts'
import { fastifyPath, pathsOf, routes } from './v1/endpoints.ts'
import { within } from './v1/response-deadline.ts'
import { failure, jsonType } from './v1/response-envelope.ts'
import { serveVendor, vendorUrl } from './vendor-api.ts'
import { type VendorSettings, vendorApis } from './vendor-apis.ts'

export interface AppDeps
  extends ApiDeps,
    Omit<AuthorizeDeps, 'config'>,
    Omit<TrackingEndpointDeps, 'config'>,
    StsPolicyDeps,
    Omit<DashboardDeps, 'config'> {
  clock: Clock
  ids: Ids
  log: Log
  traces?: Traces | undefined
  requestLogs: RequestLogs
  streams: Streams
  readiness: Readiness
  /** Called after each request that may have changed something: other processes act on it at once. */
  wake: () => void
  config: Pick<
    Config,
    'trustedProxies' | 'publicUrl' | 'oidcIssuer' | 'passwordSignIn' | 'keepContentDays' | 'retryBaseSeconds' | 'retryMaxSeconds'
  > &
    ApiDeps['config'] &
    VendorSettings
  bounds: HttpLimits
}

/** Idle time between requests. Longer than the 60 s of common proxies, so that the proxy closes the connection first. */
const keepAliveMs = 72_000

/** Time limit for authentication and the rate limit, which are usually served from memory. */
const admitWithinMs = 3000
/** Longer than the 30 s for which a request waits for another one with the same idempotency key. */
const answerWithinMs = 32_000
const standingWithinMs = 1000

/** Most ids of created emails in a request's log line; a batch creates up to a thousand. */
const maxLoggedIds = 5

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])
const apiPath = /^\/v1([/?]|$)/

declare module 'fastify' {
  interface FastifyContextConfig {
    endpoint?: Endpoint
  }
  interface FastifyRequest {
    arrivedMs: number
    arrivedAtMs: number
    /** The refusal of the response; null if the request succeeded. */
    refusal: Refusal | null
  }
}

/** Returns the app without the pages outside /v1; it does not listen yet. */
export async function buildApp(deps: AppDeps): Promise<FastifyInstance> {
  const { clock, bounds, config } = deps
  const isTrusted = (address: string) => isInNetwork(config.trustedProxies, address)
  /** Sockets whose last request was answered before its body had fully arrived. */
  const answeredEarly = new WeakSet<object>()
  const app = createServer(deps, isTrusted, answeredEarly)
  guardConnections(app, bounds, isTrusted)
  declareRequestFields(app)
  app.removeAllContentTypeParsers()
  const bodies = openBodyReader({ clock, weigh: (request, octets) => weighBody(request, octets, deps) })
  app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage) => bodies.read(request, payload))

  app.addHook('onRequest', async (request, reply) => {
    request.arrivedMs = clock.monotonicMs()
    request.arrivedAtMs = clock.nowMs()
    request.response = reply.raw
    answeredEarly.delete(request.raw.socket)
    reply.header('x-request-id', request.id)
    refuseBadHost(request)
  })
  serveStsPolicy(app, deps)
  await serveTrackingEndpoints(app, deps)
  app.addHook('onResponse', async (request, reply) => {
    if (!request.raw.complete) answeredEarly.add(request.raw.socket)
    recordResponse(request, reply, deps)
  })
  app.setErrorHandler(async (error, request, reply) => answerError(error, request, reply, deps))
  app.setNotFoundHandler(async (request, reply) => {
    const shown = showNotFound(request, reply)
    if (shown) return shown
    throw new Refusal('not_found', {
      message: `no such page: ${request.method} is not served at this path`,
      suggestion: 'Open the dashboard at / or the guide at /docs/guide. API paths begin with /v1 and are listed at /docs',
    })
  })

  await app.register(async (api) => serveApi(api, deps), { prefix: '/v1' })
  const shared = {
    ...deps,
    recordRequest: (request: FastifyRequest, reply: FastifyReply, payload: unknown) => recordRequest(request, reply, payload, deps),
  }
  for (const api of vendorApis(config)) await serveVendor(app, api, shared)
  serveMcp(app, deps)
  await serveDashboard(app, deps)
  return app
}

function createServer(deps: AppDeps, isTrusted: (address: string) => boolean, answeredEarly: WeakSet<object>): FastifyInstance {
  const { ids, bounds } = deps
  const vendors = vendorApis(deps.config)
  return fastify({
    trustProxy: deps.config.trustedProxies.length > 0 ? isTrusted : false,
    genReqId: () => ids.requestId(),
    requestIdHeader: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    bodyLimit: usualBodyLimit,
    requestTimeout: bounds.requestMs,
    connectionTimeout: bounds.idleMs,
    keepAliveTimeout: keepAliveMs,
    http: { headersTimeout: bounds.headersMs, connectionsCheckingInterval: Math.min(1000, bounds.headersMs / 4), requireHostHeader: false },
    // Not a limit of its own: Node's 16 KiB of headers already bound the path.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 16_384 },
    // The endpoints validate and write their own JSON (docs/decisions/024-validating-requests.md). So Fastify loads no compilers for it.
    schemaController: { compilersFactory: { buildValidator: withoutSchemas, buildSerializer: withoutSchemas } },
    rewriteUrl: ({ url = '/', headers }) => vendorUrl(vendors, routable(url), headers),
    clientErrorHandler: (error, socket) => {
      // A request answered before its body arrived would otherwise get a second answer.
      if (answeredEarly.has(socket)) socket.destroy()
      else
        answerBrokenRequest(error, socket, {
          requestId: ids.requestId(),
          headers: addressHeaders(socket.remoteAddress ?? '', deps, 'only look'),
        })
    },
  })
}

/** In place of Fastify's compilers of JSON schemas, which a start would load in 28 ms. */
const withoutSchemas = () => () => {
  throw new Error('a route of Fastify has a schema')
}

/** Rate-limit headers of a caller that is known only by its address. */
const addressHeaders = (address: string, { rateLimiter, limitSettings }: AppDeps, look?: 'only look') =>
  rateHeaders(rateLimiter(`address:${address}`, limitSettings.usualRate(), look))

function declareRequestFields(app: FastifyInstance): void {
  app.decorateRequest('credential', null)
  app.decorateRequest('admission', null)
  app.decorateRequest('arrivedMs', 0)
  app.decorateRequest('response', null)
  app.decorateRequest('arrivedAtMs', 0)
  app.decorateRequest('rate', null)
  app.decorateRequest('refusal', null)
  app.decorateRequest('octets', null)
  app.decorateRequest('fingerprint', null)
  app.decorateRequest('beingRead', null)
  app.decorateRequest('checkBody', null)
  app.decorateRequest('claimed', null)
  app.decorateRequest('isLogged', false)
  app.decorateRequest('acceptedEmailIds', null)
}

/** Answers a failure in the contract's envelope. */
async function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply, deps: AppDeps): Promise<FastifyReply> {
  const refusal = toRefusal(error)
  request.refusal = refusal
  deps.readiness.recordError(error)
  if (refusal.status === 500 && refusal.shouldRetry) deps.readiness.recordOutage(error)
  else if (refusal.status === 500) deps.log.error({ requestId: request.id, err: error }, 'request failed')
  if (apiPath.test(request.url) && !reply.hasHeader('x-ratelimit-limit')) reply.headers(addressHeaders(request.ip, deps))
  reply.headers(await sendLimitHeadersFor(request, deps))
  // After an unreadable body Fastify would close the connection, and a client still sending the body would lose this answer. The server
  // reads and discards the rest, within the request's time limit.
  if (request.server.server.listening) reply.removeHeader('connection')
  return reply.code(refusal.status).headers(refusalHeaders(refusal)).type(jsonType).send(failure(refusal, request.id))
}

function serveApi(api: FastifyInstance, deps: AppDeps): void {
  api.addHook('onRequest', async (request, reply) =>
    within(authorize(request, reply, request.is404 ? undefined : request.routeOptions.config.endpoint, deps), admitWithinMs, deps.clock),
  )
  api.addHook('onSend', (request, reply, payload, done) => {
    recordRequest(request, reply, payload, deps)
    done()
  })
  api.setNotFoundHandler(async () => {
    throw new Refusal('not_found')
  })
  for (const endpoint of routes) for (const path of pathsOf(endpoint)) register(api, endpoint, path, deps)
}

function register(api: FastifyInstance, endpoint: Endpoint, path: string, deps: AppDeps): void {
  api.route({
    method: endpoint.method,
    url: fastifyPath(path).slice('/v1'.length),
    bodyLimit: endpoint.bodyLimit ?? usualBodyLimit,
    config: { endpoint },
    handler: async (request, reply) => {
      const { admission } = request
      if (!admission) throw new Error('a request bypassed authorisation')
      // A body of unannounced length has been counted since admission.
      if (request.rate && request.rate !== admission.rate) reply.headers(rateHeaders(request.rate))
      const call = {
        ...admission,
        requestId: request.id,
        params: request.params,
        query: request.query,
        body: request.body === undefined ? {} : request.body,
        accept: headerOf(request, 'accept'),
        lastEventId: endpoint.streams ? headerOf(request, 'last-event-id') : undefined,
        idempotencyKey: endpoint.sends ? headerOf(request, 'idempotency-key') : undefined,
        fingerprint: request.fingerprint,
        connection: connectionOf(reply.raw),
      }
      const respond = async () => {
        const done = await endpoint.respond(call, deps)
        await recordChange(request, endpoint, done.body, deps)
        return done
      }
      const answered = await within(respond(), answerWithinMs, deps.clock)
      if (answered.sendLimitUsage) reply.headers(sendLimitHeaders(answered.sendLimitUsage))
      request.acceptedEmailIds = answered.emailIds ?? null
      if (answered.replayed) reply.header('idempotent-replayed', 'true')
      const { body } = answered
      if (typeof body === 'function') {
        const checkAllowed = () => reauthorize(request, endpoint, deps)
        const { id: credentialId, tenantId } = admission.credential
        return deps.streams.send(reply, { credentialId, tenantId, pieces: body, checkAllowed })
      }
      if (typeof body === 'object' && 'pieces' in body) {
        return reply
          .type(body.type)
          .header('content-disposition', `attachment; filename="${body.name}"`)
          .send(Readable.from(body.pieces, { objectMode: false }))
      }
      return reply
        .code(answered.status ?? (endpoint.status === 201 ? 201 : 200))
        .type(jsonType)
        .send(body)
    },
  })
}

const headerOf = ({ headers }: FastifyRequest, name: string) => {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

function sendLimitHeaders({ limit, used, resetSeconds }: SendLimitUsage): Record<string, string> {
  return {
    ...(limit === null ? {} : { 'x-sendlimit-limit': String(limit), 'x-sendlimit-remaining': String(Math.max(0, limit - used)) }),
    'x-sendlimit-used': String(used),
    'x-sendlimit-reset': String(resetSeconds),
  }
}

/** Send-limit headers for a refused send of an authenticated caller; empty if the database is unavailable. */
async function sendLimitHeadersFor(
  { credential, is404, routeOptions }: FastifyRequest,
  { accept, clock, log }: AppDeps,
): Promise<Record<string, string>> {
  if (!credential || is404 || !routeOptions.config.endpoint?.sends) return {}
  try {
    return sendLimitHeaders(await within(accept.sendLimitUsage(credential.mode === 'test'), standingWithinMs, clock))
  } catch (error) {
    log.warn({ err: error }, 'failed to read the send limit')
    return {}
  }
}

/** A failure of the request log does not affect the caller's response. */
function recordRequest(request: FastifyRequest, reply: FastifyReply, payload: unknown, { clock, log, requestLogs }: AppDeps): void {
  if (request.isLogged) return
  request.isLogged = true
  try {
    const entry = logEntryOf(request, reply, payload, clock)
    if (entry) requestLogs.note(entry)
  } catch (error) {
    log.error({ requestId: request.id, err: error }, 'failed to log a request')
  }
}

function recordResponse(request: FastifyRequest, reply: FastifyReply, { clock, log, traces, wake }: AppDeps): void {
  const durationMs = clock.monotonicMs() - request.arrivedMs
  const endpoint = request.is404 ? 'unknown' : (request.routeOptions.config.endpoint?.name ?? request.routeOptions.url ?? 'unknown')
  metrics.requestSeconds.observe({ endpoint, status: String(reply.statusCode) }, durationMs / 1000)
  // Authenticated requests only: unauthenticated callers could flood the traces.
  if (traces && request.credential && apiPath.test(request.url)) traces.note(requestSpan(request, reply, durationMs))
  // Links in mail, and unknown routes without a credential, are not logged: unauthenticated clients can cause thousands a second.
  if (request.is404 ? !request.credential : request.routeOptions.config.link !== undefined) return
  if (reply.statusCode < 300 && !readingMethods.has(request.method)) wake()
  const emails = request.acceptedEmailIds?.slice(0, maxLoggedIds) ?? []
  log.info(
    {
      requestId: request.id,
      endpoint,
      status: reply.statusCode,
      durationMs: Math.round(durationMs),
      credentialId: request.credential?.id,
      ...(emails.length > 0 ? { emails } : {}),
    },
    'answered',
  )
}
