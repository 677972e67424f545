/**
 * POST /mcp: the tools for agents, with an API key as bearer. A call goes through the endpoints of /v1 with the permissions, the tenant and
 * the rate limit of its key. Without sessions and streams, so any process answers any request.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Type, { type TSchema } from 'typebox'
import type { AgentCaller, Agents, ApiAnswer, ApiCall, Right } from '#agents'
import { type Config, type Log, Refusal } from '#base'
import { type Admission, type AuthorizeDeps, authorize, keyIn, tenantScope } from './authorize.ts'
import type { DashboardDeps } from './dashboard-context.ts'
import type { Readiness } from './readiness.ts'
import { toRefusal } from './to-refusal.ts'
import { connectionOf } from './v1/caller-connection.ts'
import type { ApiDeps, Endpoint } from './v1/define-endpoint.ts'
import { routes } from './v1/endpoints.ts'
import { within } from './v1/response-deadline.ts'
import { searchTurns } from './v1/search-turns.ts'
import { compileSchema, refusalOf } from './v1/validate.ts'

export interface McpDeps extends ApiDeps, Omit<AuthorizeDeps, 'config'>, Omit<DashboardDeps, 'config'> {
  log: Log
  readiness: Readiness
  config: ApiDeps['config'] & Pick<Config, 'publicUrl'>
}

const path = '/mcp'
const bodyLimit = 131_072
const admitWithinMs = 3000
/** Longer than the doctor's 30 s. */
const answerWithinMs = 36_000
const planLifeMs = 300_000
const maxAgentLength = 200

/** In the form of the endpoints of /v1, so that admission and body limits treat it alike. */
const endpoint: Endpoint = {
  method: 'POST',
  path,
  name: 'mcp',
  summary: '',
  permission: 'any key',
  scope: 'organisation or tenant',
  families: 'organisation',
  body: Type.Object({}),
  bodyLimit,
  refuses: [],
  reply: Type.Object({}),
  streams: false,
  sends: false,
  takesTenant: false,
  respond: async () => {
    throw new Error('/mcp is not an endpoint of /v1')
  },
}

/** Node passes on a few characters in a header that a `Request` refuses. */
const headerText = /^[\t -~\x80-\xff]*$/
/** The headers that the protocol reads. */
const protocolHeader = /^(?:accept|content-type|mcp-[a-z-]{1,60})$/

export function serveMcp(app: FastifyInstance, deps: McpDeps): void {
  let opened: Promise<Agents> | undefined
  // At the first request: most processes never need the tools.
  const agents = () => {
    opened ??= import('#agents')
      .then(({ openAgents }) => openAgents(agentDeps(deps)))
      .catch((error: unknown) => {
        // A lack of memory or of file descriptors may end: the next request loads them again.
        opened = undefined
        throw error
      })
    return opened
  }
  app.route({
    method: 'POST',
    url: path,
    bodyLimit,
    config: { endpoint },
    onRequest: async (request, reply) => {
      refusePages(request, deps.config.publicUrl)
      await within(authorize(request, reply, endpoint, deps, keyIn(request.headers.authorization)), admitWithinMs, deps.clock)
    },
    handler: async (request, reply) => {
      const { admission, body } = request
      if (!admission) throw new Error('a request bypassed authorisation')
      if (typeof body !== 'object' || body === null || Array.isArray(body))
        throw new Refusal('validation_error', {
          message: 'the body must be one JSON-RPC message',
          suggestion: 'Send each message in a request of its own',
        })
      const answering = agents().then((tools) => tools.answer(asRequest(request), body, callerOf(request, reply, admission, deps)))
      const answered = await within(answering, answerWithinMs, deps.clock)
      return sendAnswer(reply, answered)
    },
  })
  // Clients ask for a stream, and for the end of a session; the protocol's answer for servers without them is 405.
  app.route({
    method: ['GET', 'DELETE'],
    url: path,
    handler: async (_request, reply) =>
      reply
        .code(405)
        .header('allow', 'POST')
        .type('application/json; charset=utf-8')
        .send({ jsonrpc: '2.0', error: { code: -32_000, message: 'Method not allowed. Send POST requests' }, id: null }),
  })
}

