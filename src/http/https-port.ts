/**
 * The HTTPS port: reads each ClientHello first, refuses names without a certificate before any cryptography, answers TLS-ALPN-01
 * challenges, and passes the other connections to the HTTP server, whose limits then apply.
 */
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type SecureContext, type TLSSocket, type Server as TlsServer } from 'node:tls'
import { LRUCache } from 'lru-cache'
import { type Clock, type Config, isInNetwork, type Log } from '#base'
import type { CertificateStore, ChallengeContexts } from '#certificates'
import { ClientHelloReader, maxHelloOctets } from './client-hello.ts'
import { type HttpLimits, limitConnections } from './connection-limits.ts'
import { listenOn } from './listen-on.ts'

export interface HttpsPortDeps {
  store: CertificateStore
  challengeContexts: ChallengeContexts
  /** Takes over a connection after its handshake. */
  accept: (socket: TLSSocket) => void
  clock: Clock
  log: Log
  bounds: HttpLimits
  config: Pick<Config, 'httpsHost' | 'httpsPort' | 'trustedProxies'>
}

export interface OpenPort {
  port: number
  /** Stops accepting connections. Connections that were handed over continue. */
  stop(): void
}

/** RFC 8737 section 3. */
const challengeProtocol = 'acme-tls/1'
/** The fatal alert `unrecognized_name` (RFC 6066 section 3), in a TLS record. */
const unrecognisedName = Buffer.from([21, 3, 3, 0, 2, 2, 112])
const maxContexts = 1000
/** Clients send the ClientHello in a few pieces; each piece costs a turn of the event loop. */
const maxPieces = 500

/** Listens on config.httpsHost and config.httpsPort (0: any free port). */
export async function openHttpsPort(deps: HttpsPortDeps): Promise<OpenPort> {
  const { bounds, config } = deps
  const door = new HttpsDoor(deps)
  const make = () => {
    const server = createServer({ noDelay: true }, (socket) => door.begin(socket))
    limitConnections(server, bounds, (address) => isInNetwork(config.trustedProxies, address))
    return server
  }
  const { servers, port } = await listenOn(make, { host: config.httpsHost, port: config.httpsPort, setting: 'POSTRIDER_HTTPS_PORT' })
  return {
    port,
    stop() {
      for (const server of servers) server.close()
      door.stop()
    },
  }
}

/** Takes connections from their first octet to the end of the handshake. */
class HttpsDoor {
  readonly #deps: HttpsPortDeps
  /** Connections before the handshake. */
  readonly #pending = new Set<Socket>()
  readonly #web: Handshakes
  readonly #challenges: Handshakes

  constructor(deps: HttpsPortDeps) {
    this.#deps = deps
    const { bounds } = deps
    this.#web = new Handshakes(['http/1.1'], bounds.headersMs, deps.accept)
    // The CA has seen the certificate: it sends no data (RFC 8737 section 3).
    this.#challenges = new Handshakes([challengeProtocol], bounds.headersMs, (socket) => socket.destroySoon())
  }

  begin(socket: Socket): void {
    const { clock, bounds } = this.#deps
    this.#pending.add(socket)
    const cancel = clock.after(bounds.headersMs, () => socket.destroy())
    const done = () => {
      cancel()
      this.#pending.delete(socket)
    }
    socket.on('error', () => socket.destroy())
    socket.once('close', done)
    const reader = new ClientHelloReader()
    let pieces = 0
    const read = (piece: Buffer) => {
      pieces++
      const hello = reader.read(piece)
      if (hello.kind === 'incomplete' && reader.octets.length < maxHelloOctets && pieces < maxPieces) return
      socket.off('data', read)
      socket.pause()
      if (hello.kind !== 'hello') socket.destroy()
      else if (hello.serverName === undefined) refuse(socket)
      else void this.#admit(socket, reader.octets, hello.serverName, hello.protocols.includes(challengeProtocol)).finally(done)
    }
    socket.on('data', read)
  }

  stop(): void {
    for (const socket of this.#pending) socket.destroy()
  }

  async #admit(socket: Socket, octets: Buffer, name: string, isChallenge: boolean): Promise<void> {
    const { store, challengeContexts, log } = this.#deps
    try {
      const context = await (isChallenge ? challengeContexts.find(name) : store.contextOf(name))
      if (socket.destroyed) return
      if (!context) return refuse(socket)
      socket.unshift(octets)
      ;(isChallenge ? this.#challenges : this.#web).begin(socket, name, context)
    } catch (error) {
      // Not a warning: clients could flood the log, and the database's own failure is logged elsewhere.
      log.debug({ err: error, host: name }, 'failed to read the certificate of a connection')
      socket.destroy()
    }
  }
}

/** TLS handshakes of one protocol, with the certificate of each name. */
class Handshakes {
  readonly #contexts = new LRUCache<string, SecureContext>({ max: maxContexts })
  readonly #server: TlsServer

  constructor(protocols: string[], withinMs: number, accept: (socket: TLSSocket) => void) {
    this.#server = createTlsServer({
      ALPNProtocols: protocols,
      handshakeTimeout: withinMs,
      minVersion: 'TLSv1.2',
      SNICallback: (name, done) => done(null, this.#contexts.get(name.toLowerCase().replace(/\.$/, ''))),
    })
    this.#server.on('secureConnection', accept)
    // Includes the end of the time limit, after which Node leaves the socket open.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy())
  }

  begin(socket: Socket, name: string, context: SecureContext): void {
    this.#contexts.set(name, context)
    this.#server.emit('connection', socket)
  }
}

function refuse(socket: Socket): void {
  socket.end(unrecognisedName)
  socket.destroySoon()
}
