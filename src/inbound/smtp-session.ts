/**
 * One client's SMTP session: the library's connection with additions. The whole stream is strict, replies use the contract's codes, and
 * time and errors are bounded.
 */
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { SMTPConnection, type SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js'
import type { SMTPServer } from 'smtp-server/lib/smtp-server.js'
import type { SMTPStream } from 'smtp-server/lib/smtp-stream.js'
import type { Clock } from '#base'
import { type StreamFault, StrictStream } from './strict-stream.ts'

/** RFC 4954 section 4.5.3 requires 12,288 octets for AUTH. */
const maxCommandOctets = 16_384

export interface ConversationBounds {
  /** Until the client's first command. */
  firstMs: number
  /** Between two steps of a transaction (RFC 5321 section 4.5.3.2.7). */
  stepMs: number
  /** For a whole message. */
  messageMs: number
  /** From the beginning, or the last accepted message, to the beginning of the next one. */
  sessionMs: number
  /** Error replies before the session is closed. */
  errors: number
  /** Otherwise the greeting is delayed; a client that talks before it is not a mail server. */
  greetAtOnce: boolean
}

const startsWithCode = /^[245]\.\d{1,3}\.\d{1,3} /

export class Conversation extends SMTPConnection {
  readonly #clock: Clock
  readonly #bounds: ConversationBounds
  readonly #upgraded: (plain: Socket) => void
  /** A line for the EHLO reply. */
  readonly #extension: (() => string) | undefined
  #errors = 0
  #sinceMs: number
  /** The time limit ended while the server was slow to answer. */
  #isOverdue = false
  #cancel = () => {}

  constructor(
    server: SMTPServer,
    socket: Socket | TLSSocket,
    options: SMTPConnectionOptions | null | undefined,
    facts: { clock: Clock; bounds: ConversationBounds; extension: (() => string) | undefined; upgraded: (plain: Socket) => void },
  ) {
    super(server, socket, options)
    this.#clock = facts.clock
    this.#bounds = facts.bounds
    this.#upgraded = facts.upgraded
    this.#extension = facts.extension
    this.#sinceMs = this.#clock.monotonicMs()
    this.allow('firstMs')
  }

  /** A message has been accepted. */
  accepted(): void {
    this.#sinceMs = this.#clock.monotonicMs()
  }

  /** Sets the time limit of the next step. A message that has begun may go on longer than the session. */
  allow(step: 'firstMs' | 'stepMs' | 'messageMs'): void {
    // DATA may come in one packet with the command before it, whose step ends after the message has begun.
    if (step === 'stepMs' && this._parser && this._parser._dataMode) return
    this.#cancel()
    this.#isOverdue = false
    if (this._closed || this._closing) return
    const end = () => {
      // While the server is slow to answer, the client's time does not run out: the answer sets the next limit.
      if (this._handlerPending || (this._dataStream && this._parser && !this._parser._dataMode)) this.#isOverdue = true
      else this.#endSlow()
    }
    const leftMs = this.#sinceMs + this.#bounds.sessionMs - this.#clock.monotonicMs()
    const limitMs = step === 'messageMs' ? this.#bounds.messageMs : Math.max(0, Math.min(this.#bounds[step], leftMs))
    this.#cancel = this.#clock.after(limitMs, end)
  }

  /** Ends the session if its time limit ended meanwhile, after an answer that sets no new one. */
  endIfOverdue(): void {
    if (this.#isOverdue) this.#endSlow()
  }

  #endSlow(): void {
    this.send(421, '4.4.2 Too slow, closing connection')
  }

  /** Ends the session unless a transaction has been fully received, which is still answered. */
  leaveUnlessBusy(): void {
    if (!this._dataStream && !this._handlerPending && !this._closing) this.send(421, '4.3.2 Shutting down, try again later')
  }

  override init(): void {
    if (!this.#bounds.greetAtOnce) return super.init()
    this._setListeners(() => this.connectionReady())
  }

  /** The library removes all listeners from the socket that TLS uses, including those of other owners. */
  override upgrade(callback: () => void, secureCallback?: () => void): void {
    const plain = this._socket
    super.upgrade(callback, secureCallback)
    this.#upgraded(plain)
  }

  override _createParser(): SMTPStream {
    const parser = new StrictStream(maxCommandOctets, (fault) => this.#breakOff(fault))
    parser.oncommand = (command, next) => this._onCommand(command, next)
    parser.on('error', (error) => this.send(421, `4.5.2 ${error.message}`))
    return parser
  }

  #breakOff(fault: StreamFault): void {
    if (fault === 'content before 354') this.send(503, '5.5.0 Content sent before the 354 reply')
    else if (this._dataStream) this.send(550, '5.6.0 Message has a bare CR or LF, lines must end with CRLF')
    else this.send(500, '5.5.2 Command has a bare CR or LF, lines must end with CRLF')
    this.close()
  }

  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    const reply = this.#inOurWords(code, data, context)
    const isCoded = typeof reply.data === 'string' && startsWithCode.test(reply.data)
    super.send(reply.code, reply.data, isCoded ? false : context)
    if (code < 400 || code === 421) return
    this.#errors++
    if (this.#errors > this.#bounds.errors) super.send(421, '4.7.0 Too many errors, closing connection', false)
  }

  #inOurWords(code: number, data: string | string[] | null | undefined, context: string | false | undefined) {
    // A client that sees AUTH before TLS may send the password unencrypted.
    if (Array.isArray(data)) {
      const offered = this.secure ? data : data.filter((line) => !line.startsWith('AUTH '))
      return { code, data: code === 250 && this.#extension ? [...offered, this.#extension()] : offered }
    }
    if (code === 538 || (code === 530 && !this.secure)) return { code: 530, data: '5.7.0 Must issue a STARTTLS command first' }
    if (code === 501 && context === 'MAILBOX_SYNTAX_ERROR') return { code: 553, data: '5.1.3 Invalid recipient address' }
    return { code, data }
  }

  override _onClose(): void {
    this.#cancel()
    super._onClose()
  }

  override close(): void {
    this.#cancel()
    super.close()
  }
}
