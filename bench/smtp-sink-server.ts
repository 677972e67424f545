/**
 * A fast SMTP server that accepts every message, unless the behaviour that it is given says otherwise. It keeps no message: the content is
 * scanned for its end, and collected only where the behaviour asks for it, up to a limit.
 */
import { createServer, type Server, type Socket } from 'node:net'

const end = Buffer.from('\r\n.\r\n')
const maxCollectedOctets = 262_144

export interface SinkBehaviour {
  /** The reply to RCPT, without its line end; undefined accepts. */
  recipient?(line: string): string | undefined
  /** Milliseconds between the end of a message and its reply, by its last recipient. */
  delayMs?(line: string): number
  /** Called for each accepted message, before its reply. */
  accepted(): void
  /** Whether the next message's content is wanted; `content` then receives it, without the end. */
  wantsContent?(): boolean
  content?(octets: Buffer): void
}

/** One connection. */
class Session {
  readonly #socket: Socket
  readonly #behaviour: SinkBehaviour
  /** An incomplete line, or the last octets of content: the end may be split over packets. */
  #rest: Buffer = Buffer.alloc(0)
  #collected: Buffer[] | undefined
  #collectedOctets = 0
  #inData = false
  #isWaiting = false
  #recipientLine = ''

  constructor(socket: Socket, behaviour: SinkBehaviour) {
    this.#socket = socket
    this.#behaviour = behaviour
    socket.write('220 sink.test ESMTP\r\n')
    socket.on('data', (packet) => {
      this.#rest = this.#rest.length === 0 ? packet : Buffer.concat([this.#rest, packet])
      if (!this.#isWaiting) this.#read()
    })
  }

  #read(): void {
    let input = this.#rest
    let replies = ''
    for (;;) {
      if (this.#inData) {
        const at = input.indexOf(end)
        if (at < 0) {
          const kept = Math.max(0, input.length - end.length + 1)
          this.#collect(input.subarray(0, kept))
          input = input.subarray(kept)
          break
        }
        this.#collect(input.subarray(0, at))
        input = input.subarray(at + end.length)
        this.#inData = false
        this.#endMessage()
        const delayMs = this.#behaviour.delayMs?.(this.#recipientLine) ?? 0
        if (delayMs > 0) {
          this.#rest = input
          this.#replyLater(replies, delayMs)
          return
        }
        replies += '250 2.0.0 Ok\r\n'
        continue
      }
      const at = input.indexOf('\r\n')
      if (at < 0) break
      const line = input.toString('latin1', 0, at)
      input = input.subarray(at + 2)
      const reply = this.#reply(line)
      replies += `${reply}\r\n`
      if (reply.startsWith('221')) {
        this.#socket.end(replies)
        return
      }
    }
    this.#rest = input
    if (replies !== '') this.#socket.write(replies)
  }

  #reply(line: string): string {
    const verb = line.slice(0, 4).toUpperCase()
    if (verb === 'EHLO') return '250-sink.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8'
    if (verb === 'QUIT') return '221 bye'
    if (verb === 'RCPT') {
      const refused = this.#behaviour.recipient?.(line)
      if (refused === undefined) this.#recipientLine = line
      return refused ?? '250 Ok'
    }
    if (verb === 'MAIL') this.#recipientLine = ''
    if (verb !== 'DATA') return '250 Ok'
    if (this.#recipientLine === '') return '503 5.5.1 no recipient was accepted'
    this.#inData = true
    if (this.#behaviour.wantsContent?.()) this.#collected = []
    return '354 go'
  }

  #collect(octets: Buffer): void {
    if (!this.#collected || this.#collectedOctets + octets.length > maxCollectedOctets) return
    this.#collected.push(octets)
    this.#collectedOctets += octets.length
  }

  #endMessage(): void {
    this.#behaviour.accepted()
    if (this.#collected) this.#behaviour.content?.(Buffer.concat(this.#collected))
    this.#collected = undefined
    this.#collectedOctets = 0
  }

  #replyLater(before: string, delayMs: number): void {
    this.#isWaiting = true
    if (before !== '') this.#socket.write(before)
    setTimeout(() => {
      this.#isWaiting = false
      if (this.#socket.destroyed) return
      this.#socket.write('250 2.0.0 Ok\r\n')
      this.#read()
    }, delayMs)
  }
}

/** Listens on a free port of the loopback address; `listening` receives the port. */
export function startSinkServer(behaviour: SinkBehaviour, listening: (port: number) => void): Server {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => undefined)
    new Session(socket, behaviour)
  })
  return server.listen(0, '127.0.0.1', () => listening((server.address() as { port: number }).port))
}
