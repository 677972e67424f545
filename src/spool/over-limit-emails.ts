/**
 * Emails over the send limit, released in order of acceptance. Every acceptance needs the counters of the limits, so their rows are locked only
 * after the backlog has been read, and for a bounded number of emails at a time.
 */
import { emailIdPrefix } from '#base'
import { type Db, type Queryable, type Sql, sql, type Tx } from '#db'
import { appendEvents } from '#events'
import { addWaiting, type FreeSlots, listFullLimits, lockRoom, roomForWaiting, type SendLimits, settleWaiting } from '#limits'
import { allowOnlyKeys, hasKeyOf, stateByKey } from './row-guards.ts'

/** Emails of one transaction. */
const maxAtOnce = 2000
/** Emails chosen by one reading of the backlog, and readings of one call. */
const maxChosen = 20_000
const maxReadings = 2
/** A flush inserts an email long before this time after its acceptance. Younger ones may be inserted while the backlog is read. */
const recentMs = 30_000

interface OfTenantAndKey {
  tenantId: string
  /** null: the key has no limit of its own. */
  keyId: number | null
}

interface WaitingEmail extends OfTenantAndKey {
  emailId: string
}

interface Count extends OfTenantAndKey {
  waiting: number
}

/** The next of `candidate`, which are the emails over the limit that no key's limit keeps back. */
const nextOf = (candidate: Sql<unknown>) => sql<WaitingEmail>`
  with room (tenant_id, slots) as (
    select tenant_id, slots
    from unnest($2::text[], $3::bigint[]) as room (tenant_id, slots)
  ),
  ${candidate},
  ranked as (
    select tenant_id, email_id, limited_key, row_number() over (partition by tenant_id order by email_id) as nth
    from candidate
  )
  select ranked.tenant_id as "tenantId", ranked.email_id as "emailId", ranked.limited_key as "keyId"
  from ranked
  left join room on room.tenant_id = ranked.tenant_id
  where room.slots is null or ranked.nth <= room.slots
  order by ranked.email_id
  limit $4`

const nextWaiting = nextOf(sql.part`candidate as (
    select tenant_id, email_id, limited_key
    from spool
    where state = 'over_limit' and test = $1
  )`)

/** $5, $6: the free slots of keys. */
const nextWithinKeys = nextOf(sql.part`key_room (id, slots) as (
    select id, slots
    from unnest($5::bigint[], $6::bigint[]) as key_room (id, slots)
  ),
  of_key as (
    select tenant_id, email_id, limited_key, row_number() over (partition by limited_key order by email_id) as nth
    from spool
    where state = 'over_limit' and test = $1
  ),
  candidate as (
    select tenant_id, email_id, limited_key
    from of_key
    left join key_room on key_room.id = of_key.limited_key
    where key_room.slots is null or of_key.nth <= key_room.slots
  )`)

/** Without limits of tenants and keys. */
const firstWaiting = sql<WaitingEmail>`
  select tenant_id as "tenantId", email_id as "emailId", limited_key as "keyId"
  from spool
  where state = 'over_limit' and test = $1
  order by email_id
  limit $2`

/** $1: the first id of recent emails. */
const countBacklog = sql<Count & { test: boolean; isRecent: boolean }>`
  select tenant_id as "tenantId", limited_key as "keyId", test, email_id >= $1 as "isRecent", count(*) as waiting
  from spool
  where state = 'over_limit'
  group by tenant_id, limited_key, test, email_id >= $1`

/** $2: the first id of recent emails; $3, $4: the tenants and keys whose mail is left out. */
const nextRecent = sql<WaitingEmail>`
  select tenant_id as "tenantId", email_id as "emailId", limited_key as "keyId"
  from spool
  where state = 'over_limit' and test = $1 and email_id >= $2 and tenant_id <> all($3) and (limited_key is null or limited_key <> all($4))
  order by email_id
  limit $5`

const countRecent = sql<Count>`
  select tenant_id as "tenantId", limited_key as "keyId", count(*) as waiting
  from spool
  where state = 'over_limit' and test = $1 and email_id >= $2
  group by tenant_id, limited_key`

const releaseThese = sql<WaitingEmail>`
  update spool
  set state = 'ready'
  from unnest($1::text[], $2::text[]) as next (tenant_id, email_id)
  where ${hasKeyOf(sql.part`next`)} and ${stateByKey} = 'over_limit'
  returning spool.tenant_id as "tenantId", spool.email_id as "emailId", spool.limited_key as "keyId"`

/** $2, $3: the tenants and keys whose mail is left out. */
const firstReleasable = sql<{ emailId: string }>`
  select email_id as "emailId"
  from spool
  where state = 'over_limit' and test = $1 and tenant_id <> all($2) and (limited_key is null or limited_key <> all($3))
  order by email_id
  limit 1`

