/** Builds a request's log entry when its answer is sent; writing the entry never delays the answer. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '#base'
import { type HeldBody, holdBody, type LogDetails, type NewEntry } from '#request-logs'

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as received, once read. */
    octets: HeldBody | null
    isLogged: boolean
  }
}

/** The entry of an authenticated request. `payload` is the response as sent, with its envelope. */
export function logEntryOf(request: FastifyRequest, reply: FastifyReply, payload: unknown, clock: Clock): NewEntry | undefined {
  const { credential, refusal, rate } = request
  if (!credential) return undefined
  // The dashboard polls every few seconds; a person's reads are not logged.
  if ('role' in credential && request.method === 'GET') return undefined
  const endpoint = request.is404 ? undefined : request.routeOptions.config.endpoint
  const text = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : undefined
  const durationMs = Math.max(0, clock.monotonicMs() - request.arrivedMs)
  const isRefused = reply.statusCode >= 400 || refusal !== null
  const isOfEmails = endpoint?.name.startsWith('emails.') === true
  const named = tenantNamed(request)
  const data = !isRefused && text !== undefined && (isOfEmails || named === null) ? dataIn(text) : {}
  return {
    requestId: request.id,
    at: new Date(request.arrivedAtMs),
    method: request.method,
    path: request.url.split('?', 1)[0] ?? '',
    endpoint: endpoint?.name ?? 'unknown',
    statusCode: reply.statusCode,
    durationMs: Math.round(durationMs),
    credentialId: credential.id,
    keyPrefix: credential.keyPrefix,
    tenantId: named ?? tenantIn(data),
    rateLimit: {
      limit: rate?.limit ?? null,
      remaining: rate?.remaining ?? null,
      reset: rate?.resetSeconds ?? null,
      limited: rate?.allowed === false,
    },
    context: {
      ipAddress: request.ip ?? null,
      userAgent: headerOf(request, 'user-agent') ?? null,
      idempotencyKey: headerOf(request, 'idempotency-key') ?? null,
      queryParams: queryOf(request),
    },
    error: isRefused ? { code: refusal?.code ?? 'internal_error', message: refusal?.message ?? null } : null,
    email: isOfEmails ? emailOf(request, data) : sentEmailOf(request),
    sdk: sdkOf(request),
    request: { ...bodyOf(request), isBroken: request.body === undefined },
    response: text === undefined ? null : holdBody(text),
  }
}

/** Longest response, in characters, that is parsed again. */
const parsedLength = 1_048_576
/** The start of a longer response with a single object. */
const oneThing = /^\{"success":true,"data":\{"id":"?[^",]+"?,"tenantId":"([a-z0-9]+)"/
const listStart = '{"success":true,"data":['

type Data = Record<string, unknown>

/** `data` of a response with a single object; empty otherwise. */
function dataIn(payload: string | Buffer): Data {
  const start = typeof payload === 'string' ? payload.slice(0, 300) : payload.toString('utf8', 0, 300)
  if (start.startsWith(listStart)) return {}
  if (payload.length > parsedLength) return { tenantId: oneThing.exec(start)?.[1] }
  try {
    const { data } = JSON.parse(payload.toString()) as { data?: unknown }
    return typeof data === 'object' && data !== null && !Array.isArray(data) ? (data as Data) : {}
  } catch {
    return {}
  }
}

const tenantIdForm = /^[a-z][a-z0-9]{0,63}$/
const tenantIn = ({ tenantId, tenant_id: older }: Data) =>
  [tenantId, older].find((one): one is string => typeof one === 'string' && tenantIdForm.test(one)) ?? null

/** The key's own tenant, or the tenant named in path, query or body. */
export function tenantNamed({ admission, credential, body, is404, routeOptions }: FastifyRequest): string | null {
  const known = credential?.tenantId ?? admission?.tenantId
  if (known != null) return known
  const takesTenant = !is404 && routeOptions.config.endpoint?.takesTenant === true
  return takesTenant && typeof body === 'object' && body !== null ? tenantIn(body as Data) : null
}

const countOf = (messages: unknown) => (typeof messages === 'object' && messages !== null ? Object.keys(messages).length : 0)

/** One send, or a whole batch under its first email; for other endpoints the email in the path. */
function emailOf({ params }: FastifyRequest, { id, messages, results }: Data): LogDetails['email'] {
  if (Array.isArray(results)) {
    const sent = (results as { id?: string; messages?: object }[]).filter((one) => one.id !== undefined)
    const firstId = sent[0]?.id
    return firstId === undefined ? null : { id: firstId, recipientCount: sent.reduce((sum, one) => sum + countOf(one.messages), 0) }
  }
  if (messages !== undefined) return typeof id === 'string' ? { id, recipientCount: countOf(messages) } : null
  const { emailId } = (params ?? {}) as { emailId?: string }
  return emailId === undefined ? null : { id: emailId, recipientCount: null }
}

/** The first email that a request to another vendor's API sent. */
const sentEmailOf = ({ acceptedEmailIds }: FastifyRequest): LogDetails['email'] =>
  acceptedEmailIds?.[0] === undefined ? null : { id: acceptedEmailIds[0], recipientCount: acceptedEmailIds.length }

const product = /^([^\s/]+)\/([^\s/]+)$/

function sdkOf(request: FastifyRequest): LogDetails['sdk'] {
  const language = headerOf(request, 'x-stainless-lang')
  if (language) return { name: language, version: headerOf(request, 'x-stainless-package-version') ?? null }
  const named = product.exec(headerOf(request, 'user-agent') ?? '')
  return named ? { name: named[1] as string, version: named[2] as string } : null
}

function queryOf({ query }: FastifyRequest): Data | null {
  const entries = Object.entries((query ?? {}) as Data)
  return entries.length === 0 ? null : Object.fromEntries(entries)
}

/** For a body that was not read, the announced size is used. */
function bodyOf(request: FastifyRequest): { size: number | null; body: HeldBody | null } {
  const body = request.octets
  if (body) return { size: body.size === 0 ? null : body.size, body: body.size === 0 ? null : body }
  const announced = Number(request.headers['content-length'] ?? 0)
  return { size: Number.isSafeInteger(announced) && announced > 0 ? announced : null, body: null }
}

function headerOf({ headers }: FastifyRequest, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
