/**
 * Pipelining fallback for peers that offer PIPELINING (RFC 2920) and fail when it is used: replies out of sequence, fewer replies than
 * commands, or a connection dropped at the first commands. They receive one command at a time: for a day if the fault is certain, for a
 * shorter time if it may have been chance.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '#base'
import type { Failure, SmtpConnection } from '#smtp'

const sureMs = 86_400_000
const suspectedMs = 600_000
/** For one site, which has at most 10 hosts with 20 addresses each at a time. */
const maxPeers = 200

export interface PipeliningFallback {
  /**
   * Returns whether the transaction failed because of pipelining, so that it may be retried at once; the address is then remembered.
   * `isFirst`: the connection had not answered any transaction before.
   */
  record(connection: SmtpConnection, failure: Failure, isFirst: boolean): boolean
  applies(address: string): boolean
}

export function openPipeliningFallback(clock: Clock): PipeliningFallback {
  const untilMs = new LRUCache<string, number>({ max: maxPeers })
  return {
    record({ peer, extensions, usable }, { kind, stage }, isFirst) {
      // If the connection is still usable, Postrider's own check failed.
      if (usable || !extensions.pipelining || !['mail', 'rcpt', 'data'].includes(stage)) return false
      // A reused connection also drops at MAIL because it was idle or its server is ending.
      const isSuspect = (kind === 'dropped' || kind === 'timeout') && (stage !== 'mail' || isFirst)
      if (kind !== 'protocol' && !isSuspect) return false
      untilMs.set(peer.address, clock.monotonicMs() + (kind === 'protocol' ? sureMs : suspectedMs))
      return kind !== 'timeout'
    },
    applies: (address) => clock.monotonicMs() < (untilMs.get(address) ?? 0),
  }
}
