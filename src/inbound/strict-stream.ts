/**
 * The octets of a client, refused as soon as there is a CR or LF on its own or content before it was asked for: what some servers take
 * for the end of a line, and then of a message, others do not, and between the two a second message could be smuggled in. The
 * library's parser ends data at CRLF.CRLF only, but takes a bare LF for the end of a command and lets both through in data.
 */
import { SMTPStream } from 'smtp-server/lib/smtp-stream.js'

const carriageReturn = 13
const lineFeed = 10

export type StreamFault = 'bare CR or LF' | 'content before 354'

export class StrictStream extends SMTPStream {
  readonly #refuse: (fault: StreamFault) => void
  /** The parser calls its own _write with what is left of a chunk, which has been looked at. */
  #isInside = false
  #endedWithCr = false
  #isRefused = false

  constructor(longestCommand: number, refuse: (fault: StreamFault) => void) {
    super({ maxCommandLength: longestCommand })
    this.#refuse = refuse
  }

  override _write(chunk: Buffer, encoding: BufferEncoding | 'buffer', next: (error?: Error | null) => void): void {
    if (this.#isRefused) return next()
    if (this.#isInside) {
      // RFC 2920 section 3.1: DATA is the last command of a group.
      if (this._dataMode && this._atDataStart && chunk.length > 0) return this.#break('content before 354', next)
      return super._write(chunk, encoding, next)
    }
    // Octets that wait for a TLS handshake are not for us.
    if (!this.isClosed && this.#hasBareEnd(chunk)) return this.#break('bare CR or LF', next)
    this.#isInside = true
    super._write(chunk, encoding, (error) => {
      this.#isInside = false
      next(error)
    })
  }

  #break(fault: StreamFault, next: () => void): void {
    this.#isRefused = true
    this.#isInside = false
    this.#refuse(fault)
    next()
  }

  #hasBareEnd(chunk: Buffer): boolean {
    if (chunk.length === 0) return false
    if (this.#endedWithCr && chunk[0] !== lineFeed) return true
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, at + 1)) {
      if (at === 0 ? !this.#endedWithCr : chunk[at - 1] !== carriageReturn) return true
    }
    const last = chunk.length - 1
    for (let at = chunk.indexOf(carriageReturn); at >= 0 && at < last; at = chunk.indexOf(carriageReturn, at + 1)) {
      if (chunk[at + 1] !== lineFeed) return true
    }
    this.#endedWithCr = chunk[last] === carriageReturn
    return false
  }
}
