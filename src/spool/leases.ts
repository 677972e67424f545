/**
 * Leases: which process owns which part of some work (shards of the spool, webhook endpoints). A living process renews its heartbeat. The
 * others watch it by their own monotonic clocks, so that no wall clock and no other machine's clock decides. The process that first
 * notices a heartbeat unchanged for one lease period removes its owner, in a transaction that checks the heartbeat once more, and the
 * shards become free. An owner trusts its lease for three quarters of that period after it *started* its last renewal.
 */
import { type Clock, type Failpoint, type Log, metrics } from '#base'
import { type Db, type Queryable, type Sql, sql } from '#db'
import type { OwnedShard } from './claim.ts'
import { DrainingShards } from './draining-shards.ts'
import { shardCount } from './shards.ts'

const register = sql`
  insert into delivery_processes (id, heartbeat)
  values ($1, 0)`

const renewHeartbeat = sql<{ shard: number | null; epoch: number | null }>`
  with me as (
    update delivery_processes
    set heartbeat = heartbeat + 1
    where id = $1
    returning id
  )
  select shard_leases.shard, shard_leases.epoch
  from me
  left join shard_leases on shard_leases.owner = me.id`

const listHeartbeats = sql<{ id: string; heartbeat: number }>`
  select id, heartbeat
  from delivery_processes`

const removeProcess = sql`
  delete from delivery_processes
  where id = $1 and heartbeat = $2`

/** A process that was removed as dead but still runs continues under a longer name. */
const removeEnded = sql<{ id: string }>`
  delete from delivery_processes
  where starts_with(id, $1)
  returning id`

const freeShardsOf = sql`
  update shard_leases
  set owner = null
  where owner = any($1)`

const takeShards = sql<OwnedShard>`
  with free as materialized (
    select shard
    from shard_leases
    where owner is null
      -- Compared as pairs, so that a shard is not taken from a process that registered and took it after this statement began.
      or (shard, owner) in (
        select orphan.shard, orphan.owner
        from shard_leases as orphan
        where orphan.owner not in (select id from delivery_processes)
      )
    order by shard
    limit $2
    for update skip locked
  )
  update shard_leases
  set owner = $1, epoch = epoch + 1
  from free
  where shard_leases.shard = free.shard
  returning shard_leases.shard, epoch`

const freeShard = sql`
  update shard_leases
  set owner = null
  where owner = $1 and shard = any($2)`

/** A kind of leased work: the statements on its tables, in which the number of a part is called a shard. */
export interface Leased {
  /** $1: the process. */
  register: Sql<unknown>
  /** $1: the process. Returns no row if it was removed, otherwise one for each part it owns, or one without a part. */
  renewHeartbeat: Sql<{ shard: number | null; epoch: number | null }>
  listHeartbeats: Sql<{ id: string; heartbeat: number }>
  /** $1, $2: the process, and the heartbeat it must still have. */
  removeProcess: Sql<unknown>
  /** $1: the start of its names. */
  removeEnded: Sql<{ id: string }>
  /** $1: processes. */
  freeAllOf: Sql<unknown>
  /** $1: the process; $2: the maximum number. Takes free parts, and those of processes that were removed. */
  take: Sql<OwnedShard>
  /** $1: the process; $2: the parts. */
  free: Sql<unknown>
  /** The number of parts. */
  count(db: Db): Promise<number>
  /** Busy parts may be set aside too, so that they become idle. Work on them goes on meanwhile, and no other begins. */
  drainsBusy?: true
  /** Shows the number of parts that this process owns. */
  gauge?: { set(owned: number): void }
}

export const shardLeases: Leased = {
  register,
  renewHeartbeat,
  listHeartbeats,
  removeProcess,
  removeEnded,
  freeAllOf: freeShardsOf,
  take: takeShards,
  free: freeShard,
  count: () => Promise.resolve(shardCount),
  drainsBusy: true,
  gauge: metrics.ownedShards,
}

