/**
 * The octets of a client, refused as soon as there is a CR or LF on its own or content before it was asked for: what some servers take
 * for the end of a line, and then of a message, others do not, and between the two a second message could be smuggled in. The
 * library's parser ends data at CRLF.CRLF only, but takes a bare LF for the end of a command and lets both through in data.
 * Data is read here, in one pass: the library copies what is left of a packet for each dot that it takes out.
 */
import { SMTPStream } from 'smtp-server/lib/smtp-stream.js'

const carriageReturn = 13
const lineFeed = 10
const dot = 46

export type StreamFault = 'bare CR or LF' | 'content before 354'

/** What of a line of data has been read; what waits for the next octet is not passed on yet. */
type LinePlace = 'start' | 'dot waits' | 'dot and CR wait' | 'inside'

export class StrictStream extends SMTPStream {
  readonly #refuse: (fault: StreamFault) => void
  /** The parser calls its own _write with what is left of a chunk, which has been looked at. */
  #isInside = false
  #endedWithCr = false
  #isRefused = false
  #place: LinePlace = 'start'

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

  override startDataMode(maxBytes?: number | string | null): ReturnType<SMTPStream['startDataMode']> {
    this.#place = 'start'
    return super.startDataMode(maxBytes)
  }

  /** As the library does it: of two dots at the start of a line one is taken out, a line of one dot is the end. */
  override _feedDataStream(chunk: Buffer, done: (error?: Error | null) => void): void {
    // What waited at the end of the last chunk is at most a dot and a CR.
    const content = Buffer.allocUnsafe(chunk.length + 2)
    let length = 0
    for (let at = 0; at < chunk.length; at++) {
      const octet = chunk[at] as number
      if (this.#place === 'dot and CR wait') {
        // Nothing else than a LF stands behind a CR here.
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
    // A stream that is given up never drains, it only closes.
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

  /** Octet by octet: a search costs more than that where each line is empty. */
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
