/**
 * Servers whose TLS handshakes cost too much. Node verifies the whole chain that a server sends, also where any certificate is accepted, and
 * does no other work meanwhile: 70 RSA keys with exponents of 3072 bits take 0.45 s of processor time. It offers no limit but 100 KB, so
 * an address is remembered after its first such handshake, and no further one is begun with it for hours.
 */
import type { X509Certificate } from 'node:crypto'
import { DEFAULT_CIPHERS, type TLSSocket } from 'node:tls'
import { LRUCache } from 'lru-cache'
import { type Clock, hasUsualExponent } from '#base'

const forMs = 6 * 3_600_000
const maxAddresses = 10_000
/** A chain in use has 2 to 6 KB. One of this size costs at most 40 ms, and is not looked at. */
const usualOctets = 8192
/** A handshake that failed shows no chain. */
const maxFailedOctets = 12_288
const maxCertificates = 10
const maxRead = 20

/**
 * Without DHE: a server chooses a group of any size up to 10,000 bits, which takes 0.9 s. Servers in use have ECDHE, which TLS 1.3 requires,
 * or the key exchange of RSA.
 */
export const affordableCiphers = (ciphers = DEFAULT_CIPHERS): string => `${ciphers}:!DHE`

export class CostlyHandshakes {
  readonly #clock: Clock
  readonly #untilMs = new LRUCache<string, number>({ max: maxAddresses })

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** No handshake is to be begun with the address now. */
  has(address: string): boolean {
    return this.#clock.monotonicMs() < (this.#untilMs.get(address) ?? 0)
  }

  /** `octets`: received from the peer in the handshake. `certificates`: those of the peer; undefined: the handshake failed. */
  note(address: string, octets: number, certificates: (() => readonly X509Certificate[]) | undefined): void {
    const wasCostly = octets > usualOctets && (certificates ? isCostly(certificates()) : octets > maxFailedOctets)
    if (wasCostly) this.#untilMs.set(address, this.#clock.monotonicMs() + forMs)
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
