/**
 * Loads message bodies under the size limit in one query, and the assigned pools.
 */
import type { Db } from '#db'
import { loadContentBodies, tagsOf } from '#emails'
import type { Claimed } from '#spool'
import type { Job } from './job.ts'
import type { Pools } from './sources/egress-sources.ts'

const smallOctets = 65_536

export async function loadSmall(db: Db, jobs: readonly Job[]): Promise<void> {
  const small = jobs.filter((job) => job.sizeOctets <= smallOctets)
  if (small.length === 0) return
  const bodies = await loadContentBodies(db, small)
  for (const job of small) job.body = bodies.get(job.contentId)
}

/** Queries tags only where a pool is assigned by tag. */
export async function givePools(db: Db, jobs: readonly Job[], pools: Pools): Promise<void> {
  for (const [tenantId, some] of Map.groupBy(jobs, (job) => job.tenantId)) {
    const tags = pools.tagsFor(tenantId)
    const idOf = (job: Job) => (job.recipients[0] as Claimed).emailId
    const known = tags.length === 0 ? undefined : await tagsOf(db, tenantId, some.map(idOf), tags)
    for (const job of some) job.pool = pools.poolOf(tenantId, known?.get(idOf(job)) ?? null)
  }
}
