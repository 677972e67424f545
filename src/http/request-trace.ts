/**
 * The trace span of an API request: endpoint, key and response. Path, query and bodies are left out because they may contain personal data.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type EndedSpan, emailIdTimeMs } from '#base'
import { tenantNamed } from './request-log.ts'

declare module 'fastify' {
  interface FastifyRequest {
    acceptedEmailIds: readonly string[] | null
  }
}

export function requestSpan(request: FastifyRequest, reply: FastifyReply, durationMs: number): EndedSpan {
  const { credential, refusal, method } = request
  const endpoint = request.is404 ? undefined : request.routeOptions.config.endpoint
  const route = endpoint && request.routeOptions.url
  const { emailId } = (request.params ?? {}) as { emailId?: string }
  const isPerson = credential !== null && 'role' in credential
  const { traceparent } = request.headers
  return {
    name: route === undefined ? method : `${method} ${route}`,
    kind: 'server',
    durationMs,
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    acceptedEmailIds: request.acceptedEmailIds ?? undefined,
    attributes: {
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': reply.statusCode,
      'url.scheme': request.protocol,
      'postrider.request.id': request.id,
      'postrider.endpoint': endpoint?.name,
      'postrider.credential.id': isPerson ? undefined : credential?.id,
      'postrider.tenant.id': tenantNamed(request),
      'postrider.error.code': refusal?.code,
      'postrider.email.id': request.admission && emailId !== undefined && emailIdTimeMs(emailId) !== undefined ? emailId : undefined,
    },
    error: reply.statusCode >= 500 ? (refusal?.code ?? 'internal_error') : undefined,
  }
}
