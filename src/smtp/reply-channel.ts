/**
 * A socket on which SMTP replies are awaited in order, each within its time limit, with or without TLS. It does not interpret replies.
 * Promises: an unexpected reply ends the channel, unless it is ignored; the end of a channel is reported once; no event of the socket
 * throws.
 */
import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import type { Clock } from '#base'
import { certificatesOf } from '#net'
import { openReplyReader, type ReplyReader } from './reply-parser.ts'
import type { Failure, Reply, SmtpLimits } from './types.ts'

/** The reason for the end of a channel. */
export interface ConnectionLost {
  kind: Failure['kind']
  message: string
  /** The unexpected reply that ended it. */
  reply?: Reply
}

/** The owner of a channel; `ended` is called once, `drained` whenever all written octets have left. */
export interface ChannelListener {
  ended(reason: ConnectionLost): void
  drained?(): void
}

/** The result of a handshake. */
export interface TlsSession {
  version: string
  cipher: string
  /** The fault that the usual verification finds in the peer's certificate, in words; undefined if it is valid. */
  complaint: string | undefined
  /** As sent by the peer, its own certificate first, and at most 20. */
  certificates(): readonly X509Certificate[]
}

interface Expectation {
  what: string
  withinMs: number
  take: (reply: Reply) => void
}

const quitWithinMs = 5000

export class Channel {
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>
  readonly #plain: Socket
  readonly #limits: SmtpLimits
  readonly #deadline: Deadline
  readonly #awaited: Expectation[] = []
  /** The plain socket, or TLS on it. */
  #socket: Socket
  #reader: ReplyReader
  #listener: ChannelListener = { ended() {} }
  #isStray: (reply: Reply) => boolean = () => false
  #broken: ConnectionLost | undefined
  #isSecure = false
  #isQuitting = false
  #isDiscarding = false

  constructor(plain: Socket, limits: SmtpLimits, clock: Clock) {
    this.#plain = plain
    this.#socket = plain
    this.#limits = limits
    this.#deadline = new Deadline(clock, (what) => this.end({ kind: 'timeout', message: `timed out waiting for ${what}` }))
    this.#reader = this.#openReader()
    this.#attach(plain)
    plain.setNoDelay(true)
    this.closed = new Promise((resolve) => (plain.destroyed ? resolve() : plain.once('close', () => resolve())))
  }

  /** Octets received so far, those of TLS itself included. */
  get octetsRead(): number {
    return this.#plain.bytesRead
  }

  get secure(): boolean {
    return this.#isSecure
  }

  get broken(): ConnectionLost | undefined {
    return this.#broken
  }

  listen(listener: ChannelListener): void {
    this.#listener = listener
  }

