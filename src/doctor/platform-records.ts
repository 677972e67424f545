/** The platform's own records with their current state in DNS, for display and checks. */
import { networkInterfaces } from 'node:os'
import type { Clock, Config, Ids, Secrets } from '#base'
import type { Db } from '#db'
import { listSources } from '#delivery'
import { openReportAddresses, platformUuid } from '#domain-reports'
import { ensurePlatformKey, type PlatformRecord, platformRecords, returnPathDomainOf } from '#domains'
import { listStsRecords } from '#mta-sts'
import { openGuard, type Resolver } from '#net'

export interface PlatformFacts {
  config: Pick<Config, 'sandboxSender' | 'hostname' | 'publicUrl' | 'mtaSts'>
  db: Db
  clock: Clock
  ids: Ids
  secrets: Secrets
}

/** Public addresses of this machine's interfaces. */
export function publicAddresses(): string[] {
  const guard = openGuard([])
  return Object.values(networkInterfaces())
    .flatMap((some) => some ?? [])
    .filter(({ internal, address }) => !internal && guard.allows(address))
    .map(({ address }) => address)
}

export async function readPlatform({ config, db, clock, ids, secrets }: PlatformFacts, resolver: Resolver): Promise<PlatformRecord[]> {
  const sender = config.sandboxSender.slice(config.sandboxSender.lastIndexOf('@') + 1)
  const key = await ensurePlatformKey(db, sender, { nowMs: clock.nowMs(), ids, secrets })
  const sources = (await listSources(db)).map(({ address, ehloName }) => ({ address, ehloName: ehloName ?? config.hostname }))
  const { hostname } = config
  const reportAddress = openReportAddresses(secrets, returnPathDomainOf(hostname.toLowerCase())).make(platformUuid)
  const [records, policy] = await Promise.all([
    platformRecords({ resolver, hostname, key, ownAddresses: publicAddresses(), sources, reportAddress }),
    listStsRecords(db, resolver, config),
  ])
  return [...records, ...policy]
}
