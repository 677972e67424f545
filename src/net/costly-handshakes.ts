/**
 * Servers whose TLS handshakes cost too much. Node verifies the whole chain that a server sends, also where any certificate is accepted, and
 * does no other work meanwhile: 70 RSA keys with exponents of 3072 bits take 0.45 s of processor time. It offers no limit but 100 KB, so
 * an address and the name asked for are remembered after the first such handshake, and no further one is begun with them for hours. Other
 * names of the address go on, because a tenant may own one of many names on shared hosting; after three names the whole address counts.
 */
import type { X509Certificate } from 'node:crypto'
import { DEFAULT_CIPHERS, type TLSSocket } from 'node:tls'
import { LRUCache } from 'lru-cache'
import { atMost, type Clock, hasUsualExponent } from '#base'

const forMs = 6 * 3_600_000
const maxAddresses = 10_000
/** One server can answer for any number of names, and each costs a handshake. */
const maxNames = 3
/** A chain in use has 2 to 6 KB. One of this size costs at most 40 ms, and is not looked at. */
const usualOctets = 8192
/**
 * A handshake that failed shows no chain. A list of authorities for client certificates has up to 20 KB, and is sent also by a server whose
 * certificate has expired.
 */
const maxFailedOctets = 32_768
const maxCertificates = 10
const maxRead = 20

/**
 * Without DHE: a server chooses a group of any size up to 10,000 bits, which takes 0.9 s. Servers in use have ECDHE, which TLS 1.3 requires,
 * or the key exchange of RSA.
 */
export const affordableCiphers = (ciphers = DEFAULT_CIPHERS): string => `${ciphers}:!DHE`

/** `name`: the host that the certificate is to be for. */
export interface HandshakePeer {
  address: string
  name: string
}

export class CostlyHandshakes {
  readonly #clock: Clock
  /** By address: the time until which no handshake is begun, by name. */
  readonly #untilMs = new LRUCache<string, Map<string, number>>(atMost(maxAddresses))

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** No handshake is to be begun with the address for this name now. */
  has({ address, name }: HandshakePeer): boolean {
    const names = this.#current(address)
    return names.has(name) || names.size >= maxNames
  }

  /** `octets`: received from the peer in the handshake. `certificates`: those of the peer; undefined: the handshake failed. */
  note({ address, name }: HandshakePeer, octets: number, certificates: (() => readonly X509Certificate[]) | undefined): void {
    const wasCostly = octets > usualOctets && (certificates ? isCostly(certificates()) : octets > maxFailedOctets)
    if (!wasCostly) return
    const names = this.#current(address).set(name, this.#clock.monotonicMs() + forMs)
    this.#untilMs.set(address, names)
  }

  #current(address: string): Map<string, number> {
    const nowMs = this.#clock.monotonicMs()
    return new Map([...(this.#untilMs.get(address) ?? [])].filter(([, untilMs]) => nowMs < untilMs))
  }
}

/** As sent by the peer, its own certificate first, and at most 20, because a peer may send any number. Node returns them only once. */
export function certificatesOf(socket: TLSSocket): X509Certificate[] {
  const all: X509Certificate[] = []
  for (let one = socket.getPeerX509Certificate(); one && all.length < maxRead; one = one.issuerCertificate) all.push(one)
  return all
}

const isCostly = (chain: readonly X509Certificate[]): boolean =>
  chain.length > maxCertificates || chain.some(({ publicKey }) => publicKey.asymmetricKeyType === 'dsa' || !hasUsualExponent(publicKey))
