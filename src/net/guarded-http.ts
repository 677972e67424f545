/**
 * HTTP requests to URLs from untrusted parties. A request never rejects, for any behaviour of the peer; its total time and the octets of
 * the response are limited. It connects only to addresses that were looked up once and checked, follows no redirects and decompresses no
 * response. A connection ends with the response, or is kept for the same URL together with its address.
 */
import { type Clock, sanitiseText } from '#base'
import { CostlyHandshakes } from './costly-handshakes.ts'
import { connectHttp, exchange, type HttpConnection, HttpFailure, httpConnectionOn, unless } from './http-connection.ts'
import { findTarget, type TargetDeps, type UrlVerdict } from './resolve-url.ts'

export interface PostRequest {
  url: string
  headers: Readonly<Record<string, string>>
  body: Buffer
  /** For the whole request: lookup, connection and response. */
  withinMs: number
}

export interface PostOutcome {
  /** Null: no HTTP response. */
  statusCode: number | null
  /** The beginning of the response body, as text. */
  body: string | null
  durationMs: number
  /** The reason for the missing response, in words. */
  error: string | null
  /** Without a response: the request was being sent, and may have been read. */
  mayHaveArrived: boolean
  /** The Retry-After header of the response, as received. */
  retryAfter: string | null
}

export interface GetRequest {
  /** GET unless given; the response to HEAD has no body. */
  method?: 'GET' | 'HEAD'
  url: string
  /** Sent with POST instead of GET. */
  body?: Buffer
  headers?: Readonly<Record<string, string>>
  withinMs: number
  /** Limit of the body; octets beyond it are not read. */
  maxOctets: number
}

export interface GetOutcome {
  /** Null: no HTTP response. */
  statusCode: number | null
  contentType: string | null
  body: string | null
  /** The whole body was read. */
  isWhole: boolean
  error: string | null
  /** As in PostOutcome. */
  retryAfter?: string | null
  /** The URL is malformed, or leads to an address that is not allowed; no connection was opened. */
  isRefused?: boolean
}

export type Get = (request: GetRequest) => Promise<GetOutcome>

export interface Post {
  /** Resolves and checks a URL without a request. */
  look(url: string): Promise<UrlVerdict>
  post(request: PostRequest): Promise<PostOutcome>
  /** Uses a connection of its own. */
  get: Get
  /** Closes the kept connections. */
  close(): void
}

export interface PostDeps extends TargetDeps {
  clock: Clock
  /** PEM certificates that replace the system's, for tests. */
  trusted?: string
  /** How long an unused connection is kept; undefined: each request opens its own. */
  keepIdleMs?: number
}

/** The URL itself was refused, before any connection. */
class UrlRefused extends HttpFailure {}

const maxBodyLength = 10_000
const maxErrorLength = 1000
const maxBodyOctets = maxBodyLength * 4
/** After this time the name is looked up again, so that a receiver's change of address takes effect. */
const maxKeptMs = 60_000
/** Limit of unused connections, over all receivers. */
const maxKept = 1000

