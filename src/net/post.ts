/**
 * One HTTP POST to a URL that somebody else has given us. Never rejects, whatever the other side does: the whole is bounded in time,
 * the answer in octets. It connects to addresses that were looked up once and checked, and to no others; redirects are not followed,
 * and nothing is decompressed. A connection ends with the answer, or is kept for the same URL, and with it the address it was made to.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Client, errors } from 'undici'
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
  /** What the answer asks to wait before the next request: the header as it came. */
  retryAfter: string | null
}

export interface GetRequest {
  url: string
  withinMs: number
  /** Of the body; what comes behind is not read. */
  mostOctets: number
}

export interface GetOutcome {
  /** Null: no HTTP answer. */
  statusCode: number | null
  contentType: string | null
  body: string | null
  /** The whole body was read. */
  isWhole: boolean
  error: string | null
}

export type Get = (request: GetRequest) => Promise<GetOutcome>

export interface Post {
  /** Where a URL would lead now. */
  look(url: string): Promise<UrlVerdict>
  post(request: PostRequest): Promise<PostOutcome>
  /** On a connection of its own. */
  get: Get
  /** Ends the connections that are kept. */
  close(): void
}

export interface PostDeps extends TargetDeps {
  clock: Clock
  /** PEM certificates to trust instead of the system's: for tests. */
  trusted?: string
  /** How long an unused connection is kept; without, each request has one of its own. */
  keepIdleMs?: number
}

interface Asked {
  method: 'POST' | 'GET'
  headers: Readonly<Record<string, string>>
  body?: Buffer | undefined
  /** Of the answer's body; what comes behind is not read. */
  mostOctets: number
  /** The connection is not used again. */
  closes: boolean
}

interface Answered {
  statusCode: number
  contentType: string | null
  retryAfter: string | null
  body: Buffer
  isWhole: boolean
}

/** One connection with what speaks HTTP on it. */
interface Line {
  client: Client
  url: URL
  madeMs: number
  alive(): boolean
  end(): void
}

const mostAddresses = 4
const longestBody = 10_000
const longestError = 1000
const longestBodyOctets = longestBody * 4
const mostHeaderOctets = 16_384
/** After that a name is looked up again, so that a receiver that moves is followed. */
const longestKeptMs = 60_000
/** Unused connections, to all receivers together. */
const mostKept = 1000

class Failed extends Error {}

export function openPost(deps: PostDeps): Post {
  const { clock, keepIdleMs } = deps
  const look = (url: string) => findTarget(url, deps)
  /** Unused connections by URL: the very text that was checked when each was made. */
  const kept = new Map<string, Line[]>()
  let keptCount = 0

  const take = (url: string): Line | undefined => {
    const lines = kept.get(url) ?? []
    for (let line = lines.pop(); line; line = lines.pop()) {
      keptCount--
      if (line.alive() && clock.monotonicMs() - line.madeMs < longestKeptMs) return line
      line.end()
    }
    kept.delete(url)
    return undefined
  }
  const keep = (url: string, line: Line) => {
    if (keepIdleMs === undefined || keptCount >= mostKept || !line.alive()) return line.end()
    keptCount++
    const lines = kept.get(url)
    if (lines) lines.push(line)
    else kept.set(url, [line])
  }
  const sweep = () => {
    for (const [url, lines] of kept) {
      const alive = lines.filter((line) => line.alive())
      keptCount -= lines.length - alive.length
      if (alive.length > 0) kept.set(url, alive)
      else kept.delete(url)
    }
  }

  return {
    look,
    async post(request) {
      const { url, withinMs } = request
      const startedMs = clock.monotonicMs()
      const stop = new AbortController()
      const cancel = clock.after(withinMs, () => stop.abort(new Failed(`no answer within ${withinMs / 1000} s`)))
      let mayHaveArrived = false
      const outcome = (rest: Pick<PostOutcome, 'statusCode' | 'body' | 'error' | 'retryAfter'>): PostOutcome => ({
        ...rest,
        durationMs: Math.round(clock.monotonicMs() - startedMs),
        mayHaveArrived: rest.statusCode === null && mayHaveArrived,
      })
      const ask = async (line: Line) => {
        mayHaveArrived = true
        const asked = { ...request, method: 'POST' as const, mostOctets: longestBodyOctets, closes: keepIdleMs === undefined }
        const { statusCode, retryAfter, body } = await exchange(line, asked, stop.signal)
        keep(url, line)
        return outcome({ statusCode, retryAfter, body: storable(body, longestBody), error: null })
      }
      const anew = async () => {
        mayHaveArrived = false
        const target = await unless(stop.signal, look(url))
        if (target.kind !== 'addresses') throw new Failed(target.message)
        return ask(lineOn(await connect(target, withinMs, stop.signal, deps), target.url, clock, keepIdleMs))
      }
      try {
        const line = take(url)
        if (!line) return await anew()
        return await ask(line).catch((error: unknown) => {
          // The other side closes what it has not used for a while, and this request crossed with that.
          if (stop.signal.aborted) throw error
          return anew()
        })
      } catch (error) {
        const late = stop.signal.aborted && mayHaveArrived ? '; the request may have arrived' : ''
        return outcome({ statusCode: null, body: null, error: inWords(error) + late, retryAfter: null })
      } finally {
        cancel()
        if (keptCount >= mostKept) sweep()
      }
    },
    async get({ url, withinMs, mostOctets }) {
      const stop = new AbortController()
      const cancel = clock.after(withinMs, () => stop.abort(new Failed(`no answer within ${withinMs / 1000} s`)))
      let line: Line | undefined
      try {
        const target = await unless(stop.signal, look(url))
        if (target.kind !== 'addresses') throw new Failed(target.message)
        line = lineOn(await connect(target, withinMs, stop.signal, deps), target.url, clock)
        const asked = { method: 'GET' as const, headers: {}, mostOctets, closes: true }
        const { body, statusCode, contentType, isWhole } = await exchange(line, asked, stop.signal)
        return { statusCode, contentType, isWhole, body: storable(body, mostOctets), error: null }
      } catch (error) {
        return { statusCode: null, contentType: null, body: null, isWhole: false, error: inWords(error) }
      } finally {
        cancel()
        line?.end()
      }
    },
    close() {
      for (const line of [...kept.values()].flat()) line.end()
      kept.clear()
      keptCount = 0
    },
  }
}

