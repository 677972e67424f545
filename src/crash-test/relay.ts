/**
 * The relay of a crash test: records each message before it answers, with an adjustable delay. Recipients beginning with `refused` are
 * unknown here; those beginning with `later` are accepted at the second attempt.
 */
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerAddress } from 'smtp-server'
import { type Clock, pause } from '#base'
import type { AcceptedMessage } from './ledger.ts'
import type { SeededRandom } from './seeded-random.ts'

const host = '127.0.0.1'
const largestMessage = 4_194_304

export interface Sink {
  readonly port: number
  /** By recipient, in the order of their final dots. */
  readonly taken: ReadonlyMap<string, AcceptedMessage[]>
  readonly total: number
  /** Most milliseconds before the reply to a final dot; each reply waits a random part of it. */
  slownessMs: number
  /** Called at every final dot, before the reply. */
  onDot: (() => void) | undefined
  /**
   * Until released, messages that were taken before get no reply. Returns the number of waiting messages and the function that releases
   * them.
   */
  holdRepeats(): { readonly waiting: number; release(): void }
  forget(): void
  close(): Promise<void>
}

export async function startSink(deps: { clock: Clock; chance: SeededRandom; ledgerFile: string }): Promise<Sink> {
  const { clock, chance } = deps
  const ledger = createWriteStream(deps.ledgerFile, { flags: 'a' })
  const taken = new Map<string, AcceptedMessage[]>()
  const deferred = new Set<string>()
  let number = 0
  let total = 0
  let held: { waiting: number; gone: Promise<void> } | undefined

  const take = async (recipients: string[], octets: Buffer, connection: string, say: (id: string) => void): Promise<void> => {
    const id = `t${++number}`
    const { messageId, text } = readMessage(octets)
    const isRepeat = recipients.some((recipient) => taken.has(recipient))
    for (const recipient of recipients) {
      const one: AcceptedMessage = { id, recipient, messageId, text, connection, atMs: clock.nowMs() }
      const before = taken.get(recipient)
      if (before) before.push(one)
      else taken.set(recipient, [one])
      total++
      ledger.write(`${JSON.stringify(one)}\n`)
    }
    sink.onDot?.()
    if (isRepeat && held) {
      held.waiting++
      await held.gone
    }
    await pause(clock, chance.random() * sink.slownessMs)
    say(id)
  }

  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 100,
    size: largestMessage,
    onRcptTo({ address }: SMTPServerAddress, _session, done) {
      if (address.startsWith('refused')) return done(answer(550, '5.1.1 no such user'))
      if (address.startsWith('later') && !deferred.has(address)) {
        deferred.add(address)
        return done(answer(451, '4.3.0 try again later'))
      }
      done()
    },
    onData(stream, session, done) {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        const recipients = session.envelope.rcptTo.map((one) => one.address)
        void take(recipients, Buffer.concat(parts), `${session.id}`, (id) => done(null, `2.0.0 taken as ${id}`))
      })
    },
  })
  // Connections break at any moment here, because the other side is killed.
  server.on('error', () => {})
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject)
    const tcp = server.listen(0, host, () => resolve((tcp.address() as AddressInfo).port))
  })

  const sink: Sink = {
    port,
    taken,
    get total() {
      return total
    },
    slownessMs: 50,
    onDot: undefined,
    holdRepeats() {
      let release = () => {}
      const holding = { waiting: 0, gone: new Promise<void>((resolve) => (release = resolve)) }
      held = holding
      return {
        get waiting() {
          return holding.waiting
        },
        release() {
          if (held === holding) held = undefined
          release()
        },
      }
    },
    forget() {
      taken.clear()
      deferred.clear()
    },
    async close() {
      await new Promise<void>((resolve) => server.close(() => resolve()))
      await new Promise<void>((resolve) => ledger.end(() => resolve()))
    },
  }
  return sink
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
