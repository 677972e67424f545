/**
 * The tools of a service on standard input and output. Every request that came before the end of the input is answered: the library drops
 * those that run when its own input ends, so it learns of the end after the last answer.
 */
import { Readable } from 'node:stream'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import type { Clock } from '#base'
import { makeServer } from './mcp-server.ts'
import { openRemoteTools } from './remote-tools.ts'

/** Longer than the slowest tool takes. */
const maxWaitMs = 45_000

/** Serves until the input ends and the requests in it are answered. */
export async function serveOnStdio({ version, ...service }: { url: string; key: string; version: string; clock: Clock }): Promise<void> {
  const { serveStdio, StdioServerTransport } = await import('@modelcontextprotocol/server/stdio')
  const source = openRemoteTools({ ...service, agent: `postrider-mcp/${version}` })
  const open = new OpenRequests(service.clock)
  const input = Readable.from(untilAnswered(process.stdin, open), { objectMode: false })
  const transport = counted(new StdioServerTransport(input), open)
  await new Promise<void>((resolve) => {
    input.once('end', resolve).once('close', resolve)
    serveStdio(() => makeServer(version, source), { transport })
  })
}

async function* untilAnswered(octets: AsyncIterable<Buffer>, open: OpenRequests): AsyncGenerator<Buffer> {
  yield* octets
  await open.allAnswered()
}

/** The requests without an answer. */
class OpenRequests {
  readonly #ids = new Set<unknown>()
  readonly #clock: Clock
  #emptied = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
  }

  receive(message: JSONRPCMessage): void {
    if (!('method' in message)) return
    // A subscription is answered at its end only.
    if ('id' in message && !message.method.startsWith('subscriptions/')) this.#ids.add(message.id)
    // A cancelled request has no answer.
    else if (message.method === 'notifications/cancelled') this.#remove(message.params?.requestId)
  }

  sent(message: JSONRPCMessage): void {
    if (!('method' in message)) this.#remove(message.id)
  }

  clear(): void {
    this.#ids.clear()
    this.#emptied()
  }

  async allAnswered(): Promise<void> {
    // The transport reads the last octets before the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    if (this.#ids.size === 0) return
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(maxWaitMs, resolve)
      this.#emptied = () => {
        cancel()
        resolve()
      }
    })
  }

  #remove(id: unknown): void {
    this.#ids.delete(id)
    if (this.#ids.size === 0) this.#emptied()
  }
}

function counted(inner: Transport, open: OpenRequests): Transport {
  const outer: Transport = {
    start: () => inner.start(),
    close: () => inner.close(),
    send: (message, options) => inner.send(message, options).finally(() => open.sent(message)),
  }
  inner.onmessage = (message, extra) => {
    open.receive(message)
    outer.onmessage?.(message, extra)
  }
  inner.onerror = (error) => outer.onerror?.(error)
  inner.onclose = () => {
    open.clear()
    outer.onclose?.()
  }
  return outer
}
