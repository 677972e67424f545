/**
 * Strict SMTP input: ends the session at a bare CR or LF, or at content before its 354. Servers disagree on whether these end a line, which
 * allows SMTP smuggling. The library ends data at CRLF.CRLF only, but takes a bare LF as the end of a command and passes both through in
 * data. Reads data in one pass, because the library copies the rest of a packet for each dot that it removes.
 */
import { SMTPStream } from 'smtp-server/lib/smtp-stream.js'

const carriageReturn = 13
const lineFeed = 10
const dot = 46

export type StreamFault = 'bare CR or LF' | 'content before 354'

/** State within a line of data; octets that depend on the next one are not passed on yet. */
type LinePlace = 'start' | 'dot waits' | 'dot and CR wait' | 'inside'

export class StrictStream extends SMTPStream {
  readonly #refuse: (fault: StreamFault) => void
  /** Set while the parser calls its own _write with the rest of a chunk, which has been checked already. */
  #isInside = false
  #endedWithCr = false
  #isRefused = false
  #place: LinePlace = 'start'

  constructor(maxCommandLength: number, refuse: (fault: StreamFault) => void) {
    super({ maxCommandLength: maxCommandLength })
    this.#refuse = refuse
  }

  override _write(chunk: Buffer, encoding: BufferEncoding | 'buffer', next: (error?: Error | null) => void): void {
    if (this.#isRefused) return next()
    if (this.#isInside) {
      // RFC 2920 section 3.1: DATA is the last command of a group.
      if (this._dataMode && this._atDataStart && chunk.length > 0) return this.#break('content before 354', next)
      return super._write(chunk, encoding, next)
    }
    // While a TLS handshake is pending the stream is closed, and octets are not checked here.
    if (!this.isClosed && this.#hasBareEnd(chunk)) return this.#break('bare CR or LF', next)
    this.#isInside = true
    super._write(chunk, encoding, (error) => {
      this.#isInside = false
      next(error)
    })
  }

  override startDataMode(maxBytes?: number | string | null): ReturnType<SMTPStream['startDataMode']> {
    this.#place = 'start'
    return super.startDataMode(maxBytes)
  }

  /** As in the library: one of two dots at the start of a line is removed, and a line of one dot ends the data. */
  override _feedDataStream(chunk: Buffer, done: (error?: Error | null) => void): void {
    // At most a dot and a CR are carried over from the last chunk.
    const content = Buffer.allocUnsafe(chunk.length + 2)
    let length = 0
    for (let at = 0; at < chunk.length; at++) {
      const octet = chunk[at] as number
      if (this.#place === 'dot and CR wait') {
        // Only a LF can follow a CR here.
        this._countDataBytes(length)
        return this._endDataMode(content.subarray(0, length), chunk.subarray(at + 1), done)
      }
      if (this.#place === 'dot waits' && octet === carriageReturn) {
        this.#place = 'dot and CR wait'
        continue
      }
      if (this.#place === 'start' && octet === dot) {
        this.#place = 'dot waits'
        continue
      }
      if (this.#place === 'dot waits' && octet !== dot) content[length++] = dot
      content[length++] = octet
      this.#place = octet === lineFeed ? 'start' : 'inside'
    }
    this.#pass(content.subarray(0, length), done)
  }

  #pass(content: Buffer, done: () => void): void {
    this._countDataBytes(content.length)
    const to = this._dataStream
    if (content.length === 0 || !to?.writable || to.write(content) || to.destroyed) return done()
    // An aborted stream never drains, it only closes.
    const goOn = () => {
      to.off('drain', goOn).off('close', goOn)
      done()
    }
    to.once('drain', goOn).once('close', goOn)
  }

  #break(fault: StreamFault, next: () => void): void {
    this.#isRefused = true
    this.#isInside = false
    this.#refuse(fault)
    next()
  }

  /** Octet by octet: a search would be slower on empty lines. */
  #hasBareEnd(chunk: Buffer): boolean {
    let endedWithCr = this.#endedWithCr
    for (const octet of chunk) {
      if (endedWithCr !== (octet === lineFeed)) return true
      endedWithCr = octet === carriageReturn
    }
    this.#endedWithCr = endedWithCr
    return false
  }
}
