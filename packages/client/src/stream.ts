/**
 * Live events, read with `for await`. After a lost connection the stream resumes after the last event read, so that no event is lost or
 * repeated, however long the service is away.
 */
import { ApiError, ConnectionError, PostriderError } from './errors.ts'
import type { WebhookEvent } from './events.ts'

export interface StreamedEvent {
  /** The position in the log: pass it as `after` to resume from here. */
  id: string
  event: WebhookEvent
}

type Open = (lastEventId: string | undefined) => Promise<Response>

interface StreamSettings {
  sleep: (delayMs: number, signal: AbortSignal | undefined) => Promise<void>
  random: () => number
  signal: AbortSignal | undefined
  /** Milliseconds without an octet after which a connection counts as lost. */
  silenceMs: number
}

const firstPauseMs = 500
const maxPauseMs = 30_000

export class EventStream implements AsyncIterable<StreamedEvent> {
  readonly #open: Open
  readonly #settings: StreamSettings

  constructor(open: Open, settings: StreamSettings) {
    this.#open = open
    this.#settings = settings
  }

  /** Ends with the signal. Throws a request's errors if the stream cannot be opened, or if a later answer is a refusal or no event stream. */
  async *[Symbol.asyncIterator](): AsyncGenerator<StreamedEvent, void> {
    const { sleep, random, signal } = this.#settings
    let lastId: string | undefined
    let hasOpened = false
    let failures = 0
    try {
      for (;;) {
        const answer = await this.#open(lastId).catch((error: unknown) => {
          if (!hasOpened || !mayPass(error)) throw error
          return undefined
        })
        if (answer) {
          hasOpened = true
          for await (const { id, data } of piecesOf(streamIn(answer), this.#settings)) {
            failures = 0
            lastId = id ?? lastId
            if (data !== '' && id !== undefined) yield { id, event: JSON.parse(data) as WebhookEvent }
          }
        }
        await sleep(Math.min(maxPauseMs, firstPauseMs * 2 ** failures++) * (0.5 + random() / 2), signal)
      }
    } catch (error) {
      if (!signal?.aborted) throw error
    }
  }
}

const mayPass = (error: unknown) =>
  error instanceof ConnectionError || (error instanceof ApiError && (error.status >= 500 || error.status === 429))

function streamIn({ headers, body }: Response): ReadableStream<Uint8Array> {
  if (body && /^text\/event-stream\b/i.test(headers.get('content-type') ?? '')) return body
  void body?.cancel().catch(() => undefined)
  throw new PostriderError('the answer is not an event stream. Look at what stands between this program and the service')
}

interface Piece {
  id: string | undefined
  data: string
}

/** The fields of server-sent events that the service uses, until the connection ends for any reason. */
async function* piecesOf(body: ReadableStream<Uint8Array>, { signal, silenceMs }: StreamSettings): AsyncGenerator<Piece, void> {
  const reader = body.getReader()
  const stop = () => void reader.cancel().catch(() => undefined)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      // The service sends a comment every 15 seconds. Without this timer, a connection that breaks silently would never end.
      const timer = setTimeout(stop, silenceMs)
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
      clearTimeout(timer)
      if (done || signal?.aborted) return
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        yield pieceOf(block)
        if (signal?.aborted) return
      }
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    stop()
  }
}

/** Only line feeds end a line: JSON may contain U+2028 and U+2029. */
function pieceOf(block: string): Piece {
  let id: string | undefined
  const data: string[] = []
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon))
    const value = line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'id') id = value
    if (name === 'data') data.push(value)
  }
  return { id, data: data.join('\n') }
}