/** Long because POST and GET share the look-up, the time limit and the connections. */
export function openPost(deps: PostDeps): Post {
  const { clock, keepIdleMs } = deps
  const look = (url: string) => findTarget(url, deps)
  const kept = new KeptConnections(clock, keepIdleMs)
  const costlyHandshakes = new CostlyHandshakes(clock)
  const deadline = (withinMs: number) => {
    const stop = new AbortController()
    const cancel = clock.after(withinMs, () => stop.abort(new HttpFailure(`no response within ${withinMs / 1000} s`)))
    return { signal: stop.signal, cancel }
  }
  const openLine = async (url: string, withinMs: number, signal: AbortSignal, idleMs?: number): Promise<HttpConnection> => {
    const target = await unless(signal, look(url))
    if (target.kind === 'refused' || target.kind === 'malformed') throw new UrlRefused(target.message)
    if (target.kind !== 'addresses') throw new HttpFailure(target.message)
    return httpConnectionOn(await connectHttp(target, withinMs, signal, { ...deps, costlyHandshakes }), target.url, clock, idleMs)
  }

  return {
    look,
    async post(request) {
      const { url, withinMs } = request
      const startedMs = clock.monotonicMs()
      const { signal, cancel } = deadline(withinMs)
      let mayHaveArrived = false
      const outcome = (rest: Pick<PostOutcome, 'statusCode' | 'body' | 'error' | 'retryAfter'>): PostOutcome => ({
        ...rest,
        durationMs: Math.round(clock.monotonicMs() - startedMs),
        mayHaveArrived: rest.statusCode === null && mayHaveArrived,
      })
      const ask = async (line: HttpConnection) => {
        mayHaveArrived = true
        const outgoing = { ...request, method: 'POST' as const, maxOctets: maxBodyOctets, closes: keepIdleMs === undefined }
        const { statusCode, retryAfter, body } = await exchange(line, outgoing, signal)
        kept.put(url, line)
        return outcome({ statusCode, retryAfter, body: sanitiseText(text(body), maxBodyLength), error: null })
      }
      const anew = async () => {
        mayHaveArrived = false
        return ask(await openLine(url, withinMs, signal, keepIdleMs))
      }
      try {
        const line = kept.take(url)
        if (!line) return await anew()
        return await ask(line).catch((error: unknown) => {
          // The peer closed an idle connection at the moment when this request was sent.
          if (signal.aborted) throw error
          return anew()
        })
      } catch (error) {
        const late = signal.aborted && mayHaveArrived ? '; the request may have arrived' : ''
        return outcome({ statusCode: null, body: null, error: inWords(error) + late, retryAfter: null })
      } finally {
        cancel()
        kept.sweepIfFull()
      }
    },
    async get({ method = 'GET', url, headers = {}, body: sent, withinMs, maxOctets }) {
      const { signal, cancel } = deadline(withinMs)
      let line: HttpConnection | undefined
      try {
        line = await openLine(url, withinMs, signal)
        const outgoing = { method: sent ? ('POST' as const) : method, headers, body: sent, maxOctets, closes: true }
        const { body, statusCode, contentType, isWhole, retryAfter } = await exchange(line, outgoing, signal)
        return { statusCode, contentType, isWhole, retryAfter, body: sanitiseText(text(body), maxOctets), error: null }
      } catch (error) {
        const isRefused = error instanceof UrlRefused
        return { statusCode: null, contentType: null, body: null, isWhole: false, error: inWords(error), isRefused }
      } finally {
        cancel()
        line?.end()
      }
    },
    close: () => kept.close(),
  }
}

/** Unused connections by URL: the exact text that was checked when each was opened. */
class KeptConnections {
  readonly #clock: Clock
  readonly #idleMs: number | undefined
  readonly #kept = new Map<string, HttpConnection[]>()
  #count = 0

  /** `idleMs` as `keepIdleMs`. */
  constructor(clock: Clock, idleMs: number | undefined) {
    this.#clock = clock
    this.#idleMs = idleMs
  }

  take(url: string): HttpConnection | undefined {
    const lines = this.#kept.get(url) ?? []
    for (let line = lines.pop(); line; line = lines.pop()) {
      this.#count--
      if (line.alive() && this.#clock.monotonicMs() - line.madeMs < maxKeptMs) return line
      line.end()
    }
    this.#kept.delete(url)
    return undefined
  }

  /** Keeps the connection if there is room; otherwise ends it. */
  put(url: string, line: HttpConnection): void {
    if (this.#idleMs === undefined || this.#count >= maxKept || !line.alive()) return line.end()
    this.#count++
    const lines = this.#kept.get(url)
    if (lines) lines.push(line)
    else this.#kept.set(url, [line])
  }

  sweepIfFull(): void {
    if (this.#count < maxKept) return
    for (const [url, lines] of this.#kept) {
      const alive = lines.filter((line) => line.alive())
      this.#count -= lines.length - alive.length
      if (alive.length > 0) this.#kept.set(url, alive)
      else this.#kept.delete(url)
    }
  }

  close(): void {
    for (const line of [...this.#kept.values()].flat()) line.end()
    this.#kept.clear()
    this.#count = 0
  }
}

const text = (octets: Buffer) => new TextDecoder().decode(octets)

/** The text may quote the peer: a certificate's names, or an invalid header line. */
function inWords(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if (error instanceof HttpFailure) return error.message
  const { code } = error as NodeJS.ErrnoException
  return sanitiseText(code === undefined || error.message.includes(code) ? error.message : `${error.message} (${code})`, maxErrorLength)
}