  /** Returns false when the peer reads too slowly: wait for `drained`. */
  write(...octets: Buffer[]): boolean {
    if (this.#broken) return true
    const socket = this.#socket
    socket.cork()
    for (const part of octets) if (part.length > 0) socket.write(part)
    socket.uncork()
    return !socket.writableNeedDrain
  }

  /**
   * Expects the next reply not yet awaited; its time limit starts when the replies before it have arrived. `what` names it in a timeout.
   */
  expect(what: string, withinMs: number, take: (reply: Reply) => void): void {
    this.#awaited.push({ what, withinMs, take })
    if (this.#awaited.length === 1) this.#deadline.set(what, withinMs)
  }

  /** Sets the time limit for an operation other than a reply; the next expectation replaces it. */
  allow(what: string, withinMs: number): void {
    this.#deadline.set(what, withinMs)
  }

  /** From now on, replies for which `isStray` returns true are ignored, whether or not a reply is expected. */
  passOver(isStray: (reply: Reply) => boolean): void {
    this.#isStray = isStray
  }

  /** After the reply to STARTTLS: discards octets that follow the reply, because they may have been injected before the handshake. */
  discardRest(): void {
    this.#isDiscarding = true
  }

  /** Resolves with the reason if the handshake fails or times out; the channel is then unusable. */
  secureWith(options: ConnectionOptions, withinMs: number): Promise<ConnectionLost | TlsSession> {
    return new Promise((resolve) => {
      if (this.#broken) {
        resolve(this.#broken)
        return
      }
      this.#plain.off('data', this.#onData)
      const before = this.#listener
      this.#listener = { ended: resolve }
      let encrypted: TLSSocket
      try {
        encrypted = connectTls({ ...options, socket: this.#plain })
      } catch (error) {
        this.end({ kind: 'tls', message: error instanceof Error ? error.message : 'failed to start TLS' })
        return
      }
      this.#socket = encrypted
      this.#attach(encrypted)
      this.#deadline.set('the TLS handshake', withinMs)
      encrypted.once('secureConnect', () => {
        if (this.#broken) return
        this.#deadline.clear()
        this.#isSecure = true
        this.#isDiscarding = false
        this.#reader = this.#openReader()
        this.#listener = before
        resolve(sessionOf(encrypted))
      })
    })
  }

  end(reason: ConnectionLost): void {
    if (this.#broken) return
    this.#broken = reason
    this.#deadline.stop()
    this.#socket.destroy()
    this.#plain.destroy()
    this.#listener.ended(reason)
  }

  /** Sends QUIT and closes, without waiting for the peer. */
  quit(): void {
    if (this.#broken || this.#isQuitting) return
    this.#isQuitting = true
    this.#socket.write('QUIT\r\n')
    this.#deadline.set('QUIT', quitWithinMs)
  }

  #attach(socket: Socket): void {
    const ended = () => this.end({ kind: 'dropped', message: 'the peer closed the connection' })
    socket
      .on('data', this.#onData)
      .on('end', ended)
      .on('close', ended)
      .on('error', (error) => this.end({ kind: 'dropped', message: `connection lost: ${error.message}` }))
      .on('drain', () => this.#listener.drained?.())
  }

  readonly #onData = (octets: Buffer): void => {
    if (this.#broken || this.#isDiscarding) return
    if (this.#isQuitting) {
      this.end({ kind: 'dropped', message: 'QUIT acknowledged' })
      return
    }
    const complaint = this.#reader.push(octets)
    if (complaint) this.end({ kind: 'protocol', message: complaint })
  }

  #openReader(): ReplyReader {
    return openReplyReader(this.#limits, (reply) => this.#takeReply(reply))
  }

  /** Returns false if the octets after this reply do not count. */
  #takeReply(reply: Reply): boolean {
    if (this.#isStray(reply)) return true
    const next = this.#awaited.shift()
    if (!next) {
      const message = `unexpected reply: ${reply.text.slice(0, 200)}`
      this.end(reply.code >= 400 ? { kind: 'reply', message, reply } : { kind: 'protocol', message })
      return false
    }
    const following = this.#awaited[0]
    if (following) this.#deadline.set(following.what, following.withinMs)
    else this.#deadline.clear()
    next.take(reply)
    return !this.#broken && !this.#isDiscarding
  }
}

/** A single timer for all limits, moved only when a limit comes before it, because most replies arrive long before their limit. */
class Deadline {
  readonly #clock: Clock
  readonly #expired: (what: string) => void
  #atMs = Infinity
  #timerAtMs = Infinity
  #what = ''
  #isStopped = false
  #cancelTimer = () => {}

  constructor(clock: Clock, expired: (what: string) => void) {
    this.#clock = clock
    this.#expired = expired
  }

  set(what: string, withinMs: number): void {
    this.#what = what
    this.#atMs = this.#clock.monotonicMs() + withinMs
    if (this.#atMs >= this.#timerAtMs || this.#isStopped) return
    this.#cancelTimer()
    this.#startTimer(withinMs)
  }

  /** Without a limit until the next one is set. */
  clear(): void {
    this.#atMs = Infinity
  }

  /** Limits set later have no effect. */
  stop(): void {
    this.#isStopped = true
    this.#cancelTimer()
  }

  #startTimer(delayMs: number): void {
    this.#timerAtMs = this.#atMs
    this.#cancelTimer = this.#clock.after(delayMs, this.#lookAtClock)
  }

  readonly #lookAtClock = (): void => {
    this.#timerAtMs = Infinity
    if (this.#atMs === Infinity || this.#isStopped) return
    const leftMs = this.#atMs - this.#clock.monotonicMs()
    if (leftMs <= 0) this.#expired(this.#what)
    else this.#startTimer(Math.ceil(leftMs))
  }
}

function sessionOf(socket: TLSSocket): TlsSession {
  const { standardName, name } = socket.getCipher()
  let read: X509Certificate[] | undefined
  return {
    version: socket.getProtocol() ?? 'TLS',
    cipher: standardName ?? name,
    complaint: socket.authorized ? undefined : inWords(String(socket.authorizationError)),
    certificates: () => (read ??= certificatesOf(socket)),
  }
}

const complaints: Record<string, string> = {
  CERT_HAS_EXPIRED: 'expired',
  CERT_NOT_YET_VALID: 'not yet valid',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'for another name',
  SELF_SIGNED_CERT_IN_CHAIN: 'of an unknown issuer',
  UNABLE_TO_GET_ISSUER_CERT: 'of an unknown issuer',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'of an unknown issuer',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'of an unknown issuer',
}

/** The error codes of OpenSSL. */
const inWords = (code: string) => complaints[code] ?? code.slice(0, 100).toLowerCase().replaceAll('_', ' ')
