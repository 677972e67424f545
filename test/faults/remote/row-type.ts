/** What a row of the table of remote misbehaviours is, and how its peer is given. */
import type { FakeMxOptions } from '../../support/fake-mx.ts'
import type { Misbehaviour } from '../../support/misbehaving-peer.ts'
import type { TestDns, Zones } from '../../support/test-dns.ts'
import type { Limit } from './time-limits.ts'

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

export type PeerOf = { fake: FakeMxOptions } | { rude: Misbehaviour }

export interface Row {
  /** What the outside does. */
  name: string
  /** Its records; usually one MX that points at the peer. */
  dns?: (place: Place) => Zones
  prepare?: (dns: Pick<TestDns, 'set' | 'fail'>, place: Place) => void
  /** Absent: a server that does nothing wrong; `nobody`: none; a function: made anew for each that plays it, because it remembers. */
  peer?: PeerOf | (() => PeerOf) | 'nobody'
  /** Local parts; one recipient `ann` when not said. */
  to?: readonly string[]
  message?: { text?: string; fileOctets?: number }
  /** Of the only recipient, or by local part: its attempts until it is final, or until the provider is left alone. */
  comesTo: Attempts | Record<string, Attempts>
  /** Limits of time that each attempt uses up. */
  waits?: readonly Limit[]
  /** What the peer itself takes for an attempt. */
  slowMs?: number
  /** What is said is of us, not of the mail: one email tells it, and others wait untried until the provider is asked again. */
  othersWait?: true
  /** What is refused is our speed: the rest goes at a pace learnt from it, which may be a message a minute. */
  isRateLimited?: true
  /** What emails come to besides, where many go to one peer, because it counts connections or is known from the one before. */
  amongMany?: readonly Attempts[]
  /** So many of them at most come to what one alone comes to. */
  maxAmongMany?: number
  /** Connections to the peer at most; what a server may count. */
  maxConnections?: number
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
