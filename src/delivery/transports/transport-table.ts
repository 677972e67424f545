/**
 * The transports and rules in force, as one table for each process that claims mail: the rule of an email, and the chain of a transport.
 * Cached for at most a second.
 */
import { type Clock, cached } from '#base'
import { listRules, listTransports, type Transport, type TransportDeps, type TransportRule } from './transport-records.ts'
import type { TransportSlots } from './transport-shares.ts'

export interface TransportTable {
  /** There are no rules, so no further query is needed. */
  readonly isEmpty: boolean
  /** Whether a rule may match mail of this tenant. */
  hasRules(tenantId: string): boolean
  /** Whether a rule for this tenant names a sending domain. */
  hasDomains(tenantId: string): boolean
  /** Tags that rules for this tenant name. */
  tagsFor(tenantId: string): string[]
  /** The slots of mail; undefined: no rule matches. */
  slotsFor(mail: { tenantId: string; domain: string | null; tag: string | null }): TransportSlots | undefined
  /** The transport and its fallbacks in order, up to the first without failover; the default follows, unless that one is the last. */
  chainOf(name: string): readonly Transport[]
}

/** Ends at a name that is missing or came before, although a save refuses both. */
function chainFrom(first: Transport, byName: ReadonlyMap<string, Transport>): Transport[] {
  const chain: Transport[] = []
  for (let next: Transport | undefined = first; next && !chain.includes(next); ) {
    chain.push(next)
    next = next.failover && next.fallback !== null ? byName.get(next.fallback) : undefined
  }
  return chain
}

/** The most specific rule wins: a sending domain before a tenant, a tenant before a tag. */
export function tableOf(transports: readonly Transport[], rules: readonly TransportRule[]): TransportTable {
  const byName = new Map(transports.map((one) => [one.name, one]))
  const key = (tenantId: string, domain: string, tag: string) => JSON.stringify([tenantId, domain, tag])
  const byScope = new Map(rules.map((one) => [key(one.tenantId, one.domain, one.tag), one.slots]))
  const tenants = new Set(rules.map((one) => one.tenantId))
  const chains = new Map(transports.map((one) => [one.name, chainFrom(one, byName)]))
  const isFor = (tenantId: string) => (one: TransportRule) => one.tenantId === '' || one.tenantId === tenantId
  return {
    isEmpty: rules.length === 0,
    hasRules: (tenantId) => tenants.has('') || tenants.has(tenantId),
    hasDomains: (tenantId) => rules.some((one) => one.domain !== '' && isFor(tenantId)(one)),
    tagsFor: (tenantId) => [...new Set(rules.filter((one) => one.tag !== '' && isFor(tenantId)(one)).map((one) => one.tag))],
    slotsFor({ tenantId, domain, tag }) {
      for (const wantedDomain of domain === null ? [''] : [domain, ''])
        for (const wantedTenant of [tenantId, ''])
          for (const wantedTag of tag === null ? [''] : [tag, '']) {
            const slots = byScope.get(key(wantedTenant, wantedDomain, wantedTag))
            if (slots) return slots
          }
      return undefined
    },
    chainOf: (name) => chains.get(name) ?? [],
  }
}

/** The transports and rules in force, cached for at most a second. */
export function openTransports({ db, clock, secrets }: TransportDeps & { clock: Clock }): { current(): Promise<TransportTable> } {
  const table = cached(clock, async () => {
    const rules = await listRules(db)
    return tableOf(rules.length === 0 ? [] : await listTransports(db, secrets), rules)
  })
  return { current: () => table.get('') }
}
