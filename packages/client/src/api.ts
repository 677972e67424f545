/**
 * Sends API requests, retries them if that is safe, and reads the responses. Needs only `fetch`, so it runs in Node, in browsers and at the
 * edge.
 */
import { ConnectionError, errorOf, type Refused, TimeoutError } from './errors.ts'
import { type Page, Pages } from './pages.ts'
import { randomKey } from './random.ts'
import { pauseAfter, waitAsked } from './retry.ts'
import { EventStream } from './stream.ts'

/** Renders an element of React to HTML. */
export type RenderReact = (element: unknown) => string | Promise<string>

export interface Settings {
  /** `svc_live_…` or `svc_test_…`. */
  apiKey: string
  /** Ends in `/v1`. */
  baseUrl: string
  /** Number of retries; default 2. */
  maxRetries?: number
  /** Milliseconds for one response; default 60,000. */
  timeoutMs?: number
  /** Renders the elements of `react:` in sends: `render` of `@react-email/render`. */
  render?: RenderReact
  /** The following are for tests and unusual environments. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
  random?: () => number
  now?: () => number
  sleep?: (delayMs: number, signal: AbortSignal | undefined) => Promise<void>
  /** Milliseconds without an octet after which a stream is opened again; default 60,000. */
  silenceMs?: number
}

export interface Options {
  signal?: AbortSignal | undefined
  maxRetries?: number | undefined
  timeoutMs?: number | undefined
}

export interface SendOptions extends Options {
  /** Generated for each call by default, so that a retry never sends twice. Your own key also covers a restart of your program. */
  idempotencyKey?: string | undefined
}

type Query = object
interface RequestInput {
  body?: object
  query?: Query
  options: Options
  headers?: Record<string, string>
}

/** One segment of a path. An empty one, or one of dots only, would lead to another path. */
export function at(part: string | number): string {
  const text = String(part)
  if (/^\.{0,2}$/.test(text)) throw new TypeError(`"${text}" is not an id`)
  return encodeURIComponent(text)
}

const usualTimeoutMs = 60_000
const usualRetries = 2
/** Four of the service's comments. */
const usualSilenceMs = 60_000
/** A longer time would fire at once. */
const maxTimerMs = 2 ** 31 - 1

export class Api {
  readonly #settings: Settings
  readonly #base: string

  constructor(settings: Settings) {
    if (!settings.apiKey) throw new TypeError('apiKey is missing')
    this.#settings = settings
    this.#base = settings.baseUrl.replace(/\/+$/, '')
    if (!/^https?:\/\/.+\/v1$/.test(this.#base)) throw new TypeError('baseUrl must be an http or https URL that ends in /v1')
  }

  /** Returns `data`. */
  async ask<Data>(method: string, path: string, input: RequestInput): Promise<Data> {
    const text = await this.#request(method, path, input, method === 'GET', textOf)
    return (jsonIn(text) as { data: Data }).data
  }

  async send<Data>(path: string, { options, ...input }: RequestInput & { options: SendOptions }): Promise<Data> {
    const headers = { 'idempotency-key': options.idempotencyKey ?? (await randomKey()) }
    const text = await this.#request('POST', path, { ...input, options, headers }, true, textOf)
    return (jsonIn(text) as { data: Data }).data
  }

  pages<Item>(path: string, query: Query, options: Options): Pages<Item> {
    return new Pages(async (page) => {
      const wanted = page === undefined ? query : { ...query, page }
      return jsonIn(await this.text(path, wanted, options)) as Page<Item>
    })
  }

  text(path: string, query: Query, options: Options): Promise<string> {
    return this.#request('GET', path, { query, options }, true, textOf)
  }

  stream(path: string, query: Query, options: Options): EventStream {
    const open = (lastEventId: string | undefined) => {
      const headers = { accept: 'text/event-stream', ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }) }
      return this.#request('GET', path, { query, headers, options }, true, async (answer) => answer)
    }
    const { sleep = pause, random = Math.random, silenceMs = usualSilenceMs } = this.#settings
    return new EventStream(open, { sleep, random, signal: options.signal, silenceMs: Math.min(silenceMs, maxTimerMs) })
  }

