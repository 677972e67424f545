/**
 * A socket on which replies are awaited in order, each within its time, in the clear or under TLS. Knows replies, not what they mean.
 * Promises: a reply that nobody awaits ends the channel, unless it is passed over; an ended channel says so once, and no event of the socket throws.
 */
import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import type { Clock } from '#base'
import { openReplyReader } from './reply-reader.ts'
import type { Failure, Reply, SmtpLimits } from './types.ts'

/** Why a channel ended. */
export interface Break {
  kind: Failure['kind']
  message: string
  /** The unexpected reply that ended it. */
  reply?: Reply
}

export interface Channel {
  readonly secure: boolean
  readonly broken: Break | undefined
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>
  /** `ended` is told once; `drained` whenever all that was written has left. */
  listen(listener: { ended(reason: Break): void; drained?(): void }): void
  /** Returns false when the peer does not keep up: wait for `drained`. */
  write(...octets: Buffer[]): boolean
  /** The next reply not yet awaited; its time runs from when the replies before it are there. `what` names it in a timeout. */
  expect(what: string, withinMs: number, take: (reply: Reply) => void): void
  /** Sets the time for something that is not a reply; the next expectation replaces it. */
  allow(what: string, withinMs: number): void
  /** From now on, replies for which this says true answer nothing, whether or not one is awaited, and change nothing. */
  passOver(isStray: (reply: Reply) => boolean): void
  /** STARTTLS is answered: octets behind its reply are thrown away, never honoured (injection before the handshake). */
  discardRest(): void
  /** Resolves with the reason when the handshake fails or is late; the channel is then broken. */
  secureWith(options: ConnectionOptions, withinMs: number): Promise<Break | Session>
  end(reason: Break): void
  /** Says goodbye and closes, whatever the peer does. */
  quit(): void
}

/** What came of a handshake. */
export interface Session {
  version: string
  cipher: string
  /** What the usual rules have against the peer's certificate, in words; undefined: nothing. */
  complaint: string | undefined
  /** As the peer has sent them, its own first. */
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
  let broken: Break | undefined
  let quitting = false
  let discarding = false
  let listener: { ended(reason: Break): void; drained?(): void } = { ended() {} }
  let isStray: (reply: Reply) => boolean = () => false
  const awaited: Expectation[] = []

  // One timer for all limits: it is moved only when a limit comes before it, because most replies come long before their limit.
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
      end({ kind: 'timeout', message: `${deadlineFor} took too long` })
      return
    }
    timerAtMs = deadlineMs
    cancelTimer = clock.after(Math.ceil(leftMs), lookAtClock)
  }

  const end = (reason: Break) => {
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
      const message = `a reply that answers nothing: ${reply.text.slice(0, 200)}`
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
      end({ kind: 'dropped', message: 'QUIT was answered' })
      return
    }
    const complaint = reader.push(octets)
    if (complaint) end({ kind: 'protocol', message: complaint })
  }
  const onEnd = () => end({ kind: 'dropped', message: 'the peer closed the connection' })
  const onError = (error: Error) => end({ kind: 'dropped', message: `the connection broke: ${error.message}` })
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
          end({ kind: 'tls', message: error instanceof Error ? error.message : 'TLS could not be started' })
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

/** A peer may send as many as it likes. */
const mostCertificates = 20

function sessionOf(socket: TLSSocket): Session {
  const { standardName, name } = socket.getCipher()
  return {
    version: socket.getProtocol() ?? 'TLS',
    cipher: standardName ?? name,
    complaint: socket.authorized ? undefined : inWords(String(socket.authorizationError)),
    certificates() {
      const all: X509Certificate[] = []
      for (let one = socket.getPeerX509Certificate(); one && all.length < mostCertificates; one = one.issuerCertificate) all.push(one)
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

/** The codes of OpenSSL. */
const inWords = (code: string) => complaints[code] ?? code.slice(0, 100).toLowerCase().replaceAll('_', ' ')
