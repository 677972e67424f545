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
  /** Tells whether the failure may come from pipelining; the address is then remembered. Only what was not sent is asked about. */
  note(connection: SmtpConnection, failure: Failure): boolean
  has(address: string): boolean
}

export function openStumbles(clock: Clock): Stumbles {
  const untilMs = new LRUCache<string, number>({ max: mostRemembered })
  return {
    note({ peer, extensions }, { kind, stage }) {
      if (!extensions.pipelining || !['mail', 'rcpt', 'data'].includes(stage)) return false
      // At MAIL a connection also drops because it was idle or the server ends; a second one with its answers half given does not.
      const isSuspect = (kind === 'dropped' || kind === 'timeout') && stage !== 'mail'
      if (kind !== 'protocol' && !isSuspect) return false
      untilMs.set(peer.address, clock.monotonicMs() + (kind === 'protocol' ? sureMs : suspectedMs))
      return kind !== 'timeout'
    },
    has: (address) => clock.monotonicMs() < (untilMs.get(address) ?? 0),
  }
}