const heartbeatsPerLease = 4
/** Between ticks while shards change owners, so that they do so quickly when processes start and stop. */
const changingTurnMs = 400
const believedPart = 0.75

export interface LeaseDeps {
  db: Db
  clock: Clock
  log: Log
  /** Never used by another process, past or present. */
  processId: string
  newProcessId: () => string
  leaseMs: number
  leased: Leased
  /** Whether the shard has no recipient in flight: a surplus shard is given up once it is idle. */
  isIdle: (shard: number) => boolean
  /** Called where a crash test may inject a failure. */
  failpoint?: Failpoint | undefined
}

/**
 * Removes a process that has certainly ended, including the later names it continued under, so that its shards need not wait for the lease
 * to expire.
 */
export async function deregisterProcess(db: Db, leased: Leased, processId: string): Promise<void> {
  await db.transaction(async (tx) => {
    const names = (await tx.rows(leased.removeEnded, [processId])).map((one) => one.id)
    await tx.run(leased.freeAllOf, [[processId, ...names]])
  })
}

/** The names of the delivery processes that were not removed as dead. */
export const livingProcesses = async (on: Queryable): Promise<string[]> => (await on.rows(listHeartbeats)).map((one) => one.id)

/** Registers the process, which then owns no shard. */
export async function openLeases(deps: LeaseDeps): Promise<Leases> {
  await deps.db.run(deps.leased.register, [deps.processId])
  return new Leases(deps)
}

const byShard = (owned: readonly OwnedShard[]) => new Map(owned.map((one) => [one.shard, one]))

export class Leases {
  /** Milliseconds between ticks while shards change owners. */
  readonly everyMs: number
  readonly #deps: LeaseDeps
  #processId: string
  #believedUntilMs = 0
  /** By shard, because every request of a webhook asks whether it is still owned. */
  #mine: ReadonlyMap<number, OwnedShard> = new Map()
  /** Shards above the fair share: no longer claimed from, and given up once idle. */
  #leaving = new Set<number>()
  readonly #draining = new DrainingShards()
  #seen = new Map<string, { heartbeat: number; sinceMs: number }>()

  constructor(deps: LeaseDeps) {
    this.#deps = deps
    this.#processId = deps.processId
    this.everyMs = Math.min(deps.leaseMs / heartbeatsPerLease, changingTurnMs)
  }

