/**
 * The HTTP port beside the HTTPS port: answers HTTP-01 challenges (RFC 8555 section 8.3) and redirects all other requests to https. Bounded
 * like the main port.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Config, isInNetwork, type Log } from '#base'
import type { Challenges } from '#certificates'
import { defaultHttpLimits, type HttpLimits, limitConnections } from './connection-limits.ts'
import type { OpenPort } from './https-port.ts'
import { listenOn } from './listen-on.ts'
import { hostNameOf } from './request-target.ts'

export interface PlainPortDeps {
  challenges: Challenges
  log: Log
  config: Pick<Config, 'httpsHost' | 'httpPort' | 'publicUrl' | 'trustedProxies'>
  /** Overrides for tests with slow or many clients. */
  bounds?: Partial<HttpLimits>
}

const challengePath = /^\/\.well-known\/acme-challenge\/([\w-]{1,200})$/

/** Listens on config.httpsHost and config.httpPort (0: any free port). */
export async function openPlainPort(deps: PlainPortDeps): Promise<OpenPort> {
  const { config } = deps
  const bounds = { ...defaultHttpLimits, ...deps.bounds }
  const sockets = new Set<Socket>()
  const make = () => {
    const server = createServer(
      {
        headersTimeout: bounds.headersMs,
        requestTimeout: bounds.requestMs,
        connectionsCheckingInterval: Math.min(1000, bounds.headersMs / 4),
      },
      (request, response) => void answer(request, response, deps),
    )
    server.timeout = bounds.idleMs
    limitConnections(server, bounds, (address) => isInNetwork(config.trustedProxies, address))
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    return server
  }
  const { servers, port } = await listenOn(make, { host: config.httpsHost, port: config.httpPort, setting: 'POSTRIDER_HTTP_PORT' })
  return {
    port,
    stop() {
      for (const server of servers) server.close()
      for (const socket of sockets) socket.destroySoon()
    },
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, { challenges, log, config }: PlainPortDeps): Promise<void> {
  // The rest of a body is not read.
  response.setHeader('connection', 'close')
  const token = challengePath.exec(request.url ?? '')?.[1]
  if (token === undefined) return redirect(request, response, config)
  try {
    const found = await challenges.findByToken(token)
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'text/plain; charset=utf-8' }).end(found ?? 'not found\n')
  } catch (error) {
    log.debug({ err: error }, 'failed to look up an ACME challenge')
    response.writeHead(503, { 'content-type': 'text/plain; charset=utf-8' }).end('try again later\n')
  }
}

function redirect({ url = '/', headers }: IncomingMessage, response: ServerResponse, config: PlainPortDeps['config']): void {
  const host = hostNameOf({ host: headers.host ?? '' })
  if (host === '') {
    response.writeHead(400, { 'content-type': 'text/plain; charset=utf-8' }).end('the Host header is missing or not a host name\n')
    return
  }
  const published = new URL(config.publicUrl)
  const authority = host === published.hostname ? published.host : host
  const path = url.startsWith('/') ? url.replace(/[^\x21-\x7e]+/g, encodeURIComponent) : '/'
  response.writeHead(308, { location: `https://${authority}${path}`, 'content-length': 0 }).end()
}
