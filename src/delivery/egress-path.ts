/**
 * An egress path: the source addresses, at most one of each family, used together toward one site, each with its limits. Without
 * configured sources it is the system's default address, of either family.
 */
import { isIP } from 'node:net'
import type { Peer, Target } from '#smtp'
import type { EgressSource } from './egress/egress-sources.ts'
import type { PathAddresses } from './egress/next-source.ts'
import type { WarmUp } from './egress/warm-up.ts'
import type { ConnectionLease } from './shaping/connection-leases.ts'
import type { PathLimiter } from './shaping/shaping.ts'

/** One source address toward one provider. */
export interface EgressPath {
  /** undefined: the operating system chooses. */
  source: string | undefined
  ehloName: string
  limiter: PathLimiter
  warmUp: WarmUp | undefined
}

/** The addresses of both families that are used together. */
export interface EgressPaths {
  readonly ipv4: EgressPath | undefined
  readonly ipv6: EgressPath | undefined
  /** Ms until one of its addresses may send again; 0: now. */
  readonly backoffMs: number
  /** Maximum number of messages in memory. */
  readonly maxWaiting: number
  readonly hasFewConnections: boolean
}

/** Minimum delay in ms before jobs that this path cannot take are reconsidered. */
export const pathRetryMs = 1000

export const pathBackoffMs = ({ limiter, warmUp }: EgressPath) => Math.max(limiter.backoffMs, warmUp?.backoffMs ?? 0)

/** Both addresses may be the same. */
export function egressPathsOf({ ipv4, ipv6 }: PathAddresses<EgressPath>): EgressPaths {
  const distinctPaths = [...new Set([ipv6, ipv4])].filter((path) => path !== undefined)
  return {
    ipv4,
    ipv6,
    get backoffMs() {
      return distinctPaths.reduce((least, path) => Math.min(least, pathBackoffMs(path)), Infinity)
    },
    get maxWaiting() {
      return Math.max(...distinctPaths.map(({ limiter }) => limiter.maxWaiting))
    },
    get hasFewConnections() {
      return distinctPaths.every(({ limiter }) => limiter.hasFewConnections)
    },
  }
}

/** A key for one set of addresses with their current settings. */
export const egressPathsName = ({ ipv4, ipv6 }: PathAddresses<EgressSource>): string =>
  JSON.stringify([ipv6, ipv4].map((one) => one && [one.address, one.ehloName, one.warmUpFrom]))

/** Acquires a connection lease for each address that may have one now. */
export async function acquireLeases({ ipv4, ipv6 }: EgressPaths, wanted: number): Promise<Map<EgressPath, ConnectionLease>> {
  const leases = new Map<EgressPath, ConnectionLease>()
  const take = async (path: EgressPath | undefined) => {
    if (!path || pathBackoffMs(path) > 0 || (path.warmUp && !(await path.warmUp.ready(wanted)))) return
    const lease = await path.limiter.connect()
    if (lease) leases.set(path, lease)
  }
  await Promise.all([...new Set([ipv6, ipv4])].map(take))
  return leases
}

/** The addresses to connect to and the source for each; includes only sources that have a connection lease. */
export function targetsOf(
  paths: EgressPaths,
  leases: ReadonlyMap<EgressPath, ConnectionLease>,
  peers: readonly Peer[],
): (Target & { path: EgressPath })[] {
  return peers.flatMap((peer) => {
    const path = isIP(peer.address) === 6 ? paths.ipv6 : paths.ipv4
    return path && leases.has(path) ? [{ peer, path, localAddress: path.source }] : []
  })
}

/** The path has a source for one of these peers, but no connection lease for it now. */
export const isWithoutLease = (paths: EgressPaths, peers: readonly Peer[]): boolean =>
  peers.some(({ address }) => (isIP(address) === 6 ? paths.ipv6 : paths.ipv4) !== undefined)
