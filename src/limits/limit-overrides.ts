/**
 * Limits set by an operator: for the organisation, for a tenant within it, for one key.
 */
import { LRUCache } from 'lru-cache'
import type { Clock, Config } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'

export const organisationLimitScope = 'organisation'
export const tenantLimitScope = (tenantId: string) => `tenant:${tenantId}`
export const tenantIdOf = (scope: string) => scope.slice('tenant:'.length)
export const keyLimitScope = (credentialId: number) => `key:${credentialId}`
export const keyIdOf = (scope: string) => Number(scope.slice('key:'.length))

/** Emails per clock hour; null is unlimited. */
export interface SendLimits {
  organisation: number | null
  /** Tenants with a lower ceiling of their own. */
  ceilings: ReadonlyMap<string, number>
  /** Keys with a limit of their own, by id. */
  keys?: ReadonlyMap<number, number>
}

interface Row {
  scope: string
  rate: number | null
  send: number | null
  unlimited: boolean
}

const allSettings = sql<Row>`
  select scope, rate_per_second as rate, send_per_hour as send, send_unlimited as unlimited
  from limit_overrides
  order by scope`

const saveSetting = sql`
  insert into limit_overrides (scope, rate_per_second, send_per_hour, send_unlimited)
  values ($1, $2, $3, $4)
  on conflict (scope) do update
  set rate_per_second = case when $5::boolean then excluded.rate_per_second else limit_overrides.rate_per_second end,
      send_per_hour = case when $6::boolean then excluded.send_per_hour else limit_overrides.send_per_hour end,
      send_unlimited = case when $6 then excluded.send_unlimited else limit_overrides.send_unlimited end`

const dropSettings = sql`
  delete from limit_overrides
  where scope = $1`

const dropSettingsOfKeys = sql`
  delete from limit_overrides
  where scope = any($1)
    and not exists (select from send_limit_usage where send_limit_usage.scope = limit_overrides.scope and waiting > 0)`

const dropCountersOfKeys = sql`
  delete from send_limit_usage
  where scope = any($1) and waiting = 0`

const sendLimitsOfKeys = sql<{ scope: string; send: number | null }>`
  select scope, send_per_hour as send
  from limit_overrides
  where scope = any($1)`

/** Removes the limits of revoked keys. Their emails that wait for slots keep the send limit. */
export async function removeLimitsOfKeys(tx: Tx, credentialIds: readonly number[]): Promise<void> {
  const scopes = credentialIds.map(keyLimitScope)
  await tx.run(dropSettingsOfKeys, [scopes])
  await tx.run(dropCountersOfKeys, [scopes])
}

/** The send limits of those keys that have one. */
export async function listSendLimitsOfKeys(on: Queryable, credentialIds: readonly number[]): Promise<Map<number, number>> {
  const rows = await on.rows(sendLimitsOfKeys, [credentialIds.map(keyLimitScope)])
  return new Map(rows.flatMap(({ scope, send }) => (send === null ? [] : [[keyIdOf(scope), send] as const])))
}

/** Removes the ceiling of a deleted tenant. */
export const removeLimitsOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropSettings, [tenantLimitScope(tenantId)])

/**
 * Changes the given limits and keeps the rest: `ratePerSecond` of all keys or one, `sendPerHour` of the organisation, a tenant or a key.
 * null removes one, as does 'unlimited' that of a tenant or a key.
 */
export async function setLimits(
  on: Queryable,
  scope: string,
  { ratePerSecond, sendPerHour }: { ratePerSecond?: number | null; sendPerHour?: number | 'unlimited' | null },
): Promise<void> {
  await on.run(saveSetting, [
    scope,
    ratePerSecond ?? null,
    typeof sendPerHour === 'number' ? sendPerHour : null,
    sendPerHour === 'unlimited',
    ratePerSecond !== undefined,
    sendPerHour !== undefined,
  ])
}

/** null: the environment's setting applies, or for a tenant or a key the organisation's. */
export interface SetLimits {
  scope: string
  ratePerSecond: number | null
  sendPerHour: number | 'unlimited' | null
}

/** The configured limits by subject; subjects without a limit are left out. */
export async function listLimits(on: Queryable): Promise<SetLimits[]> {
  const listed = (await on.rows(allSettings)).map(({ scope, rate, send, unlimited }) => ({
    scope,
    ratePerSecond: rate,
    sendPerHour: unlimited && scope === organisationLimitScope ? ('unlimited' as const) : send,
  }))
  return listed.filter(({ ratePerSecond, sendPerHour }) => ratePerSecond !== null || sendPerHour !== null)
}

/** A change applies in every process within this time. */
const cacheMs = 1000

export interface LimitSettings {
  send(): Promise<SendLimits>
  /** Requests per second of one key; null is unlimited. */
  rateOf(credentialId: number): Promise<number | null>
  /**
   * The rate of keys without a rate of their own, as last read. Requests without a key count by it, even while the database is
   * unavailable.
   */
  usualRate(): number | null
  /** Clears the cache after this process changed a limit. */
  forget(): void
}

export function openLimitSettings({
  db,
  clock,
  config,
}: {
  db: Db
  clock: Clock
  config: Pick<Config, 'rateLimit' | 'sendLimit'>
}): LimitSettings {
  let usual = config.rateLimit
  const open = () =>
    new LRUCache<'all', { rates: Map<string, number>; send: SendLimits }>({
      max: 1,
      ttl: cacheMs,
      // Reads the clock on each call, like `remembered`.
      ttlResolution: 0,
      perf: { now: () => clock.monotonicMs() },
      fetchMethod: async () => {
        const rows = await db.rows(allSettings)
        const organisation = rows.find((row) => row.scope === organisationLimitScope)
        const rates = new Map<string, number>()
        const ceilings = new Map<string, number>()
        const keys = new Map<number, number>()
        for (const row of rows) {
          if (row.rate !== null) rates.set(row.scope, row.rate)
          if (row.scope.startsWith('tenant:') && row.send !== null) ceilings.set(tenantIdOf(row.scope), row.send)
          if (row.scope.startsWith('key:') && row.send !== null) keys.set(keyIdOf(row.scope), row.send)
        }
        usual = rates.get(organisationLimitScope) ?? config.rateLimit
        const limit = organisation?.unlimited ? null : (organisation?.send ?? config.sendLimit)
        return { rates, send: { organisation: limit, ceilings, keys } }
      },
    })
  let cache = open()
  const current = async () => {
    const settings = await cache.fetch('all')
    if (!settings) throw new Error('failed to read the limits')
    return settings
  }
  return {
    send: async () => (await current()).send,
    usualRate() {
      void current().catch(() => undefined)
      return usual
    },
    // Not clear(), which would fail a lookup in progress.
    forget() {
      cache = open()
    },
    async rateOf(credentialId) {
      const { rates } = await current()
      return rates.get(keyLimitScope(credentialId)) ?? rates.get(organisationLimitScope) ?? config.rateLimit
    },
  }
}
