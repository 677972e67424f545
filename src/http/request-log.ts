/** What the request log is told of a request: everything is at hand when its answer leaves, and nothing waits for it to be written. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '#base'
import { type HeldBody, holdBody, type LogDetails, type NewEntry } from '#request-logs'

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it came, once read. */
    octets: HeldBody | null
    isLogged: boolean
  }
}

/** The entry of an authenticated request. `payload` is what is sent, the envelope included. */
export function logEntryOf(request: FastifyRequest, reply: FastifyReply, payload: unknown, clock: Clock): NewEntry | undefined {
  const { credential, refusal, rate } = request
  if (!credential) return undefined
  const endpoint = request.is404 ? undefined : request.routeOptions.config.endpoint
  const { text, data } = readAnswer(payload)
  const durationMs = Math.max(0, clock.monotonicMs() - request.arrivedMs)
  const isRefused = reply.statusCode >= 400
  return {
    requestId: request.id,
    at: new Date(Math.round(clock.nowMs() - durationMs)),
    method: request.method,
    path: request.url.split('?', 1)[0] ?? '',
    endpoint: endpoint?.name ?? 'unknown',
    statusCode: reply.statusCode,
    durationMs: Math.round(durationMs),
    credentialId: credential.id,
    keyPrefix: credential.keyPrefix,
    tenantId: tenantOf(request, data),
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
    email: endpoint?.name.startsWith('emails.') ? emailOf(request, data) : null,
    sdk: sdkOf(request),
    request: { ...bodyOf(request), isBroken: request.body === undefined },
    response: text === undefined ? null : holdBody(text),
  }
}

/** Up to here it is worth while to parse an answer again. */
const parsedLength = 1_048_576
/** How a larger one begins that is about one thing. */
const oneThing = /^\{"success":true,"data":\{"id":"?[^",]+"?,"tenantId":"([a-z0-9]+)"/

type Data = Record<string, unknown>

function readAnswer(payload: unknown): { text: string | Buffer | undefined; data: Data } {
  if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return { text: undefined, data: {} }
  if (payload.length > parsedLength) {
    const tenantId = oneThing.exec(payload.toString().slice(0, 300))?.[1]
    return { text: payload, data: tenantId === undefined ? {} : { tenantId } }
  }
  try {
    const { data } = JSON.parse(payload.toString()) as { data?: unknown }
    return { text: payload, data: typeof data === 'object' && data !== null && !Array.isArray(data) ? (data as Data) : {} }
  } catch {
    return { text: payload, data: {} }
  }
}

const tenantIdForm = /^[a-z][a-z0-9]{0,63}$/

/** The tenant it was about: the key's own, or the one named in path, query or body, or the one that the answer tells. */
function tenantOf({ admission, credential, body, is404, routeOptions }: FastifyRequest, data: Data): string | null {
  const known = credential?.tenantId ?? admission?.tenantId
  if (known != null) return known
  const endpoint = is404 ? undefined : routeOptions.config.endpoint
  const { tenantId, tenant_id } = (endpoint?.takesTenant && typeof body === 'object' && body !== null ? body : {}) as Data
  for (const one of [tenantId, tenant_id, data.tenantId]) if (typeof one === 'string' && tenantIdForm.test(one)) return one
  return null
}

/** One send, or all of a batch under its first email; elsewhere the email in the path. */
function emailOf({ params }: FastifyRequest, { id, messages }: Data): LogDetails['email'] {
  if (typeof messages === 'object' && messages !== null) {
    const sent = Object.values(messages) as { id: string }[]
    const firstId = typeof id === 'string' ? id : sent[0]?.id
    return firstId === undefined ? null : { id: firstId, recipientCount: sent.length }
  }
  const { emailId } = (params ?? {}) as { emailId?: string }
  return emailId === undefined ? null : { id: emailId, recipientCount: null }
}

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

/** A body that was not read is known by what was announced. */
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
