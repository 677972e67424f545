/**
 * The relay of a crash test: records each message before it answers, with an adjustable delay. Recipients beginning with `refused` are
 * unknown here; those beginning with `later` are accepted at the second attempt.
 */
import { createHash } from 'node:crypto'
import { createWriteStream, type WriteStream } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerAddress } from 'smtp-server'
import { type Clock, pause } from '#base'
import type { AcceptedMessage } from './ledger.ts'
import type { SeededRandom } from './seeded-random.ts'

const host = '127.0.0.1'
const largestMessage = 4_194_304

export interface SinkDeps {
  clock: Clock
  chance: SeededRandom
  ledgerFile: string
  /** The port of an earlier relay that it takes the place of; default: a free one. */
  port?: number
  /** The number before that of its first message, so that several relays have ids of their own; default 0. */
  numberedAfter?: number
}

export class Sink {
  /** Most milliseconds before the reply to a final dot; each reply waits a random part of it. */
  slownessMs = 50
  /** Called at every final dot, before the reply. */
  onDot: (() => void) | undefined
  readonly #deps: SinkDeps
  readonly #ledger: WriteStream
  readonly #server: SMTPServer
  readonly #taken = new Map<string, AcceptedMessage[]>()
  /** Recipients that were refused temporarily. */
  readonly #deferred = new Set<string>()
  #port = 0
  #number = 0
  #total = 0
  #held: { waiting: number; gone: Promise<void> } | undefined

  private constructor(deps: SinkDeps) {
    this.#deps = deps
    this.#number = deps.numberedAfter ?? 0
    this.#ledger = createWriteStream(deps.ledgerFile, { flags: 'a' })
    this.#server = this.#makeServer()
  }

  /** Resolves when it listens. */
  static async start(deps: SinkDeps): Promise<Sink> {
    const sink = new Sink(deps)
    sink.#port = await new Promise<number>((resolve, reject) => {
      sink.#server.once('error', reject)
      const tcp = sink.#server.listen(deps.port ?? 0, host, () => resolve((tcp.address() as AddressInfo).port))
    })
    return sink
  }

  get port(): number {
    return this.#port
  }

  /** By recipient, in the order of their final dots. */
  get taken(): ReadonlyMap<string, AcceptedMessage[]> {
    return this.#taken
  }

  get total(): number {
    return this.#total
  }

  /**
   * Until released, messages that were taken before get no reply. Returns the number of waiting messages and the function that releases
   * them.
   */
  holdRepeats(): { readonly waiting: number; release(): void } {
    const { promise: gone, resolve } = Promise.withResolvers<void>()
    const holding = { waiting: 0, gone }
    this.#held = holding
    return {
      get waiting() {
        return holding.waiting
      },
      release: () => {
        if (this.#held === holding) this.#held = undefined
        resolve()
      },
    }
  }

  forget(): void {
    this.#taken.clear()
    this.#deferred.clear()
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
    await new Promise<void>((resolve) => this.#ledger.end(() => resolve()))
  }

  #makeServer(): SMTPServer {
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['AUTH', 'STARTTLS'],
      disableReverseLookup: true,
      closeTimeout: 100,
      size: largestMessage,
      onRcptTo: ({ address }: SMTPServerAddress, _session, done) => {
        if (address.startsWith('refused')) return done(answer(550, '5.1.1 no such user'))
        if (address.startsWith('later') && !this.#deferred.has(address)) {
          this.#deferred.add(address)
          return done(answer(451, '4.3.0 try again later'))
        }
        done()
      },
      onData: (stream, session, done) => {
        const parts: Buffer[] = []
        stream.on('data', (part: Buffer) => parts.push(part))
        stream.on('end', () => {
          const recipients = session.envelope.rcptTo.map((one) => one.address)
          void this.#take(recipients, Buffer.concat(parts), `${session.id}`, (id) => done(null, `2.0.0 taken as ${id}`))
        })
      },
    })
    // Connections break at any moment here, because the other side is killed.
    server.on('error', () => {})
    return server
  }

  /** Records the message; calls `say` with its id when the reply is due. */
  async #take(recipients: string[], octets: Buffer, connection: string, say: (id: string) => void): Promise<void> {
    const { clock, chance } = this.#deps
    const id = `t${++this.#number}`
    const { messageId, text } = readMessage(octets)
    const isRepeat = recipients.some((recipient) => this.#taken.has(recipient))
    for (const recipient of recipients) {
      const one: AcceptedMessage = { id, recipient, messageId, text, connection, atMs: clock.nowMs() }
      const before = this.#taken.get(recipient)
      if (before) before.push(one)
      else this.#taken.set(recipient, [one])
      this.#total++
      this.#ledger.write(`${JSON.stringify(one)}\n`)
    }
    this.onDot?.()
    if (isRepeat && this.#held) {
      this.#held.waiting++
      await this.#held.gone
    }
    await pause(clock, chance.random() * this.slownessMs)
    say(id)
  }
}

const answer = (responseCode: number, message: string) => Object.assign(new Error(message), { responseCode })

export const textHashOf = (text: string) => createHash('sha256').update(text.replaceAll('\r\n', '\n').trim()).digest('hex')

/** Crash-test messages are plain ASCII text in one part, so no decoding is needed. */
function readMessage(octets: Buffer): { messageId: string; text: string } {
  const message = octets.toString('latin1')
  const end = message.indexOf('\r\n\r\n')
  const header = message.slice(0, end)
  return { messageId: /^message-id:\s*(\S+)/im.exec(header)?.[1] ?? '', text: textHashOf(message.slice(end)) }
}
