/** The platform's own records as DNS has them now: for the commands that show or judge them. */
import { networkInterfaces } from 'node:os'
import { listSources } from '#delivery'
import { ensurePlatformKey, type PlatformRecord, platformRecords } from '#domains'
import { openGuard, type Resolver } from '#net'
import type { House } from './command.ts'

export async function readPlatform({ config, db, clock, ids, secrets }: House, resolver: Resolver): Promise<PlatformRecord[]> {
  const guard = openGuard([])
  const ownAddresses = Object.values(networkInterfaces())
    .flatMap((some) => some ?? [])
    .filter(({ internal, address }) => !internal && guard.allows(address))
    .map(({ address }) => address)
  const sender = config.sandboxSender.slice(config.sandboxSender.lastIndexOf('@') + 1)
  const key = await ensurePlatformKey(db, sender, { nowMs: clock.nowMs(), ids, secrets })
  const sources = (await listSources(db)).map(({ address, ehloName }) => ({ address, ehloName: ehloName ?? config.hostname }))
  return platformRecords({ resolver, hostname: config.hostname, key, ownAddresses, sources })
}
