/** A reader of server-sent events: connects, reads on request, and keeps the received events. */

export interface StreamedEvent {
  id: string
  event: string
  data: { event: string; timestamp: number; uuid: string; tenant_id: string; payload: Record<string, never> }
}

export interface EventStream extends AsyncDisposable {
  status: number
  headers: Headers
  text: () => string
  told: () => StreamedEvent[]
  /** The id from which to continue, whether or not it came with an event. */
  lastId: () => string
  /** Resolves when the server has ended the stream: 'end', or the error. */
  ended: Promise<string>
  close(): Promise<void>
}

/** `path` is below /v1. */
export async function openEventStream(port: number, path: string, key: string, headers: Record<string, string> = {}): Promise<EventStream> {
  const closing = new AbortController()
  const answer = await fetch(`http://127.0.0.1:${port}/v1${path}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
    signal: closing.signal,
  })
  let text = ''
  const read = async () => {
    const decoder = new TextDecoder()
    try {
      for await (const piece of answer.body as ReadableStream<Uint8Array>) text += decoder.decode(piece, { stream: true })
      return 'end'
    } catch (error) {
      return error instanceof Error ? error.message : 'trouble'
    }
  }
  const ended = read()
  const blocks = () =>
    text
      .split('\n\n')
      .slice(0, -1)
      .map((block) => Object.fromEntries(block.split('\n').map((line) => /^(\w*): (.*)$/.exec(line)?.slice(1) ?? [line, ''])))
  const close = async () => {
    closing.abort()
    await ended
  }
  return {
    status: answer.status,
    headers: answer.headers,
    text: () => text,
    told: () =>
      blocks().flatMap(({ id, event, data }) => (data === undefined ? [] : [{ id, event, data: JSON.parse(data) } as StreamedEvent])),
    lastId: () => blocks().findLast(({ id }) => id !== undefined)?.id ?? '',
    ended,
    close,
    [Symbol.asyncDispose]: close,
  }
}
