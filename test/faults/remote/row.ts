/** What a row of the table of remote misbehaviours is, and how its peer is given. */
import type { FakeMxOptions } from '../../support/fake-mx.ts'
import type { Rude } from '../../support/rude-peer.ts'
import type { TestDns, Zones } from '../../support/test-dns.ts'

/** `sent`, or the status with its classification and, where DNS or SMTP gave or would give one, the enhanced code: `softfail dns_error 4.4.3`. */
export type Attempts = readonly string[]

export interface Place {
  /** The recipient's domain. */
  domain: string
  /** Of the row's peer. */
  ip: string
  /** Nobody is there. */
  deadIp: string
  /** Takes connections no further than to the kernel's queue, or not even there. */
  blackHoleIp: string
  blackHole6: string
  /** Greets with 554, and with 421. */
  unwelcomeIp: string
  busyIp: string
}

export type PeerOf = { fake: FakeMxOptions } | { rude: Rude } | 'nobody'

export interface Row {
  /** What the outside does. */
  name: string
  /** Its records; usually one MX that points at the peer. */
  dns?: (place: Place) => Zones
  prepare?: (dns: TestDns, place: Place) => void
  /** Absent: a server that does nothing wrong; `nobody`: none. */
  peer?: PeerOf
  /** Local parts; one recipient `ann` when not said. */
  to?: readonly string[]
  message?: { text?: string; fileOctets?: number }
  /** Of the only recipient, or by local part: its attempts until it is final, or until the provider is left alone. */
  comesTo: Attempts | Record<string, Attempts>
  /** Connections to the peer at most; what a server may count. */
  mostConnections?: number
  /** Messages that the peer took. */
  taken?: number
  /** What the attempt that was sent says of TLS. */
  secure?: boolean
  /** Each attempt's outcome is unknown, which is shown as `softfail` even where it was the last (contract 7.8). */
  outcomeUnknown?: true
  /** The email's status at the end, where the last attempt's is another. */
  ends?: string
  /** Anything else of what the peer took. */
  look?: (taken: readonly { from: string; content: string }[]) => void
}

/** Twice the same, the second time for good: the test's schedule has two attempts. */
export const untilGivenUp = (why: string): Attempts => [`softfail ${why}`, `hardfail ${why}`]