  /** The shards that may be worked on now; empty when the lease has expired. */
  owned(): readonly OwnedShard[] {
    return this.isBelieved() ? [...this.#mine.values()].filter((one) => !this.#leaving.has(one.shard)) : []
  }

  /** Whether the lease has not expired. */
  isBelieved(): boolean {
    return this.#deps.clock.monotonicMs() < this.#believedUntilMs
  }

  /** Checked right before a final dot, by the monotonic clock. */
  owns(shard: number, epoch: number): boolean {
    return this.isBelieved() && this.#mine.get(shard)?.epoch === epoch
  }

  /**
   * One tick: renew the heartbeat, watch the others, take free shards or give up surplus ones. Returns the milliseconds until the next.
   * Rejects if the database is unavailable.
   */
  async tick(): Promise<number> {
    const { db, leased } = this.#deps
    try {
      const before = this.#mine.size
      const known = this.#seen.size
      await this.#renew()
      const living = await this.#watch()
      const count = await leased.count(db)
      const share = Math.ceil(count / living)
      if (this.#mine.size < share) await this.#take(share)
      else await this.#giveUpSurplus(share)
      const isSettled = this.#mine.size === before && this.#seen.size === known && this.#leaving.size === 0
      if (!isSettled) return this.everyMs
      // A process that has no shard and could not get one only needs to be seen alive.
      return this.#deps.leaseMs / (count === 0 ? 2 : heartbeatsPerLease)
    } catch (error) {
      // While the database is unavailable no heartbeat can change, so earlier observations do not show which processes live.
      this.#seen = new Map()
      throw error
    } finally {
      leased.gauge?.set(this.isBelieved() ? this.#mine.size : 0)
    }
  }

  /** Gives up all shards; no recipient may be in flight any more. */
  async close(): Promise<void> {
    const { db, leased } = this.#deps
    this.#mine = new Map()
    this.#believedUntilMs = 0
    await deregisterProcess(db, leased, this.#processId)
  }

  async #renew(): Promise<void> {
    const { db, clock, log, leased, leaseMs, newProcessId } = this.#deps
    const beganMs = clock.monotonicMs()
    const rows = await db.rows(leased.renewHeartbeat, [this.#processId])
    if (rows.length === 0) {
      log.warn({ process: this.#processId }, 'another process declared this process dead; restarting with a new id')
      this.#mine = new Map()
      this.#leaving = new Set()
      this.#processId = newProcessId()
      await db.run(leased.register, [this.#processId])
      return
    }
    this.#mine = byShard(rows.flatMap(({ shard, epoch }) => (shard === null || epoch === null ? [] : [{ shard, epoch }])))
    this.#believedUntilMs = beganMs + leaseMs * believedPart
  }

  /** Removes processes whose heartbeat has not changed for a lease period; returns the number of living ones. */
  async #watch(): Promise<number> {
    const { db, clock, leased, leaseMs } = this.#deps
    const askedMs = clock.monotonicMs()
    const heartbeats = await db.rows(leased.listHeartbeats)
    // A heartbeat was read at an unknown time between the two, so that its age counts from the later to the earlier: the wait for a slow
    // read is no time in which the heartbeat stood still.
    const readMs = clock.monotonicMs()
    const before = this.#seen
    this.#seen = new Map(
      heartbeats.map(({ id, heartbeat }) => {
        const known = before.get(id)
        return [id, known && known.heartbeat === heartbeat ? known : { heartbeat, sinceMs: readMs }]
      }),
    )
    let living = 0
    for (const [id, { heartbeat, sinceMs }] of this.#seen) {
      if (id === this.#processId || askedMs - sinceMs < leaseMs) living++
      else await this.#remove(id, heartbeat)
    }
    return Math.max(1, living)
  }

  async #remove(id: string, heartbeat: number): Promise<void> {
    const { db, log, leased } = this.#deps
    await db.transaction(async (tx) => {
      if ((await tx.run(leased.removeProcess, [id, heartbeat])) === 1) {
        await tx.run(leased.freeAllOf, [[id]])
        log.warn({ process: id }, 'a process stopped its heartbeat; its leases are released')
      }
    })
  }

  async #take(share: number): Promise<void> {
    const { db, leased, failpoint } = this.#deps
    this.#leaving.clear()
    const taken = await db.rows(leased.take, [this.#processId, share - this.#mine.size])
    if (taken.length > 0) failpoint?.('shards-taken')
    this.#mine = byShard([...this.#mine.values(), ...taken])
  }

  async #giveUpSurplus(share: number): Promise<void> {
    const { db, clock, leased, isIdle } = this.#deps
    const idle = [...this.#leaving].filter(isIdle).slice(0, this.#mine.size - share)
    if (idle.length > 0) {
      const givenUp = new Set(idle)
      this.#mine = byShard([...this.#mine.values()].filter((one) => !givenUp.has(one.shard)))
      await db.run(leased.free, [this.#processId, idle])
    }
    const surplus = this.#mine.size - share
    if (idle.length > 0 || surplus === 0) this.#draining.reset()
    // Idle shards are set aside for one tick, busy ones only if that does not suffice: other mail of the shard waits meanwhile.
    const { true: free = [], false: busy = [] } = Object.groupBy(this.#mine.keys(), (shard) => (isIdle(shard) ? 'true' : 'false'))
    const leaving = free.slice(0, surplus)
    const drained = leased.drainsBusy ? this.#draining.choose(busy, surplus - leaving.length, clock.monotonicMs()) : []
    this.#leaving = new Set([...leaving, ...drained])
  }
}
