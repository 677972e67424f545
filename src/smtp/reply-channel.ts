/**
 * A socket on which SMTP replies are awaited in order, each within its time limit, with or without TLS. It does not interpret replies.
 * Promises: an unexpected reply ends the channel, unless it is ignored; the end of a channel is reported once; no event of the socket
 * throws.
 */
import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import type { Clock } from '#base'
import { openReplyReader } from './reply-parser.ts'
import type { Failure, Reply, SmtpLimits } from './types.ts'

/** The reason for the end of a channel. */
export interface ConnectionLost {
  kind: Failure['kind']
  message: string
  /** The unexpected reply that ended it. */
  reply?: Reply
}

export interface Channel {
  readonly secure: boolean
  readonly broken: ConnectionLost | undefined
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>
  /** `ended` is called once; `drained` whenever all written octets have left. */
  listen(listener: { ended(reason: ConnectionLost): void; drained?(): void }): void
  /** Returns false when the peer reads too slowly: wait for `drained`. */
  write(...octets: Buffer[]): boolean
  /**
   * Expects the next reply not yet awaited; its time limit starts when the replies before it have arrived. `what` names it in a timeout.
   */
  expect(what: string, withinMs: number, take: (reply: Reply) => void): void
  /** Sets the time limit for an operation other than a reply; the next expectation replaces it. */
  allow(what: string, withinMs: number): void
  /** From now on, replies for which `isStray` returns true are ignored, whether or not a reply is expected. */
  passOver(isStray: (reply: Reply) => boolean): void
  /** After the reply to STARTTLS: discards octets that follow the reply, because they may have been injected before the handshake. */
  discardRest(): void
  /** Resolves with the reason if the handshake fails or times out; the channel is then unusable. */
  secureWith(options: ConnectionOptions, withinMs: number): Promise<ConnectionLost | TlsSession>
  end(reason: ConnectionLost): void
  /** Sends QUIT and closes, without waiting for the peer. */
  quit(): void
}

/** The result of a handshake. */
export interface TlsSession {
  version: string
  cipher: string
  /** The fault that the usual verification finds in the peer's certificate, in words; undefined if it is valid. */
  complaint: string | undefined
  /** As sent by the peer, its own certificate first. */
  certificates(): X509Certificate[]
}

interface Expectation {
  what: string
  withinMs: number
  take: (reply: Reply) => void
}

const quitWithinMs = 5000

export function openChannel(plain: Socket, limits: SmtpLimits, clock: Clock): Channel {
  let socket: Socket | TLSSocket = plain
  let secure = false
  let broken: ConnectionLost | undefined
  let quitting = false
  let discarding = false
  let listener: { ended(reason: ConnectionLost): void; drained?(): void } = { ended() {} }
  let isStray: (reply: Reply) => boolean = () => false
  const awaited: Expectation[] = []

  // A single timer for all limits, moved only when a limit comes before it, because most replies arrive long before their limit.
  let deadlineMs = Infinity
  let timerAtMs = Infinity
  let deadlineFor = ''
  let cancelTimer = () => {}
  const allow = (what: string, withinMs: number) => {
    deadlineFor = what
    deadlineMs = clock.monotonicMs() + withinMs
    if (deadlineMs >= timerAtMs || broken) return
    cancelTimer()
    timerAtMs = deadlineMs
    cancelTimer = clock.after(withinMs, lookAtClock)
  }
  const lookAtClock = () => {
    timerAtMs = Infinity
    if (deadlineMs === Infinity || broken) return
    const leftMs = deadlineMs - clock.monotonicMs()
    if (leftMs <= 0) {
      end({ kind: 'timeout', message: `timed out waiting for ${deadlineFor}` })
      return
    }
    timerAtMs = deadlineMs
    cancelTimer = clock.after(Math.ceil(leftMs), lookAtClock)
  }

  const end = (reason: ConnectionLost) => {
    if (broken) return
    broken = reason
    deadlineMs = Infinity
    cancelTimer()
    socket.destroy()
    plain.destroy()
    listener.ended(reason)
  }

  const takeReply = (reply: Reply): boolean => {
    if (isStray(reply)) return true
    const next = awaited.shift()
    if (!next) {
      const message = `unexpected reply: ${reply.text.slice(0, 200)}`
      end(reply.code >= 400 ? { kind: 'reply', message, reply } : { kind: 'protocol', message })
      return false
    }
    const following = awaited[0]
    if (following) allow(following.what, following.withinMs)
    else deadlineMs = Infinity
    next.take(reply)
    return !broken && !discarding
  }
  let reader = openReplyReader(limits, takeReply)

  const onData = (octets: Buffer) => {
    if (broken || discarding) return
    if (quitting) {
      end({ kind: 'dropped', message: 'QUIT acknowledged' })
      return
    }
    const complaint = reader.push(octets)
    if (complaint) end({ kind: 'protocol', message: complaint })
  }
  const onEnd = () => end({ kind: 'dropped', message: 'the peer closed the connection' })
  const onError = (error: Error) => end({ kind: 'dropped', message: `connection lost: ${error.message}` })
  const onDrain = () => listener.drained?.()
  const attach = (to: Socket) => to.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onError).on('drain', onDrain)

  attach(plain)
  plain.setNoDelay(true)
  const closed = new Promise<void>((resolve) => (plain.destroyed ? resolve() : plain.once('close', () => resolve())))

  return {
    get secure() {
      return secure
    },
    get broken() {
      return broken
    },
    closed,
    listen(next) {
      listener = next
    },
    write(...octets) {
      if (broken) return true
      socket.cork()
      for (const part of octets) if (part.length > 0) socket.write(part)
      socket.uncork()
      return !socket.writableNeedDrain
    },
    expect(what, withinMs, take) {
      awaited.push({ what, withinMs, take })
      if (awaited.length === 1) allow(what, withinMs)
    },
    allow,
    passOver(next) {
      isStray = next
    },
    discardRest() {
      discarding = true
    },
    secureWith(options, withinMs) {
      return new Promise((resolve) => {
        if (broken) {
          resolve(broken)
          return
        }
        plain.off('data', onData)
        const before = listener
        listener = { ended: resolve }
        let encrypted: TLSSocket
        try {
          encrypted = connectTls({ ...options, socket: plain })
        } catch (error) {
          end({ kind: 'tls', message: error instanceof Error ? error.message : 'failed to start TLS' })
          return
        }
        socket = encrypted
        attach(encrypted)
        allow('the TLS handshake', withinMs)
        encrypted.once('secureConnect', () => {
          if (broken) return
          deadlineMs = Infinity
          secure = true
          discarding = false
          reader = openReplyReader(limits, takeReply)
          listener = before
          resolve(sessionOf(encrypted))
        })
      })
    },
    end,
    quit() {
      if (broken || quitting) return
      quitting = true
      socket.write('QUIT\r\n')
      allow('QUIT', quitWithinMs)
    },
  }
}

/** A peer may send any number. */
const maxCertificates = 20

function sessionOf(socket: TLSSocket): TlsSession {
  const { standardName, name } = socket.getCipher()
  return {
    version: socket.getProtocol() ?? 'TLS',
    cipher: standardName ?? name,
    complaint: socket.authorized ? undefined : inWords(String(socket.authorizationError)),
    certificates() {
      const all: X509Certificate[] = []
      for (let one = socket.getPeerX509Certificate(); one && all.length < maxCertificates; one = one.issuerCertificate) all.push(one)
      return all
    },
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
