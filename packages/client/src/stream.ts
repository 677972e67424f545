/**
 * Live events, read with `for await`. After a lost connection the stream resumes after the last event read, so that no event is lost or
 * repeated.
 */
import type { WebhookEvent } from './events.ts'

export interface StreamedEvent {
  /** The position in the log: pass it as `after` to resume from here. */
  id: string
  event: WebhookEvent
}

type Open = (lastEventId: string | undefined) => Promise<Response>
type Sleep = (delayMs: number, signal: AbortSignal | undefined) => Promise<void>

const pauseMs = 500

export class EventStream implements AsyncIterable<StreamedEvent> {
  readonly #open: Open
  readonly #sleep: Sleep
  readonly #signal: AbortSignal | undefined

  constructor(open: Open, sleep: Sleep, signal: AbortSignal | undefined) {
    this.#open = open
    this.#sleep = sleep
    this.#signal = signal
  }

  /** Ends with the signal. Throws a request's errors if it cannot be opened or reopened. */
  async *[Symbol.asyncIterator](): AsyncGenerator<StreamedEvent, void> {
    let lastId: string | undefined
    try {
      for (;;) {
        const answer = await this.#open(lastId)
        for await (const { id, data } of piecesOf(answer, this.#signal)) {
          lastId = id ?? lastId
          if (data !== '' && id !== undefined) yield { id, event: JSON.parse(data) as WebhookEvent }
        }
        await this.#sleep(pauseMs, this.#signal)
      }
    } catch (error) {
      if (!this.#signal?.aborted) throw error
    }
  }
}

interface Piece {
  id: string | undefined
  data: string
}

/** The fields of server-sent events that the service uses, until the connection ends for any reason. */
async function* piecesOf({ body }: Response, signal: AbortSignal | undefined): AsyncGenerator<Piece, void> {
  if (!body) return
  const reader = body.getReader()
  const stop = () => void reader.cancel().catch(() => undefined)
  signal?.addEventListener('abort', stop, { once: true })
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
      if (done || signal?.aborted) return
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) yield pieceOf(block)
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    stop()
  }
}

function pieceOf(block: string): Piece {
  let id: string | undefined
  const data: string[] = []
  for (const line of block.split('\n')) {
    const [, name, value = ''] = /^(\w+): ?(.*)$/.exec(line) ?? []
    if (name === 'id') id = value
    if (name === 'data') data.push(value)
  }
  return { id, data: data.join('\n') }
}