/** The waiting emails of one kind of mail, live or test, as they were read without a lock. */
interface Backlog {
  room: FreeSlots
  /** Those that have room, in order. */
  next: readonly WaitingEmail[]
  /** None was left out of `next` because there were too many. */
  isWhole: boolean
  /** The numbers of all but the recent ones. */
  older: readonly Count[]
  /** The first id of recent ones. */
  recentFrom: string
}

/**
 * Releases emails over the send limit for which there is capacity, in order of acceptance, up to 40,000 of live and of test mail; returns how many.
 */
export async function releaseWaiting(db: Db, limits: SendLimits, nowMs: number): Promise<number> {
  let released = 0
  for (let nth = 0; nth < maxReadings; nth++) {
    let now = 0
    for (const backlog of await readBacklog(db, limits, nowMs)) now += await releaseBacklog(db, backlog, limits, nowMs)
    released += now
    if (now < maxChosen) break
  }
  return released
}

/** Releases waiting emails that the counters do not count, with all others; returns how many. */
export async function releaseUncounted(db: Db, limits: SendLimits, nowMs: number): Promise<number> {
  const found = { live: 0, test: 0 }
  for (const { test, tenants, keys } of await listFullLimits(db, limits, nowMs))
    if (await db.first(firstReleasable, [test, tenants, keys])) found[test ? 'test' : 'live'] = 1
  if (found.live + found.test === 0) return 0
  // One email counted is enough: the release counts all that still wait.
  await db.transaction((tx) => addWaiting(tx, found, limits, nowMs))
  return releaseWaiting(db, limits, nowMs)
}

/** Empty if no email can be released now. */
async function readBacklog(on: Queryable, limits: SendLimits, nowMs: number): Promise<Backlog[]> {
  const recentFrom = emailIdPrefix(nowMs - recentMs)
  let counts: readonly (Count & { test: boolean; isRecent: boolean })[] = []
  const rooms = await roomForWaiting(on, limits, nowMs, async () => {
    counts = await on.rows(countBacklog, [recentFrom])
    return counts.flatMap(({ keyId }) => keyId ?? [])
  })
  const backlogs: Backlog[] = []
  for (const room of rooms) {
    const older = counts.filter(({ test, isRecent }) => test === room.test && !isRecent)
    const next = await nextWithin(on, room)
    backlogs.push({ room, next, isWhole: next.length < maxChosen, older, recentFrom })
  }
  return backlogs
}

function nextWithin(on: Queryable, { test, organisation, tenants, keys }: FreeSlots): Promise<WaitingEmail[]> {
  const most = Math.min(organisation, maxChosen)
  if (tenants.size + keys.size === 0) return on.rows(firstWaiting, [test, most])
  const given = [test, [...tenants.keys()], [...tenants.values()], most]
  return keys.size === 0 ? on.rows(nextWaiting, given) : on.rows(nextWithinKeys, [...given, [...keys.keys()], [...keys.values()]])
}

/** In transactions of at most `maxAtOnce` emails; the first also stores the counts if no email has room. */
async function releaseBacklog(db: Db, backlog: Backlog, limits: SendLimits, nowMs: number): Promise<number> {
  let { older } = backlog
  let released = 0
  for (let from = 0; from === 0 || from < backlog.next.length; from += maxAtOnce) {
    const next = backlog.next.slice(from, from + maxAtOnce)
    const some = { ...backlog, older, next, isWhole: backlog.isWhole && from + maxAtOnce >= backlog.next.length }
    const done = await db.transaction((tx) => releaseSome(tx, some, limits, nowMs))
    if (!done) break
    older = done.older
    released += done.released
  }
  return released
}

/**
 * Returns the number released, and those of the older ones that still wait; undefined if there is no room any more. The last transaction also
 * releases emails that were inserted after the reading: otherwise new ones would wait behind them, and so on without end. A flush counts its
 * emails before it inserts them: a release between the two stores the count without them, and `releaseUncounted` finds them.
 */
async function releaseSome(
  tx: Tx,
  { room: expected, next, isWhole, older, recentFrom }: Backlog,
  limits: SendLimits,
  nowMs: number,
): Promise<{ released: number; older: readonly Count[] } | undefined> {
  await allowOnlyKeys(tx)
  const room = await lockRoom(tx, expected, limits, nowMs)
  if (!room) return undefined
  const emails = isWhole ? await withRecent(tx, next, room, recentFrom) : next
  const chosen = chooseWithin(room, emails, limits)
  const released = await tx.rows(releaseThese, [chosen.map((one) => one.tenantId), chosen.map((one) => one.emailId)])
  const olderReleased = sums(
    released.filter(({ emailId }) => emailId < recentFrom),
    nameOf,
  )
  const left = older.map((one) => ({ ...one, waiting: Math.max(0, one.waiting - (olderReleased.get(nameOf(one)) ?? 0)) }))
  await settle(tx, { room, released, waiting: [...left, ...(await tx.rows(countRecent, [room.test, recentFrom]))] }, limits, nowMs)
  return { released: released.length, older: left }
}

