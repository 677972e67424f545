/**
 * One HTTP connection to an address that was looked up and checked, with one exchange at a time. The code limits the peer's octets, and a
 * signal limits the time.
 */
import type { X509Certificate } from 'node:crypto'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { Client } from 'undici'
import type { Clock } from '#base'
import { affordableCiphers, type CostlyHandshakes, certificatesOf } from './costly-handshakes.ts'
import type { UrlVerdict } from './resolve-url.ts'

interface HttpRequest {
  method: 'POST' | 'GET' | 'HEAD'
  headers: Readonly<Record<string, string>>
  body?: Buffer | undefined
  /** Limit of the response body; octets beyond it are not read. */
  maxOctets: number
  /** The connection is not reused. */
  closes: boolean
}

interface HttpResponse {
  statusCode: number
  contentType: string | null
  retryAfter: string | null
  body: Buffer
  isWhole: boolean
}

/** One connection and its HTTP client. */
export interface HttpConnection {
  client: Client
  url: URL
  madeMs: number
  alive(): boolean
  end(): void
}

const maxAddresses = 4
const maxHeaderOctets = 16_384

/** Its message may be shown to the party that supplied the URL. */
export class HttpFailure extends Error {}

/** HTTP on an open connection; when that is lost, no other is opened in its place. */
export async function httpConnectionOn(socket: Socket, url: URL, clock: Clock, keepIdleMs = 1): Promise<HttpConnection> {
  // Loaded at the first request: it takes 35 ms of processor time, and most processes never send one.
  const { Client } = await import('undici')
  let given = false
  const client = new Client(url.origin, {
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: maxHeaderOctets,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: keepIdleMs,
    keepAliveMaxTimeout: keepIdleMs,
    connect: (_, done) => {
      if (given || socket.destroyed) return done(new HttpFailure('the connection was closed'), null)
      given = true
      // Deferred: undici waits for ever if it receives the socket while it asks for it.
      queueMicrotask(() => done(null, socket))
    },
  })
  const end = () => {
    socket.destroy()
    client.destroy().catch(() => undefined)
  }
  return { client, url, madeMs: clock.monotonicMs(), alive: () => !socket.destroyed && socket.writable, end }
}

/** The result of `work`, unless the signal fires first. */
export function unless<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

type Target = Extract<UrlVerdict, { kind: 'addresses' }>

/** Tries the addresses in turn, each with its share of the time, until one answers; then TLS, unless the URL is http. */
export async function connectHttp(
  { url, host, addresses }: Target,
  withinMs: number,
  signal: AbortSignal,
  { clock, trusted, costlyHandshakes }: { clock: Clock; trusted?: string | undefined; costlyHandshakes: CostlyHandshakes },
): Promise<Socket> {
  const isPlain = url.protocol === 'http:'
  const port = url.port === '' ? (isPlain ? 80 : 443) : Number(url.port)
  const tried = addresses.slice(0, maxAddresses)
  let last: unknown
  for (const address of tried) {
    const share = new AbortController()
    const cancel = clock.after(withinMs / tried.length, () => share.abort(new HttpFailure(`${host} port ${port} does not respond`)))
    try {
      if (!isPlain && costlyHandshakes.has({ address, name: host }))
        throw new HttpFailure(`no TLS handshake with ${host} at ${address}: an earlier one cost too much processor time`)
      const socket = await opened(connectTcp({ host: address, port, noDelay: true }), 'connect', AbortSignal.any([signal, share.signal]))
      if (isPlain) return socket
      const options = {
        host,
        ciphers: affordableCiphers(),
        ALPNProtocols: ['http/1.1'],
        ...(isIP(host) ? {} : { servername: host }),
        ...(trusted ? { ca: trusted } : {}),
      }
      return await secured({ socket, address, host, options }, signal, costlyHandshakes)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      last = error
    } finally {
      cancel()
    }
  }
  throw last
}

async function secured(
  { socket, address, host, options }: { socket: Socket; address: string; host: string; options: ConnectionOptions },
  signal: AbortSignal,
  costlyHandshakes: CostlyHandshakes,
): Promise<Socket> {
  const encrypted = connectTls({ ...options, socket })
  const note = (certificates?: () => X509Certificate[]) => costlyHandshakes.note({ address, name: host }, socket.bytesRead, certificates)
  try {
    await opened(encrypted, 'secureConnect', signal)
  } catch (error) {
    note()
    throw error
  }
  note(() => certificatesOf(encrypted))
  return encrypted
}

function opened<S extends Socket>(socket: S, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<S> {
  const ready = new Promise<S>((resolve, reject) => {
    socket.once(event, () => resolve(socket))
    socket.on('error', reject)
    socket.once('close', () => reject(new HttpFailure('the connection was closed')))
  })
  return unless(signal, ready).catch((error: unknown) => {
    socket.destroy()
    throw error
  })
}

/** Sends the request. The status decides, so a failure after it costs only the rest of the body. */
export function exchange(
  line: HttpConnection,
  { method, headers, body, maxOctets, closes }: HttpRequest,
  signal: AbortSignal,
): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    let answer: Pick<HttpResponse, 'statusCode' | 'contentType' | 'retryAfter'> | undefined
    const pieces: Buffer[] = []
    let octets = 0
    const settle = (error: Error | undefined) => {
      signal.removeEventListener('abort', onAbort)
      if (answer) resolve({ ...answer, body: Buffer.concat(pieces), isWhole: error === undefined })
      else reject(error ?? new HttpFailure('the response has no status'))
      // The rest of this response would be taken for the next one.
      if (error) line.end()
    }
    const onAbort = () => settle(signal.reason as Error)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    line.client.dispatch(
      {
        method,
        path: line.url.pathname + line.url.search,
        headers: { 'accept-encoding': 'identity', ...headers },
        body: body ?? null,
        reset: closes,
      },
      {
        onRequestStart: () => undefined,
        onRequestUpgrade: () => settle(new HttpFailure('the response is not HTTP')),
        onResponseStart(_, statusCode, received) {
          if (statusCode < 200) return
          const [retryAfter = null] = [received['retry-after']].flat()
          const [contentType = null] = [received['content-type']].flat()
          answer = { statusCode, contentType, retryAfter }
        },
        onResponseData(_, piece) {
          pieces.push(piece)
          octets += piece.length
          if (octets >= maxOctets) settle(new HttpFailure('enough was read'))
        },
        onResponseEnd: () => settle(undefined),
        onResponseError: (_, error) =>
          settle(
            (error as { code?: unknown }).code === 'UND_ERR_SOCKET'
              ? new HttpFailure('the connection was closed without a response')
              : error,
          ),
      },
    )
  })
}