/** HTTP on a connection that was made already; when that is lost, no other is made in its place. */
function lineOn(socket: Socket, url: URL, clock: Clock, keepIdleMs = 1): Line {
  let given = false
  const client = new Client(url.origin, {
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: mostHeaderOctets,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: keepIdleMs,
    keepAliveMaxTimeout: keepIdleMs,
    connect: (_, done) => {
      if (given || socket.destroyed) return done(new Failed('the connection was closed'), null)
      given = true
      // Not at once: undici waits for ever for what it is handed while it asks.
      queueMicrotask(() => done(null, socket))
    },
  })
  const end = () => {
    socket.destroy()
    client.destroy().catch(() => undefined)
  }
  return { client, url, madeMs: clock.monotonicMs(), alive: () => !socket.destroyed && socket.writable, end }
}

/** It may quote the other side: a certificate's names, a line that is no header. */
function inWords(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown trouble'
  if (error instanceof Failed) return error.message
  const { code } = error as NodeJS.ErrnoException
  return storable(code === undefined || error.message.includes(code) ? error.message : `${error.message} (${code})`, longestError)
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
function exchange(line: Line, { method, headers, body, mostOctets, closes }: Asked, signal: AbortSignal): Promise<Answered> {
  return new Promise((resolve, reject) => {
    let answer: Pick<Answered, 'statusCode' | 'contentType' | 'retryAfter'> | undefined
    const pieces: Buffer[] = []
    let octets = 0
    const settle = (error: Error | undefined) => {
      signal.removeEventListener('abort', onAbort)
      if (answer) resolve({ ...answer, body: Buffer.concat(pieces), isWhole: error === undefined })
      else reject(error ?? new Failed('it answered without a status'))
      // What is left of an answer would be taken for the next one.
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
        onRequestUpgrade: () => settle(new Failed('it answered with another protocol than HTTP')),
        onResponseStart(_, statusCode, received) {
          if (statusCode < 200) return
          const [retryAfter = null] = [received['retry-after']].flat()
          const [contentType = null] = [received['content-type']].flat()
          answer = { statusCode, contentType, retryAfter }
        },
        onResponseData(_, piece) {
          pieces.push(piece)
          octets += piece.length
          if (octets >= mostOctets) settle(new Failed('enough was read'))
        },
        onResponseEnd: () => settle(undefined),
        onResponseError: (_, error) =>
          settle(error instanceof errors.SocketError ? new Failed('the connection was closed without an answer') : error),
      },
    )
  })
}

/** At most so many characters, whatever the octets were; without NUL, which no database could store. */
const storable = (given: Buffer | string, longest: number) =>
  (typeof given === 'string' ? given : new TextDecoder().decode(given)).slice(0, longest).toWellFormed().replaceAll('\0', '\ufffd')
