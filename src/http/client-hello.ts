/**
 * Reads the server name and the application protocols from the first octets of a TLS connection, before the handshake costs any work.
 * Bounded: the work grows with the number of octets only, however the client divides them into pieces and records, and an incomplete
 * ClientHello has at most 16 KiB.
 */

export type ClientHello =
  | { kind: 'incomplete' }
  /** Not TLS, or not a valid ClientHello. */
  | { kind: 'invalid' }
  /** `serverName` in lower case; undefined if the client did not send it (RFC 6066 section 3). */
  | { kind: 'hello'; serverName: string | undefined; protocols: string[] }

/** Most octets that a caller keeps while the ClientHello is incomplete. */
export const maxHelloOctets = 16_384

const handshakeRecord = 22
const clientHelloType = 1
const serverNameExtension = 0
const hostNameType = 0
/** RFC 7301. */
const alpnExtension = 16
const maxProtocols = 20
const hostName = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/

class TooShort extends Error {}

/** Reads a structure front to back; throws `TooShort` at its end. */
class Cursor {
  readonly #octets: Buffer
  #at = 0

  constructor(octets: Buffer) {
    this.#octets = octets
  }

  get isAtEnd(): boolean {
    return this.#at === this.#octets.length
  }

  take(size: number): Buffer {
    const end = this.#at + size
    if (end > this.#octets.length) throw new TooShort('a structure ends early')
    const taken = this.#octets.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  number(size: 1 | 2 | 3): number {
    return this.take(size).readUIntBE(0, size)
  }

  /** The content of a vector whose length has `size` octets. */
  vector(size: 1 | 2 | 3): Buffer {
    return this.take(this.number(size))
  }
}

/** Octets received so far, in one buffer. It doubles when it is full, so each octet is copied a few times in all. */
class Received {
  #buffer = Buffer.alloc(512)
  #size = 0

  get octets(): Buffer {
    return this.#buffer.subarray(0, this.#size)
  }

  add(part: Buffer): void {
    const size = this.#size + part.length
    if (size > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(size, 2 * this.#buffer.length))
      this.#buffer.copy(larger, 0, 0, this.#size)
      this.#buffer = larger
    }
    part.copy(this.#buffer, this.#size)
    this.#size = size
  }
}

/** Reads the pieces of one connection as they arrive, and continues where the last piece ended. */
export class ClientHelloReader {
  readonly #received = new Received()
  /** Of the current record. */
  readonly #header = Buffer.alloc(5)
  #headerSize = 0
  /** Octets of the current record's content that have not arrived. */
  #left = 0
  /** Type, length and content, put together from one or more records (RFC 8446 section 5.1). */
  readonly #handshake = new Received()

  /** All pieces so far. */
  get octets(): Buffer {
    return this.#received.octets
  }

  /** `piece`: the octets since the last call. Any result other than `incomplete` is final. */
  read(piece: Buffer): ClientHello {
    this.#received.add(piece)
    for (let at = 0; at < piece.length; ) {
      if (this.#left === 0) {
        if (!this.#isValidHeader(piece.readUInt8(at++))) return { kind: 'invalid' }
        continue
      }
      const content = piece.subarray(at, at + this.#left)
      at += content.length
      this.#left -= content.length
      const handshake = this.#handshakeWith(content)
      if (handshake !== 'incomplete') return handshake === 'invalid' ? { kind: 'invalid' } : helloIn(handshake)
    }
    return { kind: 'incomplete' }
  }

  /** Takes one octet of a record's header; false: it cannot be the record of a handshake. */
  #isValidHeader(octet: number): boolean {
    this.#header[this.#headerSize++] = octet
    if (this.#headerSize < this.#header.length) return this.#header[0] === handshakeRecord
    this.#headerSize = 0
    this.#left = this.#header.readUInt16BE(3)
    return this.#header[1] === 3 && this.#left > 0 && this.#left <= maxHelloOctets
  }

  /** The content of the ClientHello once `content` completes it. */
  #handshakeWith(content: Buffer): Buffer | 'incomplete' | 'invalid' {
    this.#handshake.add(content)
    const { octets } = this.#handshake
    if (octets[0] !== clientHelloType) return 'invalid'
    if (octets.length < 4) return 'incomplete'
    const size = 4 + octets.readUIntBE(1, 3)
    if (size > maxHelloOctets) return 'invalid'
    return octets.length < size ? 'incomplete' : octets.subarray(4, size)
  }
}

function helloIn(handshake: Buffer): ClientHello {
  try {
    return helloOf(new Cursor(handshake))
  } catch (error) {
    if (error instanceof TooShort) return { kind: 'invalid' }
    throw error
  }
}

/** RFC 8446 section 4.1.2. */
function helloOf(hello: Cursor): ClientHello {
  // Version, random.
  hello.take(2 + 32)
  // Session id, cipher suites, compression methods.
  for (const size of [1, 2, 1] as const) hello.vector(size)
  let serverName: string | undefined
  let protocols: string[] = []
  if (hello.isAtEnd) return { kind: 'hello', serverName, protocols }
  for (const extensions = new Cursor(hello.vector(2)); !extensions.isAtEnd; ) {
    const type = extensions.number(2)
    const content = new Cursor(extensions.vector(2))
    if (type === serverNameExtension) serverName = serverNameOf(new Cursor(content.vector(2)))
    if (type === alpnExtension) protocols = protocolsOf(new Cursor(content.vector(2)))
  }
  return { kind: 'hello', serverName, protocols }
}

function serverNameOf(names: Cursor): string | undefined {
  while (!names.isAtEnd) {
    const isHostName = names.number(1) === hostNameType
    const name = names.vector(2).toString('latin1').toLowerCase().replace(/\.$/, '')
    if (isHostName) return hostName.test(name) ? name : undefined
  }
  return undefined
}

function protocolsOf(list: Cursor): string[] {
  const protocols: string[] = []
  while (!list.isAtEnd && protocols.length < maxProtocols) protocols.push(list.vector(1).toString('latin1'))
  return protocols
}
