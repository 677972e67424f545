/**
 * Endpoints outside the API (contract section 18): health, metrics, webhook signing keys. No keys, no envelope.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { type Config, metricsPage } from '#base'
import type { Webhooks } from '#webhooks'
import type { Readiness } from './readiness.ts'

export interface SystemEndpointDeps {
  readiness: Readiness
  config: Pick<Config, 'metricsToken'>
  webhooks: Webhooks
  /** Whether this process has started and is not stopping. */
  ready: () => boolean
  /** Whether its SMTP ports are open; undefined if the process has no such ports. */
  smtp?: (() => boolean) | undefined
}

export function serveSystemEndpoints(app: FastifyInstance, deps: SystemEndpointDeps): void {
  app.get('/healthz', { exposeHeadRoute: true }, async () => ({ status: 'ok' }))

  app.get('/readyz', { exposeHeadRoute: true }, async (_request, reply) => {
    const database = await deps.readiness.look()
    const ready = deps.ready() && database === 'reachable'
    // Reported without affecting the 503: HTTP health decides where HTTP requests go, and HTTP is being answered.
    const smtp = deps.smtp && { smtp: deps.smtp() ? 'listening' : 'not listening' }
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', database, ...smtp })
  })

  app.get('/metrics', async (request, reply) => {
    if (!mayReadMetrics(request, deps.config.metricsToken)) return reply.code(404).type('text/plain; charset=utf-8').send('not found\n')
    const { contentType, text } = await metricsPage()
    return reply.type(contentType).send(text)
  })

  app.get('/.well-known/jwks.json', async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=3600').send(await deps.webhooks.jwks()),
  )
}

const digest = (text: string) => createHash('sha256').update(text).digest()
const forwardingHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** With a token configured: callers that present it. Without: connections from this machine that no proxy forwarded. */
export function mayReadMetrics(
  request: Pick<FastifyRequest, 'headers'> & { socket: { remoteAddress?: string | undefined } },
  token: string | undefined,
): boolean {
  if (token !== undefined) {
    const given = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    return given !== undefined && timingSafeEqual(digest(given), digest(token))
  }
  const { remoteAddress } = request.socket
  const isLocal = remoteAddress !== undefined && ipaddr.isValid(remoteAddress) && ipaddr.process(remoteAddress).range() === 'loopback'
  return isLocal && !forwardingHeaders.some((name) => request.headers[name] !== undefined)
}