const agentDeps = (deps: McpDeps) => ({
  ...deps,
  version: deps.installation.version,
  runChecks: oneAtATime(() => deps.installation.runChecks()),
  checkerOf,
  refusalOf(error: unknown) {
    const refusal = toRefusal(error)
    deps.readiness.recordError(error)
    if (refusal.shouldRetry) deps.readiness.recordOutage(error)
    else if (refusal.status === 500) deps.log.error({ err: error }, 'a tool failed')
    return refusal
  },
  planLifeMs,
})

/** A page of another site could otherwise reach a service on its reader's machine through a name that it makes lead there. */
function refusePages({ headers }: FastifyRequest, publicUrl: string): void {
  const { origin } = headers
  if (origin === undefined || origin === new URL(publicUrl).origin) return
  throw new Refusal('permission_denied', {
    message: 'pages of another origin cannot use this path',
    suggestion: 'Connect with a program, without the header Origin',
  })
}

/** One examination for all callers at a time, because it queries other organisations' servers. */
function oneAtATime<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => {
    running ??= work().finally(() => {
      running = undefined
    })
    return running
  }
}

function checkerOf(schema: TSchema): (value: unknown) => void {
  const problemsOf = compileSchema(schema)
  return (value) => {
    const problems = problemsOf(value)
    if (problems.length > 0) throw refusalOf(problems)
  }
}

function asRequest({ headers }: FastifyRequest): Request {
  const shown = Object.entries(headers).flatMap(([name, value]) =>
    protocolHeader.test(name) && headerText.test(String(value)) ? [[name, String(value)] as [string, string]] : [],
  )
  return new Request(`http://localhost${path}`, { method: 'POST', headers: shown })
}

async function sendAnswer(reply: FastifyReply, answered: Response): Promise<FastifyReply> {
  const type = answered.headers.get('content-type')
  if (type?.startsWith('text/event-stream')) {
    await answered.body?.cancel()
    throw new Refusal('not_found', { message: 'there are no subscriptions: the list of tools never changes' })
  }
  const text = await answered.text()
  reply.code(answered.status).header('cache-control', 'no-store')
  return type === null ? reply.send() : reply.type(type).send(text)
}

function callerOf(request: FastifyRequest, reply: FastifyReply, { credential, rate }: Admission, deps: McpDeps): AgentCaller {
  const { id: requestId, ip: ipAddress, headers } = request
  const connection = connectionOf(reply.raw)
  return {
    credential,
    requestId,
    ipAddress,
    agent: headers['user-agent']?.slice(0, maxAgentLength) ?? null,
    require(right: Right) {
      tenantScope(credential, { ...right, takesTenant: false }, { params: {}, query: {} })
      if (right.permission === 'full access' && credential.bounds?.from)
        throw new Refusal('permission_denied', { message: 'a key that is bound to senders cannot do this' })
    },
    search: (work) => searchTurns.run({ tenantId: credential.tenantId, gone: connection.gone }, work),
    async call(name: string, { params = {}, query = {}, body = {} }: ApiCall): Promise<ApiAnswer> {
      const found = byName.get(name)
      if (!found) throw new Error(`there is no endpoint ${name}`)
      const given = Object.fromEntries(Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])))
      const answered = await found.respond(
        {
          requestId,
          params,
          query: given,
          body,
          credential,
          tenantId: tenantScope(credential, found, { params, query: given }),
          rate,
          idempotencyKey: undefined,
          accept: undefined,
          lastEventId: undefined,
          connection,
        },
        deps,
      )
      request.acceptedEmailIds = answered.emailIds ?? request.acceptedEmailIds
      const { body: json } = answered
      if (typeof json !== 'string' && !Buffer.isBuffer(json)) throw new Error(`${name} answers no JSON`)
      return JSON.parse(json.toString()) as ApiAnswer
    },
  }
}

const byName: ReadonlyMap<string, Endpoint> = new Map(routes.map((one) => [one.name, one]))
