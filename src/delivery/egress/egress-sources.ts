/**
 * Egress sources: the addresses that mail is sent from, in pools, which are assigned to tenants and tags. Without sources the operating
 * system chooses. A change by the operator applies in every process within a second. A process uses only the addresses of its own machine.
 */
import { createServer, isIP, SocketAddress } from 'node:net'
import { type Clock, cached, type Log, Refusal } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { recordOperatorAction } from '#events'
import { type PathAddresses, pathAddressesOf } from './next-source.ts'
import { deleteWarmUp } from './warm-up.ts'

export const defaultPool = 'default'

export interface EgressSource {
  address: string
  /** null: POSTRIDER_HOSTNAME. */
  ehloName: string | null
  pool: string
  warmUpFrom: Date | null
}

export interface PoolAssignment {
  /** '': any tenant. */
  tenantId: string
  /** '': any tag. */
  tag: string
  pool: string
}

const sourceColumns = sql.part`address, ehlo_name as "ehloName", pool, warm_up_from as "warmUpFrom"`

const allSources = sql<EgressSource>`
  select ${sourceColumns}
  from egress_sources
  order by pool, added_at, address`

const allAssignments = sql<PoolAssignment>`
  select tenant_id as "tenantId", tag, pool
  from pool_assignments
  order by pool, tenant_id, tag`

const putSource = sql`
  insert into egress_sources (address, ehlo_name, pool, warm_up_from, added_at)
  values ($1, $2, $3, $4, $5)
  on conflict (address) do update
  set ehlo_name = excluded.ehlo_name, pool = excluded.pool, warm_up_from = excluded.warm_up_from,
    warm_up_notified_day = case when egress_sources.warm_up_from = excluded.warm_up_from then egress_sources.warm_up_notified_day else 0 end`

const dropSource = sql`
  delete from egress_sources
  where address = $1`

const putAssignment = sql`
  insert into pool_assignments (tenant_id, tag, pool)
  values ($1, $2, $3)
  on conflict (tenant_id, tag) do update
  set pool = excluded.pool`

const dropAssignment = sql`
  delete from pool_assignments
  where tenant_id = $1 and tag = $2`

const dropAssignmentsOf = sql`
  delete from pool_assignments
  where tenant_id = $1`

/** Removes the assignments of a deleted tenant; they would keep their pools from losing the last address. */
export const removeAssignmentsOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropAssignmentsOf, [tenantId])

/** Serialises the commands: each reads both tables before it changes one. */
const oneAtATime = (tx: Tx) => tx.script('lock table egress_sources in share row exclusive mode')

export const listSources = (on: Queryable): Promise<EgressSource[]> => on.rows(allSources)
export const listAssignments = (on: Queryable): Promise<PoolAssignment[]> => on.rows(allAssignments)

const refused = (message: string, suggestion: string) => new Refusal('validation_error', { message, suggestion })

/** Normalises an address; refuses any text that is not the address of a single host. */
function sourceAddress(text: string): string {
  const family = isIP(text)
  const suggestion = 'Use an IPv4 or IPv6 address of this machine'
  if (family === 0 || text.includes('%')) throw refused(`"${text}" is not an IP address`, suggestion)
  const { address } = new SocketAddress({ address: text, family: family === 6 ? 'ipv6' : 'ipv4' })
  const isMany = address === '0.0.0.0' || address === '::' || /^(?:22[4-9]|23\d|255)\./.test(address) || /^(?:ff|::ffff:)/i.test(address)
  if (isMany) throw refused(`mail cannot be sent from ${address}`, suggestion)
  return address
}

function poolName(text: string): string {
  if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(text)) throw refused(`"${text}" is not a pool name`, 'Use lower-case letters, digits, - and _')
  return text
}

export interface NewSource {
  address: string
  ehloName: string | null
  pool: string
  warmUp: 'from now' | 'none'
}

