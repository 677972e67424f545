/** The stage as a row: written by one process at a time, and read by all that serve or list the policy. */
import { type Queryable, sql } from '#db'
import type { PolicyStage } from './next-stage.ts'

export interface StoredStage extends PolicyStage {
  lookedAt: Date
  nextAt: Date
}

const theStage = sql<StoredStage>`
  select mode, mode_since as "modeSince", listed, leads_here as "leadsHere", certificate_ends_at as "certificateEndsAt",
    good_since as "goodSince", bad_since as "badSince", problem, looked_at as "lookedAt", next_at as "nextAt"
  from mta_sts_stage
  where hostname = $1`

const saveTheStage = sql`
  insert into mta_sts_stage (
    hostname, mode, mode_since, listed, leads_here, certificate_ends_at, good_since, bad_since, problem, looked_at, next_at
  )
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
  on conflict (only_one) do update
  set hostname = excluded.hostname, mode = excluded.mode, mode_since = excluded.mode_since, listed = excluded.listed, leads_here = excluded.leads_here,
    certificate_ends_at = excluded.certificate_ends_at, good_since = excluded.good_since, bad_since = excluded.bad_since,
    problem = excluded.problem, looked_at = excluded.looked_at, next_at = excluded.next_at`

/** Undefined until the first look with the setting and this host name. */
export const findStage = (on: Queryable, hostname: string): Promise<StoredStage | undefined> => on.first(theStage, [hostname])

export async function saveStage(on: Queryable, hostname: string, stage: StoredStage): Promise<void> {
  const { mode, modeSince, listed, leadsHere, certificateEndsAt, goodSince, badSince, problem, lookedAt, nextAt } = stage
  await on.run(saveTheStage, [
    hostname,
    mode,
    modeSince,
    listed,
    leadsHere,
    certificateEndsAt,
    goodSince,
    badSince,
    problem,
    lookedAt,
    nextAt,
  ])
}