  async #request<Read>(
    method: string,
    path: string,
    input: RequestInput,
    isRepeatable: boolean,
    read: (answer: Response) => Promise<Read>,
  ): Promise<Read> {
    const { random = Math.random, now = Date.now, sleep = pause } = this.#settings
    const { signal, maxRetries = this.#settings.maxRetries ?? usualRetries } = input.options
    for (let tries = 0; ; tries++) {
      const came = await this.#once(method, path, input, read)
      if ('read' in came) return came.read
      const answer = 'answer' in came ? came.answer : undefined
      const pauseMs = tries < maxRetries ? pauseAfter(answer, { tries, isRepeatable, nowMs: now(), random }) : undefined
      if (pauseMs === undefined) throw 'error' in came ? came.error : refusalOf(came.answer, came.text, { base: this.#base, nowMs: now() })
      await sleep(pauseMs, signal)
    }
  }

  /** Returns the parsed response, an error response, or the error without response. Throws if the caller aborted it. */
  async #once<Read>(
    method: string,
    path: string,
    { body, query, options, headers }: RequestInput,
    read: (answer: Response) => Promise<Read>,
  ): Promise<{ read: Read } | { answer: Response; text: string } | { error: ConnectionError }> {
    const { apiKey, timeoutMs: usual = usualTimeoutMs, fetch: ask = fetch } = this.#settings
    const { signal, timeoutMs = usual } = options
    signal?.throwIfAborted()
    const stop = new AbortController()
    const giveUp = () => stop.abort(signal?.reason)
    signal?.addEventListener('abort', giveUp, { once: true })
    let isLate = false
    const timer = setTimeout(
      () => {
        isLate = true
        stop.abort()
      },
      Math.min(timeoutMs, maxTimerMs),
    )
    try {
      const answer = await ask(this.#base + path + queryText(query), {
        method,
        headers: {
          authorization: `Bearer ${apiKey}`,
          accept: 'application/json',
          ...(body ? { 'content-type': 'application/json' } : {}),
          ...headers,
        },
        // The key is sent to this address only.
        redirect: 'manual',
        signal: stop.signal,
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
      return answer.ok ? { read: await read(answer) } : { answer, text: await answer.text() }
    } catch (error) {
      signal?.throwIfAborted()
      if (isLate) return { error: new TimeoutError(`no response within ${timeoutMs} ms`, { cause: error }) }
      const why = error instanceof Error ? error.message : String(error)
      return { error: new ConnectionError(`${method} ${path}: ${why}`, { cause: error }) }
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', giveUp)
    }
  }
}

const textOf = (answer: Response) => answer.text()

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // From a proxy.
    throw new ConnectionError(`the answer is not JSON: ${text.slice(0, 200)}`, { cause: error })
  }
}

function queryText(query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const text = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return text === '' ? '' : `?${text}`
}

function refusalOf({ status, headers }: Response, text: string, { base, nowMs }: { base: string; nowMs: number }) {
  const retryAfterMs = waitAsked(headers, nowMs)
  try {
    const { error, meta } = JSON.parse(text) as { error: Omit<Refused, 'status' | 'requestId'>; meta: { requestId: string } }
    return errorOf({ ...error, status, requestId: meta.requestId, retryAfterMs })
  } catch {
    // From a proxy, not from the service.
    const target = redirectTarget(headers, base)
    const message = `status ${status}: ${target === undefined ? text.slice(0, 200) : `redirected to ${target.href}`}`
    const suggestion =
      target === undefined || target.origin === new URL(base).origin
        ? 'Look at what stands between this program and the service'
        : `If the service is at ${target.origin}, use this URL`
    return errorOf({ status, code: 'internal_error', message, suggestion, requestId: headers.get('x-request-id') ?? '', retryAfterMs })
  }
}

/** A redirect is not followed: the key is sent to the address of `base` only. */
function redirectTarget(headers: Headers, base: string): URL | undefined {
  const location = headers.get('location')
  try {
    return location === null ? undefined : new URL(location, base)
  } catch {
    return undefined
  }
}

function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, delayMs)
    if (signal?.aborted) stop()
    signal?.addEventListener('abort', stop, { once: true })
  })
}
