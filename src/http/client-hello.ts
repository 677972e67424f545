/**
 * Reads the server name and the application protocols from the first octets of a TLS connection, before the handshake costs any work.
 * Bounded: each octet is visited once, and an incomplete ClientHello has at most 16 KiB.
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

/** `octets`: all octets received so far. */
export function readClientHello(octets: Buffer): ClientHello {
  const handshake = handshakeIn(octets)
  if (!Buffer.isBuffer(handshake)) return { kind: handshake }
  try {
    return helloOf(new Cursor(handshake))
  } catch (error) {
    if (error instanceof TooShort) return { kind: 'invalid' }
    throw error
  }
}

/** The ClientHello's content, put together from one or more records (RFC 8446 section 5.1). */
function handshakeIn(octets: Buffer): Buffer | 'incomplete' | 'invalid' {
  const pieces: Buffer[] = []
  let size = 0
  for (let at = 0; ; ) {
    if (octets.length > at && octets[at] !== handshakeRecord) return 'invalid'
    if (octets.length < at + 5) return 'incomplete'
    const length = octets.readUInt16BE(at + 3)
    if (octets[at + 1] !== 3 || length === 0 || length > maxHelloOctets) return 'invalid'
    const piece = octets.subarray(at + 5, at + 5 + length)
    pieces.push(piece)
    size += piece.length
    if (pieces[0]?.[0] !== undefined && pieces[0][0] !== clientHelloType) return 'invalid'
    const wanted = size < 4 ? undefined : 4 + (pieces.length === 1 ? piece : Buffer.concat(pieces, 4)).readUIntBE(1, 3)
    if (wanted !== undefined && wanted > maxHelloOctets) return 'invalid'
    if (wanted !== undefined && size >= wanted) return Buffer.concat(pieces, wanted).subarray(4)
    if (piece.length < length) return 'incomplete'
    at += 5 + length
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
