/**
 * HTTP entry point: the API under /v1, the dashboard, the reference and the guide under /docs, the links in mail, health and metrics.
 * Translates between the wire contract and the modules.
 * Owns: no tables. Uses: base, mail, net, bounces, simulator, db, tenants, members, openid, credentials, limits, domains, events, suppressions,
 * emails, spool, request-logs, tracking, templates, certificates, accept, delivery, returns, domain-reports, received-mail, message-checks,
 * webhooks, usage, reputation, privacy, housekeeping, mta-sts, doctor, postal, resend, sendgrid, postmark, ses, mailgun, agents. Used by: main.
 * Promises: every answer under /v1 is in the contract's envelope with a status of its closed set, for any input; admission is decided
 * before the body is read; input is bounded in bytes, depth and time.
 */
import type { Server, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { type Config, pause, portTaken, systemClock } from '#base'
import type { CertificateStore, ChallengeContexts } from '#certificates'
import { serveReference } from './api-reference.ts'
import { type AppDeps, buildApp } from './app.ts'
import { defaultHttpLimits, type HttpLimits } from './connection-limits.ts'
import { notBuilt, readPages, servePages } from './dashboard-files.ts'
import { serveGuide } from './guide.ts'
import { openHttpsPort } from './https-port.ts'
import { openReadiness } from './readiness.ts'
import { openServices, type Services, type ServicesDeps } from './services.ts'
import { openStreams } from './streaming-responses.ts'
import { type SystemEndpointDeps, serveSystemEndpoints } from './system-endpoints.ts'

export { openLocalApi } from './local-api.ts'
export { openPlainPort } from './plain-port.ts'
export type { Endpoint } from './v1/define-endpoint.ts'
export { refusalsOf } from './v1/endpoint-refusals.ts'
export { fastifyPath, pathsOf, routes } from './v1/endpoints.ts'
export { failureOf } from './v1/response-envelope.ts'

export interface HttpDeps
  extends Omit<AppDeps, 'bounds' | 'config' | 'streams' | 'readiness' | keyof Services>,
    Omit<ServicesDeps, 'config' | 'installation'>,
    Pick<SystemEndpointDeps, 'smtp'> {
  config: AppDeps['config'] &
    ServicesDeps['config'] &
    SystemEndpointDeps['config'] &
    Pick<Config, 'host' | 'port' | 'httpsHost' | 'httpsPort'>
  /** The dashboard built by Vite. If it is missing, `/` and the log report it. */
  dashboardFolder: string
  /** The page and program of the API reference, built from Scalar. */
  referenceFolder: string
  /** The Markdown of the guide, and the OpenAPI document. */
  docsFolder: string
  /** Overrides for tests with slow or many clients. */
  bounds?: Partial<HttpLimits>
  /** Serves HTTPS as well (POSTRIDER_HTTPS). */
  https?: { store: CertificateStore; challengeContexts: ChallengeContexts } | undefined
}

/** Time limit for requests in progress when the server stops. */
const stopWithinMs = 35_000
/**
 * Time between the decision to stop and the end of listening. Every answer in it ends its connection, so that a busy client opens the next
 * one elsewhere. A connection that only ends would break a request that its client is just sending.
 */
const drainMs = 100

/**
 * Listens on config.host and config.port (0: any free port), and with `https` on config.httpsPort. `stop` completes requests in progress,
 * then closes.
 */
export async function startHttp(deps: HttpDeps): Promise<{ port: number; httpsPort: number | undefined; stop(): Promise<void> }> {
  let stopping = false
  const streams = openStreams(deps.clock)
  const readiness = openReadiness(deps)
  const services = openServices(deps)
  const bounds = { ...defaultHttpLimits, ...deps.bounds }
  const app = await buildApp({ ...deps, ...services, streams, readiness, bounds })
  const pages = readPages(deps.dashboardFolder)
  if (pages.size === 0) deps.log.warn(notBuilt)
  servePages(app, pages)
  serveGuide(app, deps.docsFolder, pages)
  serveSystemEndpoints(app, { ...deps, ...services, readiness, ready: () => !stopping })
  serveReference(app, deps)
  const connections = new Connections(app.server)
  app.server.prependListener('request', (_request, response) => {
    if (stopping) response.shouldKeepAlive = false
  })
  await app.listen({ host: deps.config.host, port: deps.config.port }).catch((error: unknown) => {
    throw portTaken(error, 'PORT', deps.config)
  })
  const address = app.server.address()
  if (address === null || typeof address === 'string') throw new Error('the server does not listen on a port')
  // The HTTP server takes TLS connections as its own, so that its limits, time-outs and counts apply to both ports.
  const accept = (socket: Socket) => void app.server.emit('connection', socket)
  const https = deps.https && (await openHttpsPort({ ...deps, ...deps.https, bounds, accept }))
  return {
    port: address.port,
    httpsPort: https?.port,
    async stop() {
      if (stopping) return
      stopping = true
      https?.stop()
      streams.stop()
      if (connections.size > 0) await pause(systemClock, drainMs)
      const closed = new AbortController()
      void pause(deps.clock, stopWithinMs, closed.signal).then(() => closed.signal.aborted || app.server.closeAllConnections())
      const closing = app.close()
      connections.endUnused()
      await closing
      await connections.allClosed()
      closed.abort()
      await Promise.all([services.requestLogs.stop(), services.trackingEvents.stop()])
    },
  }
}

/** The open connections of a server, also those that it took over from the HTTPS port, which Node does not count. */
class Connections {
  readonly #open = new Set<Socket>()
  /** TLS connections with a request; their octets begin before it. */
  readonly #used = new WeakSet<object>()
  #emptied = () => {}

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket)
      socket.once('close', () => {
        this.#open.delete(socket)
        if (this.#open.size === 0) this.#emptied()
      })
    })
    server.on('request', ({ socket }: { socket: Socket }) => void this.#used.add(socket))
  }

  get size(): number {
    return this.#open.size
  }

  /** Node would wait for connections on which no request was ever sent; clients open such connections in advance. */
  endUnused(): void {
    for (const socket of this.#open) {
      if (socket instanceof TLSSocket ? !this.#used.has(socket) : socket.bytesRead === 0) socket.destroy()
    }
  }

  allClosed(): Promise<void> {
    return new Promise((resolve) => {
      this.#emptied = resolve
      if (this.#open.size === 0) resolve()
    })
  }
}
