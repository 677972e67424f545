/** The state of each address on each blocklist: claiming those that are due, saving an answer, listing. */
import { type Db, type Queryable, sql } from '#db'

export interface BlocklistState {
  zone: string
  address: string
  listed: boolean
  codes: string[]
  since: Date
  /** Null: not checked yet. */
  checkedAt: Date | null
  problem: string | null
}

export interface BlocklistPair {
  zone: string
  address: string
}

const columns = sql.part`zone, address, listed, codes, since, checked_at as "checkedAt", problem`

/** $1, $2: the pairs; $3: now; $4: those checked later are not due; $5: the end of the claim. */
const claimDue = sql<BlocklistPair>`
  insert into blocklist_checks (zone, address, listed, codes, since, checked_at, problem, claimed_until)
  select zone, address, false, '{}'::text[], $3::timestamptz, null::timestamptz, null::text, $5::timestamptz
  from (
    select zone, address
    from unnest($1::text[], $2::text[]) as wanted (zone, address)
    where not exists (
      select
      from blocklist_checks as known
      where known.zone = wanted.zone and known.address = wanted.address and (known.checked_at > $4 or known.claimed_until > $3)
    )
    order by zone, address
    limit $6
  ) as due
  on conflict (zone, address) do update
  set claimed_until = excluded.claimed_until
  where (blocklist_checks.checked_at is null or blocklist_checks.checked_at <= $4) and blocklist_checks.claimed_until <= $3
  returning zone, address`

const saveAnswer = sql`
  update blocklist_checks
  set since = case when listed = $3 and checked_at is not null then since else $6 end, listed = $3, codes = $4, problem = $5, checked_at = $6,
    claimed_until = $6
  where zone = $1 and address = $2`

const saveTrouble = sql`
  update blocklist_checks
  set problem = $3, checked_at = $4, claimed_until = $4
  where zone = $1 and address = $2`

/** A claim ends at the check or later. */
const deleteOthers = sql`
  delete from blocklist_checks
  where claimed_until < $3 and not exists (
    select
    from unnest($1::text[], $2::text[]) as wanted (zone, address)
    where wanted.zone = blocklist_checks.zone and wanted.address = blocklist_checks.address
  )`

const allStates = sql<BlocklistState>`
  select ${columns}
  from blocklist_checks
  order by address, zone
  limit $1`

const newListings = sql<BlocklistState>`
  select ${columns}
  from blocklist_checks
  where listed and since > $1 and checked_at is not null
  order by address, zone
  limit $2`

const maxStates = 10_000
const maxNew = 100

const columnsOf = (pairs: readonly BlocklistPair[]) => [pairs.map((one) => one.zone), pairs.map((one) => one.address)]

/** Those among `pairs` that no process checks now and that were not checked since `before`; at most `limit`. */
export const claimDuePairs = (
  db: Db,
  pairs: readonly BlocklistPair[],
  { now, before, until, limit }: { now: Date; before: Date; until: Date; limit: number },
): Promise<BlocklistPair[]> => db.rows(claimDue, [...columnsOf(pairs), now, before, until, limit])

/** `problem`: why the list is ignored. */
export const saveListing = (
  db: Db,
  { zone, address }: BlocklistPair,
  { listed, codes, problem }: Pick<BlocklistState, 'listed' | 'codes' | 'problem'>,
  at: Date,
): Promise<number> => db.run(saveAnswer, [zone, address, listed, codes, problem, at])

/** The list did not answer: the state of the last check stays. */
export const saveNoAnswer = (db: Db, { zone, address }: BlocklistPair, problem: string, at: Date): Promise<number> =>
  db.run(saveTrouble, [zone, address, problem, at])

/** Forgets the pairs that were not checked since `before`. Later ones may be those of another process, with its own host name or DNS. */
export const deleteOtherPairs = (db: Db, pairs: readonly BlocklistPair[], before: Date): Promise<number> =>
  db.run(deleteOthers, [...columnsOf(pairs), before])

/** A first label this long is the key of a registered user, such as of Spamhaus's Data Query Service. */
const keyedZone = /^[a-z0-9]{20,}\./

/** A zone as people see it. */
export const shownZone = (zone: string): string => zone.replace(keyedZone, '')

const shownState = (state: BlocklistState): BlocklistState => ({ ...state, zone: shownZone(state.zone) })

export const listBlocklistStates = async (on: Queryable): Promise<BlocklistState[]> =>
  (await on.rows(allStates, [maxStates])).map(shownState)

export const listNewListings = async (on: Queryable, since: Date): Promise<BlocklistState[]> =>
  (await on.rows(newListings, [since, maxNew])).map(shownState)
