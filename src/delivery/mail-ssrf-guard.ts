/**
 * The address guard for outgoing mail, with logging: one entry an hour for each mail server, and a limit on servers an hour, because the
 * owner of a DNS zone can invent any number of names.
 */
import type { Clock, Config, Log } from '#base'
import { type AddressGuard, openGuard } from '#net'

const silentMs = 3_600_000
const maxReported = 100
/** Maximum number of addresses in one entry; a server may have many. */
const maxShown = 3

export interface MailGuardDeps {
  clock: Clock
  log: Log
  config: Pick<Config, 'allowedNetworks'>
}

export function openMailGuard({ clock, log, config }: MailGuardDeps): AddressGuard {
  /** By server, in the order of the log entries. */
  const silentUntilMs = new Map<string, number>()
  return {
    ...openGuard(config.allowedNetworks),
    refused(host, addresses) {
      const nowMs = clock.monotonicMs()
      for (const [address, untilMs] of silentUntilMs) {
        if (untilMs > nowMs) break
        silentUntilMs.delete(address)
      }
      if (silentUntilMs.size >= maxReported || silentUntilMs.has(host)) return
      silentUntilMs.set(host, nowMs + silentMs)
      const isLast = silentUntilMs.size === maxReported
      log.warn(
        {
          host,
          addresses: addresses.slice(0, maxShown),
          ...(isLast ? { note: `${maxReported} in one hour: suppressing further warnings` } : {}),
        },
        'refused to connect to a mail server in a blocked network',
      )
    },
  }
}
