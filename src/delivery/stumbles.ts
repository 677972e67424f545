/**
 * Peers that offer PIPELINING and lose their way when it is used: answers out of step, fewer answers than commands, a connection dropped
 * at the first commands. They are told one command at a time, for a day where it is sure, and for a while where it may have been chance.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '#base'
import type { Failure, SmtpConnection } from '#smtp'

const sureMs = 86_400_000
const suspectedMs = 600_000
/** Of one destination, which has at most 10 hosts of 20 addresses each at a time. */
const mostRemembered = 200

export interface Stumbles {
  /**
   * Whether what was not sent failed because of pipelining, so that it may be tried again at once; the address is then remembered.
   * `isFirst`: nothing was answered on this connection before.
   */
  note(connection: SmtpConnection, failure: Failure, isFirst: boolean): boolean
  has(address: string): boolean
}

export function openStumbles(clock: Clock): Stumbles {
  const untilMs = new LRUCache<string, number>({ max: mostRemembered })
  return {
    note({ peer, extensions, usable }, { kind, stage }, isFirst) {
      // Where the connection goes on, it was our own check that failed.
      if (usable || !extensions.pipelining || !['mail', 'rcpt', 'data'].includes(stage)) return false
      // A connection that was used before also drops at MAIL because it was idle or its server ends.
      const isSuspect = (kind === 'dropped' || kind === 'timeout') && (stage !== 'mail' || isFirst)
      if (kind !== 'protocol' && !isSuspect) return false
      untilMs.set(peer.address, clock.monotonicMs() + (kind === 'protocol' ? sureMs : suspectedMs))
      return kind !== 'timeout'
    },
    has: (address) => clock.monotonicMs() < (untilMs.get(address) ?? 0),
  }
}
