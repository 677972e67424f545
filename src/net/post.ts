/**
 * One HTTP POST to a URL that somebody else has given us. Never rejects, whatever the other side does: the whole is bounded in time,
 * the answer in octets. It connects to addresses that were looked up once and checked, and to no others; redirects are not followed,
 * and nothing is decompressed. A connection ends with the answer, or is kept for the same URL, and with it the address it was made to.
 */
import { type Clock, storable } from '#base'
import { connect, exchange, Failed, type Line, lineOn, unless } from './line.ts'
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

const longestBody = 10_000
const longestError = 1000
const longestBodyOctets = longestBody * 4
/** After that a name is looked up again, so that a receiver that moves is followed. */
const longestKeptMs = 60_000
/** Unused connections, to all receivers together. */
const mostKept = 1000

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

  const deadline = (withinMs: number) => {
    const stop = new AbortController()
    const cancel = clock.after(withinMs, () => stop.abort(new Failed(`no answer within ${withinMs / 1000} s`)))
    return { signal: stop.signal, cancel }
  }
  const openLine = async (url: string, withinMs: number, signal: AbortSignal, idleMs?: number): Promise<Line> => {
    const target = await unless(signal, look(url))
    if (target.kind !== 'addresses') throw new Failed(target.message)
    return lineOn(await connect(target, withinMs, signal, deps), target.url, clock, idleMs)
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
      const ask = async (line: Line) => {
        mayHaveArrived = true
        const asked = { ...request, method: 'POST' as const, mostOctets: longestBodyOctets, closes: keepIdleMs === undefined }
        const { statusCode, retryAfter, body } = await exchange(line, asked, signal)
        keep(url, line)
        return outcome({ statusCode, retryAfter, body: storable(text(body), longestBody), error: null })
      }
      const anew = async () => {
        mayHaveArrived = false
        return ask(await openLine(url, withinMs, signal, keepIdleMs))
      }
      try {
        const line = take(url)
        if (!line) return await anew()
        return await ask(line).catch((error: unknown) => {
          // The other side closes what it has not used for a while, and this request crossed with that.
          if (signal.aborted) throw error
          return anew()
        })
      } catch (error) {
        const late = signal.aborted && mayHaveArrived ? '; the request may have arrived' : ''
        return outcome({ statusCode: null, body: null, error: inWords(error) + late, retryAfter: null })
      } finally {
        cancel()
        if (keptCount >= mostKept) sweep()
      }
    },
    async get({ url, withinMs, mostOctets }) {
      const { signal, cancel } = deadline(withinMs)
      let line: Line | undefined
      try {
        line = await openLine(url, withinMs, signal)
        const asked = { method: 'GET' as const, headers: {}, mostOctets, closes: true }
        const { body, statusCode, contentType, isWhole } = await exchange(line, asked, signal)
        return { statusCode, contentType, isWhole, body: storable(text(body), mostOctets), error: null }
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

const text = (octets: Buffer) => new TextDecoder().decode(octets)

/** It may quote the other side: a certificate's names, a line that is no header. */
function inWords(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown trouble'
  if (error instanceof Failed) return error.message
  const { code } = error as NodeJS.ErrnoException
  return storable(code === undefined || error.message.includes(code) ? error.message : `${error.message} (${code})`, longestError)
}
