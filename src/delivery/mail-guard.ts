/** The guard of addresses that mail is sent to: what it refuses is logged, once an hour for each mail server. */
import { LRUCache } from 'lru-cache'
import type { Clock, Config, Log } from '#base'
import { type AddressGuard, openGuard } from '#net'

const silentMs = 3_600_000
const mostTold = 1000
/** A server may have many. */
const mostShown = 3

export interface MailGuardDeps {
  clock: Clock
  log: Log
  config: Pick<Config, 'allowedNetworks'>
}

export function openMailGuard({ clock, log, config }: MailGuardDeps): AddressGuard {
  const silentUntilMs = new LRUCache<string, number>({ max: mostTold })
  return {
    ...openGuard(config.allowedNetworks),
    refused(host, addresses) {
      const nowMs = clock.monotonicMs()
      if (nowMs < (silentUntilMs.get(host) ?? 0)) return
      silentUntilMs.set(host, nowMs + silentMs)
      log.warn(
        { host, addresses: addresses.slice(0, mostShown) },
        'a mail server was not connected to: it lies in a network that mail is not sent to',
      )
    },
  }
}
