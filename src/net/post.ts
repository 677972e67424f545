/**
 * One HTTP POST to a URL that somebody else has given us. Never rejects, whatever the other side does: the whole is bounded in time,
 * the answer in octets. It connects to addresses that were looked up once and checked, and to no others; redirects are not followed,
 * nothing is decompressed, and the connection ends with the answer.
 */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Clock } from '#base'
import { findTarget, type TargetDeps, type UrlVerdict } from './target.ts'

export interface PostRequest {
  url: string
  headers: Readonly<Record<string, string>>
  body: Buffer
  /** For everything: looking up, connecting, and the answer. */
  withinMs: number
}

export interface PostOutcome {
  /** Null: no HTTP answer. */
  statusCode: number | null
  /** The beginning of what was answered, as text. */
  body: string | null
  durationMs: number
  /** Why there is no answer, in words. */
  error: string | null
  /** Without an answer: the request was on its way, and may have been read. */
  mayHaveArrived: boolean
}

export interface Post {
  /** Where a URL would lead now. */
  look(url: string): Promise<UrlVerdict>
  post(request: PostRequest): Promise<PostOutcome>
}

export interface PostDeps extends TargetDeps {
  clock: Clock
  /** PEM certificates to trust instead of the system's: for tests. */
  trusted?: string
}

const mostAddresses = 4
const longestBody = 10_000
const longestBodyOctets = longestBody * 4
const mostHeaderOctets = 16_384

class Failed extends Error {}

export function openPost(deps: PostDeps): Post {
  const { clock } = deps
  const look = (url: string) => findTarget(url, deps)
  return {
    look,
    async post({ url, headers, body, withinMs }) {
      const startedMs = clock.monotonicMs()
      const stop = new AbortController()
      const cancel = clock.after(withinMs, () => stop.abort(new Failed(`no answer within ${withinMs / 1000} s`)))
      let mayHaveArrived = false
      let socket: Socket | undefined
      const outcome = (rest: Pick<PostOutcome, 'statusCode' | 'body' | 'error'>): PostOutcome => ({
        ...rest,
        durationMs: Math.round(clock.monotonicMs() - startedMs),
        mayHaveArrived: rest.statusCode === null && mayHaveArrived,
      })
      try {
        const target = await unless(stop.signal, look(url))
        if (target.kind !== 'addresses') throw new Failed(target.message)
        socket = await connect(target, withinMs, stop.signal, deps)
        mayHaveArrived = true
        return outcome({ ...(await exchange(socket, target.url, headers, body, stop.signal)), error: null })
      } catch (error) {
        const late = stop.signal.aborted && mayHaveArrived ? '; the request may have arrived' : ''
        return outcome({ statusCode: null, body: null, error: inWords(error) + late })
      } finally {
        cancel()
        socket?.destroy()
      }
    },
  }
}

function inWords(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown trouble'
  if (error instanceof Failed) return error.message
  const { code } = error as NodeJS.ErrnoException
  return code === undefined || error.message.includes(code) ? error.message : `${error.message} (${code})`
}

/** What `work` comes to, unless the signal comes first. */
function unless<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

type Target = Extract<UrlVerdict, { kind: 'addresses' }>

/** The addresses in turn, each for its share of the time, until one answers; then TLS, unless the URL is plain. */
async function connect(
  { url, host, addresses }: Target,
  withinMs: number,
  signal: AbortSignal,
  { clock, trusted }: PostDeps,
): Promise<Socket> {
  const isPlain = url.protocol === 'http:'
  const port = url.port === '' ? (isPlain ? 80 : 443) : Number(url.port)
  const tried = addresses.slice(0, mostAddresses)
  let last: unknown
  for (const address of tried) {
    const share = new AbortController()
    const cancel = clock.after(withinMs / tried.length, () => share.abort(new Failed(`${host} port ${port} does not answer`)))
    try {
      const socket = await opened(connectTcp({ host: address, port, noDelay: true }), 'connect', AbortSignal.any([signal, share.signal]))
      if (isPlain) return socket
      const options = {
        socket,
        host,
        ALPNProtocols: ['http/1.1'],
        ...(isIP(host) ? {} : { servername: host }),
        ...(trusted ? { ca: trusted } : {}),
      }
      return await opened(connectTls(options), 'secureConnect', signal)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      last = error
    } finally {
      cancel()
    }
  }
  throw last
}

function opened<S extends Socket>(socket: S, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<S> {
  const ready = new Promise<S>((resolve, reject) => {
    socket.once(event, () => resolve(socket))
    socket.on('error', reject)
    socket.once('close', () => reject(new Failed('the connection was closed')))
  })
  return unless(signal, ready).catch((error: unknown) => {
    socket.destroy()
    throw error
  })
}

/** Sends the request. The status decides, so trouble after it costs no more than the rest of the body. */
function exchange(
  socket: Socket,
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  signal: AbortSignal,
): Promise<{ statusCode: number; body: string }> {
  return new Promise((resolve, reject) => {
    const asked: ClientRequest = httpRequest({
      method: 'POST',
      path: url.pathname + url.search,
      headers: { host: url.host, 'content-length': String(body.length), 'accept-encoding': 'identity', ...headers },
      maxHeaderSize: mostHeaderOctets,
      createConnection: () => socket,
    })
    const end = (finish: () => void) => {
      signal.removeEventListener('abort', onAbort)
      finish()
      asked.destroy()
    }
    let answer: { statusCode: number; pieces: Buffer[] } | undefined
    const fail = (error: Error) => {
      const told = answer
      end(() => (told ? resolve({ statusCode: told.statusCode, body: textOf(told.pieces) }) : reject(error)))
    }
    const onAbort = () => fail(signal.reason as Error)
    asked.on('error', fail)
    asked.on('close', () => fail(new Failed('the connection was closed without an answer')))
    asked.on('upgrade', () => fail(new Failed('it answered with another protocol than HTTP')))
    asked.on('response', (response: IncomingMessage) => {
      const pieces: Buffer[] = []
      let octets = 0
      answer = { statusCode: response.statusCode ?? 0, pieces }
      response.on('data', (piece: Buffer) => {
        pieces.push(piece)
        octets += piece.length
        if (octets >= longestBodyOctets) fail(new Failed('enough was read'))
      })
      response.on('end', () => fail(new Failed('all was read')))
      response.on('error', fail)
    })
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    asked.end(body)
  })
}

/** At most 10,000 characters, whatever the octets are; without NUL, which no database could store. */
function textOf(pieces: readonly Buffer[]): string {
  return new TextDecoder().decode(Buffer.concat(pieces)).slice(0, longestBody).toWellFormed().replaceAll('\0', '\ufffd')
}
