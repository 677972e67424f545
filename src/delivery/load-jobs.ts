/**
 * Loads message bodies under the size limit in one query, and the assigned pools.
 */
import type { Db } from '#db'
import { loadContentBodies, tagsOf } from '#emails'
import type { Pools } from './egress/egress-sources.ts'
import type { Job } from './job.ts'

const smallOctets = 65_536

export async function loadSmall(db: Db, jobs: readonly Job[]): Promise<void> {
  const small = jobs.filter((job) => job.sizeOctets <= smallOctets)
  if (small.length === 0) return
  const bodies = await loadContentBodies(db, small)
  for (const job of small) job.state.body = bodies.get(job.contentId)
}

/** The same jobs with the pools assigned to them. Queries tags only where a pool is assigned by tag. */
export async function withPools(db: Db, jobs: readonly Job[], pools: Pools): Promise<Job[]> {
  const tagOf = new Map<string, string>()
  for (const [tenantId, some] of Map.groupBy(jobs, (job) => job.tenantId)) {
    const tags = pools.tagsFor(tenantId)
    if (tags.length === 0) continue
    const emailIds = some.map(({ recipients }) => recipients[0].emailId)
    for (const [emailId, tag] of await tagsOf(db, tenantId, emailIds, tags)) tagOf.set(emailId, tag)
  }
  return jobs.map((job) => ({ ...job, pool: pools.poolOf(job.tenantId, tagOf.get(job.recipients[0].emailId) ?? null) }))
}
