/**
 * The API under /v1 for the operator's commands, in their own process: the endpoints of the service on the same database, without a port, a
 * key, a rate limit or request logs. It answers as the service does, so that a command needs one implementation for both.
 */
import { openAccept, openCommit } from '#accept'
import { type Clock, type Config, type Ids, type Random, Refusal, type Secrets } from '#base'
import { type Credential, openCredentials } from '#credentials'
import type { Db } from '#db'
import { openDomains } from '#domains'
import { openLimitSettings } from '#limits'
import { openResolver } from '#net'
import { openWaker } from '#spool'
import { openTenants } from '#tenants'
import { openTracks } from '#tracking'
import { tenantScope } from './authorize.ts'
import { openEndpointServices } from './services.ts'
import { refusalHeaders } from './to-refusal.ts'
import type { ApiDeps, Endpoint } from './v1/define-endpoint.ts'
import { pathsOf, routes } from './v1/endpoints.ts'
import { failure, jsonType } from './v1/response-envelope.ts'

export interface LocalApiDeps {
  config: Config
  db: Db
  clock: Clock
  ids: Ids
  random: Random
  secrets: Secrets
  /** The program's version. */
  version: string
}

/** The operator: every permission, in every tenant. */
const operator: Credential = {
  id: 0,
  tenantId: null,
  name: 'command',
  mode: 'live',
  hold: false,
  permissions: null,
  keyPrefix: '',
  revoked: false,
  imported: false,
}

const unlimited = { allowed: true, limit: 0, remaining: 0, resetSeconds: 0, retryAfterSeconds: 1 }

interface Found {
  endpoint: Endpoint
  params: Record<string, string>
}

const table = routes.flatMap((endpoint) => pathsOf(endpoint).map((path) => ({ endpoint, parts: path.split('/') })))

/** The endpoint of a path below /v1; a literal segment has precedence over a parameter. */
function findEndpoint(method: string, path: string): Found | undefined {
  const given = path.split('/')
  const [found] = table
    .filter(
      ({ endpoint, parts }) =>
        endpoint.method === method && parts.length === given.length && parts.every((part, at) => isParameter(part) || part === given[at]),
    )
    .sort((one, other) => one.parts.filter(isParameter).length - other.parts.filter(isParameter).length)
  if (!found) return undefined
  const params = found.parts.flatMap((part, at) => (isParameter(part) ? [[part.slice(1, -1), decodeURIComponent(given[at] ?? '')]] : []))
  return { endpoint: found.endpoint, params: Object.fromEntries(params) as Record<string, string> }
}

const isParameter = (part: string) => part.startsWith('{')

function openApiDeps(deps: LocalApiDeps, wake: () => void): ApiDeps {
  const { config, db, clock, ids, secrets, version } = deps
  const tenants = openTenants({ db, clock })
  const domains = openDomains({ db, clock, secrets })
  const tracks = openTracks({ db, clock })
  const limitSettings = openLimitSettings({ db, clock, config })
  const commit = openCommit({ db, clock, ids, limitSettings, wake })
  const { sandboxSender, hostname, publicUrl, feedbackId } = config
  const facts = { sandboxSender, hostname, publicUrl, feedbackId }
  const accept = openAccept({ db, clock, ids, tenants, domains, tracks, limitSettings, ...facts, commit })
  const resolver = openResolver({ servers: config.resolvers, clock, ids })
  const services = openEndpointServices({ ...deps, tenants, domains, resolver, installation: { version } })
  return {
    ...services,
    db,
    clock,
    ids,
    secrets,
    config,
    resolver,
    tenants,
    domains,
    tracks,
    limitSettings,
    accept,
    credentials: openCredentials({ db, clock }),
  }
}

/**
 * A `fetch` for the client. A refusal is an answer, as from the service. A fault of the program or its database is thrown as it is, because
 * the operator may see its details.
 */
export function openLocalApi(deps: LocalApiDeps): (url: string, init: RequestInit) => Promise<Response> {
  const wake = openWaker(deps)
  const api = openApiDeps(deps, wake)
  return async (url, { method = 'GET', body }) => {
    const requestId = deps.ids.requestId()
    const { pathname, searchParams } = new URL(url)
    try {
      const found = findEndpoint(method, pathname.slice('/v1'.length))
      if (!found) throw new Refusal('not_found', { message: `no such endpoint: ${method} ${pathname}` })
      const { endpoint, params } = found
      const query = Object.fromEntries(searchParams)
      const answered = await endpoint.respond(
        {
          requestId,
          params,
          query,
          body: typeof body === 'string' ? JSON.parse(body) : {},
          credential: operator,
          tenantId: tenantScope(operator, endpoint, { params, query }),
          rate: unlimited,
          idempotencyKey: undefined,
          accept: undefined,
          lastEventId: undefined,
        },
        api,
      )
      if (method !== 'GET') wake()
      const { body: json } = answered
      if (typeof json !== 'string' && !Buffer.isBuffer(json)) throw new Error(`${endpoint.name} answers no JSON text`)
      return new Response(typeof json === 'string' ? json : json.toString(), {
        status: answered.status ?? (endpoint.status === 201 ? 201 : 200),
        headers: { 'content-type': jsonType },
      })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return new Response(failure(error, requestId), { status: error.status, headers: refusalHeaders(error) })
    }
  }
}
