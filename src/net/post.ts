/**
 * One HTTP request, POST or GET, to a URL that somebody else has given us. Never rejects, whatever the other side does: the whole is bounded in time,
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

export interface GetRequest {
  url: string
  withinMs: number
  mostOctets: number
}

export interface GetOutcome {
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
  get: Get
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
  const ask = async ({ url, withinMs, ...request }: Asked) => {
    const startedMs = clock.monotonicMs()
    const stop = new AbortController()
    const cancel = clock.after(withinMs, () => stop.abort(new Failed(`no answer within ${withinMs / 1000} s`)))
    let mayHaveArrived = false
    let socket: Socket | undefined
    const told = (answer: Answered | null, error: string | null) => ({
      answer,
      error,
      durationMs: Math.round(clock.monotonicMs() - startedMs),
      mayHaveArrived: answer === null && mayHaveArrived,
    })
    try {
      const target = await unless(stop.signal, look(url))
      if (target.kind !== 'addresses') throw new Failed(target.message)
      socket = await connect(target, withinMs, stop.signal, deps)
      mayHaveArrived = true
      return told(await exchange(socket, target.url, request, stop.signal), null)
    } catch (error) {
      const late = stop.signal.aborted && mayHaveArrived ? '; the request may have arrived' : ''
      return told(null, inWords(error) + late)
    } finally {
      cancel()
      socket?.destroy()
    }
  }
  return {
    look,
    async post(request) {
      const { answer, ...rest } = await ask({ ...request, method: 'POST', mostOctets: longestBodyOctets })
      return { ...rest, statusCode: answer?.statusCode ?? null, body: answer && textOf(answer.body).slice(0, longestBody) }
    },
    async get(request) {
      const { answer, error } = await ask({ ...request, method: 'GET', headers: {}, body: undefined })
      if (!answer) return { statusCode: null, contentType: null, body: null, isWhole: false, error }
      return { ...answer, body: textOf(answer.body), error }
    },
  }
}

interface Asked {
  method: 'POST' | 'GET'
  url: string
  headers: Readonly<Record<string, string>>
  body: Buffer | undefined
  withinMs: number
  /** Of the answer's body; what comes behind is not read. */
  mostOctets: number
}

interface Answered {
  statusCode: number
  contentType: string | null
  body: Buffer
  isWhole: boolean
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
  { method, headers, body, mostOctets }: Omit<Asked, 'url' | 'withinMs'>,
  signal: AbortSignal,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const asked: ClientRequest = httpRequest({
      method,
      path: url.pathname + url.search,
      headers: {
        host: url.host,
        ...(body ? { 'content-length': String(body.length) } : {}),
        'accept-encoding': 'identity',
        ...headers,
      },
      maxHeaderSize: mostHeaderOctets,
      createConnection: () => socket,
    })
    const end = (finish: () => void) => {
      signal.removeEventListener('abort', onAbort)
      finish()
      asked.destroy()
    }
    let answer: { statusCode: number; contentType: string | null; pieces: Buffer[] } | undefined
    const finish = (error: Error, isWhole: boolean) => {
      const told = answer
      end(() => {
        if (!told) return reject(error)
        const { pieces, ...rest } = told
        resolve({ ...rest, body: Buffer.concat(pieces), isWhole })
      })
    }
    const fail = (error: Error) => finish(error, false)
    const onAbort = () => fail(signal.reason as Error)
    asked.on('error', fail)
    asked.on('close', () => fail(new Failed('the connection was closed without an answer')))
    asked.on('upgrade', () => fail(new Failed('it answered with another protocol than HTTP')))
    asked.on('response', (response: IncomingMessage) => {
      const pieces: Buffer[] = []
      let octets = 0
      answer = { statusCode: response.statusCode ?? 0, contentType: response.headers['content-type'] ?? null, pieces }
      response.on('data', (piece: Buffer) => {
        pieces.push(piece)
        octets += piece.length
        if (octets >= mostOctets) fail(new Failed('enough was read'))
      })
      response.on('end', () => finish(new Failed('all was read'), response.complete))
      response.on('error', fail)
    })
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    asked.end(body)
  })
}

/** Without NUL, which no database could store. */
const textOf = (octets: Buffer) => new TextDecoder().decode(octets).toWellFormed().replaceAll('\0', '\ufffd')