/** Adds the first recent emails that are not among `next`, in order. */
async function withRecent(tx: Tx, next: readonly WaitingEmail[], room: FreeSlots, recentFrom: string): Promise<WaitingEmail[]> {
  const full = <Id>(slots: ReadonlyMap<Id, number>) => [...slots].flatMap(([id, free]) => (free === 0 ? [id] : []))
  const recent = await tx.rows(nextRecent, [room.test, recentFrom, full(room.tenants), full(room.keys), maxAtOnce])
  const known = new Set(next.map(({ emailId }) => emailId))
  const all = [...next, ...recent.filter(({ emailId }) => !known.has(emailId))]
  return all.sort((a, b) => (a.emailId < b.emailId ? -1 : 1))
}

/** At most `maxAtOnce`, for which there is still room, now that the counters are locked. The counter of a key with a limit may not be among those. */
function chooseWithin({ organisation, tenants, keys }: FreeSlots, emails: readonly WaitingEmail[], limits: SendLimits): WaitingEmail[] {
  const [ofTenants, ofKeys] = [new Map(tenants), new Map(keys)]
  const chosen: WaitingEmail[] = []
  for (const email of emails) {
    const ofTenant = ofTenants.get(email.tenantId)
    const ofKey = email.keyId === null ? undefined : (ofKeys.get(email.keyId) ?? (limits.keys?.has(email.keyId) ? 0 : undefined))
    if (chosen.length === organisation || chosen.length === maxAtOnce) break
    if (ofTenant === 0 || ofKey === 0) continue
    if (ofTenant !== undefined) ofTenants.set(email.tenantId, ofTenant - 1)
    if (email.keyId !== null && ofKey !== undefined) ofKeys.set(email.keyId, ofKey - 1)
    chosen.push(email)
  }
  return chosen
}

async function settle(
  tx: Tx,
  { room, released, waiting }: { room: FreeSlots; released: readonly WaitingEmail[]; waiting: readonly Count[] },
  limits: SendLimits,
  nowMs: number,
): Promise<void> {
  const [ofTenants, ofKeys] = [sums(released, (one) => one.tenantId), sums(released, (one) => one.keyId)]
  // A key or a tenant at its own ceiling delays only its own mail; all other mail waits for the organisation's capacity.
  const waitsForKey = ({ keyId }: OfTenantAndKey) => keyId !== null && isFull(room.keys.get(keyId), ofKeys.get(keyId))
  const waitsForTenant = ({ tenantId }: OfTenantAndKey) => isFull(room.tenants.get(tenantId), ofTenants.get(tenantId))
  const [behindKeys, others] = split(waiting, waitsForKey)
  const [behindTenants, behindOrganisation] = split(others, waitsForTenant)
  const waitingOfTenants = sums(behindTenants, (one) => one.tenantId, waitingIn)
  const waitingOfKeys = sums(behindKeys, (one) => one.keyId, waitingIn)
  const outcome = {
    taken: ofTenants,
    stillWaiting: {
      organisation: behindOrganisation.reduce((sum, one) => sum + one.waiting, 0),
      tenants: new Map([...room.tenants.keys()].map((id) => [id, waitingOfTenants.get(id) ?? 0])),
    },
    keys: new Map([...room.keys.keys()].map((id) => [id, { taken: ofKeys.get(id) ?? 0, stillWaiting: waitingOfKeys.get(id) ?? 0 }])),
  }
  await settleWaiting(tx, room.test, outcome, limits, nowMs, appendEvents)
}

const nameOf = ({ tenantId, keyId }: OfTenantAndKey) => `${tenantId} ${keyId}`

const isFull = (free: number | undefined, taken = 0) => free !== undefined && free <= taken

const waitingIn = ({ waiting }: Count) => waiting

function sums<Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key, countOf: (row: Row) => number = () => 1): Map<Key, number> {
  const all = new Map<Key, number>()
  for (const row of rows) all.set(keyOf(row), (all.get(keyOf(row)) ?? 0) + countOf(row))
  return all
}

const split = <One>(list: readonly One[], belongs: (one: One) => boolean): [One[], One[]] => [
  list.filter(belongs),
  list.filter((one) => !belongs(one)),
]