/** Adds a source, or changes an existing one; a running warm-up continues. Refuses `validation_error`. */
export function addSource(db: Db, wanted: NewSource, nowMs: number): Promise<EgressSource> {
  const address = sourceAddress(wanted.address)
  const pool = poolName(wanted.pool)
  if (wanted.ehloName !== null && !/^(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$/i.test(wanted.ehloName))
    throw refused(`"${wanted.ehloName}" is not a host name`, 'Use the name in the PTR record of the address')
  return db.transaction(async (tx) => {
    await oneAtATime(tx)
    const known = (await listSources(tx)).find((one) => one.address === address)
    if (known && known.pool !== pool) await refuseIfLast(tx, known)
    const warmUpFrom = wanted.warmUp === 'none' ? null : (known?.warmUpFrom ?? new Date(nowMs))
    if (known?.warmUpFrom == null) await deleteWarmUp(tx, address)
    const source = { address, ehloName: wanted.ehloName, pool, warmUpFrom }
    await tx.run(putSource, [address, wanted.ehloName, pool, warmUpFrom, new Date(nowMs)])
    await recordOperatorAction(tx, nowMs, { action: 'source add', ...source })
    return source
  })
}

/** An assigned pool must not lose its last address. */
async function refuseIfLast(tx: Tx, source: EgressSource): Promise<void> {
  const others = (await listSources(tx)).some((one) => one.pool === source.pool && one.address !== source.address)
  if (!others && (await listAssignments(tx)).some((one) => one.pool === source.pool))
    throw refused(
      `${source.address} is the last address of pool ${source.pool}, which has assigned mail`,
      'Assign that mail to another pool first (postrider pool list)',
    )
}

/** Refuses `not_found`, and the last address of an assigned pool. */
export function removeSource(db: Db, text: string, nowMs: number): Promise<EgressSource> {
  const address = sourceAddress(text)
  return db.transaction(async (tx) => {
    await oneAtATime(tx)
    const source = (await listSources(tx)).find((one) => one.address === address)
    if (!source)
      throw new Refusal('not_found', {
        message: `${address} is not an egress source`,
        suggestion: 'Run postrider source list for all addresses',
      })
    await refuseIfLast(tx, source)
    await tx.run(dropSource, [address])
    await deleteWarmUp(tx, address)
    await recordOperatorAction(tx, nowMs, { action: 'source remove', address, pool: source.pool })
    return source
  })
}

/** It is in the primary key of the assignments, whose entries have at most 2,704 octets. */
const maxTagOctets = 2000

/** Mail of the tenant, of the tag, or of both together is sent from this pool only. Refuses a pool without addresses. */
export function assignPool(db: Db, wanted: PoolAssignment, nowMs: number): Promise<void> {
  const pool = poolName(wanted.pool)
  if (Buffer.byteLength(wanted.tag) > maxTagOctets) throw refused(`the tag is longer than ${maxTagOctets} octets`, 'Use a shorter tag')
  return db.transaction(async (tx) => {
    await oneAtATime(tx)
    if (!(await listSources(tx)).some((one) => one.pool === pool))
      throw refused(`pool ${pool} has no addresses`, `Add an address first: postrider source add ADDRESS --pool ${pool}`)
    await tx.run(putAssignment, [wanted.tenantId, wanted.tag, pool])
    await recordOperatorAction(tx, nowMs, { action: 'pool assign', ...wanted })
  })
}

/** Returns whether it was assigned. */
export function unassignPool(db: Db, place: Omit<PoolAssignment, 'pool'>, nowMs: number): Promise<boolean> {
  return db.transaction(async (tx) => {
    if ((await tx.run(dropAssignment, [place.tenantId, place.tag])) === 0) return false
    await recordOperatorAction(tx, nowMs, { action: 'pool unassign', ...place })
    return true
  })
}

export interface EgressPoolMembers {
  name: string
  /** Empty if this machine lacks all of the pool's addresses. */
  pathSets: readonly PathAddresses<EgressSource>[]
}

export interface Pools {
  /** There are no sources, so no further query is needed. */
  readonly isEmpty: boolean
  /** Tags by which this tenant's mail may be assigned. */
  tagsFor(tenantId: string): string[]
  /** undefined: the operating system chooses the address. */
  poolOf(tenantId: string, tag: string | null): EgressPoolMembers | undefined
}

/** `hasAddress`: whether this machine can send from the address. */
export function poolsOf(
  sources: readonly EgressSource[],
  assignments: readonly PoolAssignment[],
  hasAddress: (address: string) => boolean,
): Pools {
  const pools = new Map<string, EgressPoolMembers>()
  for (const [name, some] of Map.groupBy(sources, (one) => one.pool)) {
    const mine = some.filter((one) => hasAddress(one.address))
    const of = (family: number) => mine.filter((one) => isIP(one.address) === family)
    pools.set(name, { name, pathSets: pathAddressesOf(of(4), of(6)) })
  }
  const key = (tenantId: string, tag: string) => JSON.stringify([tenantId, tag])
  const assigned = new Map(assignments.map(({ tenantId, tag, pool }) => [key(tenantId, tag), pool]))
  return {
    isEmpty: pools.size === 0,
    tagsFor: (tenantId) =>
      assignments.filter((one) => one.tag !== '' && (one.tenantId === '' || one.tenantId === tenantId)).map((one) => one.tag),
    // An assignment for a tenant takes precedence over one for a tag, because any tenant can use any tag.
    poolOf(tenantId, tag) {
      const name =
        (tag === null ? undefined : assigned.get(key(tenantId, tag))) ??
        assigned.get(key(tenantId, '')) ??
        (tag === null ? undefined : assigned.get(key('', tag))) ??
        defaultPool
      return pools.get(name) ?? (name === defaultPool ? undefined : { name, pathSets: [] })
    },
  }
}

/** How long the check whether this machine has an address is cached. */
const believedMs = 10_000

/** The pools as this machine can use them, cached for at most a second. */
export function openSources({ db, clock, log }: { db: Db; clock: Clock; log: Log }): { current(): Promise<Pools> } {
  const known = new Map<string, { has: boolean; untilMs: number }>()
  const look = async (address: string) => {
    const before = known.get(address)
    if (before && clock.monotonicMs() < before.untilMs) return
    const has = await canBind(address)
    if (!has && before?.has !== false)
      log.warn({ address }, 'this machine does not have the source address; other machines may send from it')
    known.set(address, { has, untilMs: clock.monotonicMs() + believedMs })
  }
  const pools = cached(clock, async () => {
    const [sources, assignments] = await Promise.all([listSources(db), listAssignments(db)])
    await Promise.all(sources.map((one) => look(one.address)))
    const named = new Set(sources.map((one) => one.address))
    for (const address of known.keys()) if (!named.has(address)) known.delete(address)
    return poolsOf(sources, assignments, (address) => known.get(address)?.has === true)
  })
  return { current: () => pools.get('') }
}

/** Tries to bind, because interfaces do not list every usable address (127.0.0.2, for example). */
export function canBind(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false))
    server.listen({ host, port: 0, exclusive: true, ipv6Only: isIP(host) === 6 }, () => server.close(() => resolve(true)))
  })
}
