/** The type of a row in the table of remote misbehaviours, and of its peer. */
import type { FakeMxOptions } from '../../support/fake-mx.ts'
import type { Misbehaviour } from '../../support/misbehaving-peer.ts'
import type { TestDns, Zones } from '../../support/test-dns.ts'

/** A timeout of an attempt; time-limits.ts has the durations. */
export type Limit = 'connectMs' | 'greetingMs' | 'commandMs' | 'dataMs' | 'blockMs' | 'finalReplyMs' | 'tlsMs' | 'dnsQueryMs'

/** `sent`, or the status with its classification. An enhanced code follows if DNS or SMTP gives one: `softfail dns_error 4.4.3`. */
export type Attempts = readonly string[]

export interface Place {
  /** The recipient domain. */
  domain: string
  /** The address of the row's peer. */
  ip: string
  /** An address without a server. */
  deadIp: string
  /** Accepts connections only into the kernel's queue, or not at all. */
  blackHoleIp: string
  blackHole6: string
  /** Servers that greet with 554 and with 421. */
  unwelcomeIp: string
  busyIp: string
}

export type PeerOf = { fake: FakeMxOptions } | { rude: Misbehaviour }

export interface Row {
  /** The misbehaviour. */
  name: string
  /** Its DNS records; usually one MX that points at the peer. */
  dns?: (place: Place) => Zones
  prepare?: (dns: Pick<TestDns, 'set' | 'fail'>, place: Place) => void
  /** Absent: a correct server. `nobody`: no server. A function: called for each peer that plays the row, because the script has state. */
  peer?: PeerOf | (() => PeerOf) | 'nobody'
  /** Local parts; one recipient `ann` by default. */
  to?: readonly string[]
  message?: { text?: string; fileOctets?: number }
  /** For the only recipient, or by local part: the attempts until the email is final, or until the provider is backed off. */
  comesTo: Attempts | Record<string, Attempts>
  /** Timeouts that each attempt uses up. */
  waits?: readonly Limit[]
  /** The time that the peer itself adds to an attempt. */
  slowMs?: number
  /** The reply concerns Postrider and not the message: one email is attempted, and the others wait until the provider is tried again. */
  othersWait?: true
  /** The peer refuses the sending rate: the rest goes at a rate learned from the refusals, possibly one message a minute. */
  isRateLimited?: true
  /** Other possible results when many emails go to one peer, because it counts connections or is known from an earlier email. */
  amongMany?: readonly Attempts[]
  /** At most this many emails have the result of an email alone. */
  maxAmongMany?: number
  /** Most connections to the peer, if it matters to the server. */
  maxConnections?: number
  /** Number of messages that the peer took. */
  taken?: number
  /** TLS state of the attempt that was sent. */
  secure?: boolean
  /** The outcome of each attempt is unknown. It is shown as `softfail` even if it was the last (contract 7.8). */
  outcomeUnknown?: true
  /** The final status of the email, if it differs from that of the last attempt. */
  ends?: string
  /** Further checks of the messages that the peer took. */
  look?: (taken: readonly { from: string; content: string }[]) => void
}

/** The same failure twice, the second time permanent: the test's schedule has two attempts. */
export const untilGivenUp = (why: string): Attempts => [`softfail ${why}`, `hardfail ${why}`]
