/** Sending domains as requests use them: add, show, check now. Deletion also affects the queue and belongs to a module above. */
import { type Clock, type Ids, Refusal, type Secrets } from '#base'
import type { Db } from '#db'
import type { Resolver } from '#net'
import { type Tenants, tenantNames } from '#tenants'
import { addDomain, makeDomain } from './add-domain.ts'
import { saveCheck } from './check-schedule.ts'
import { aliasRecordsOf, rsaAliases } from './dkim-names.ts'
import { type DnsRecord, type DnsRecords, recordsOf } from './dns-records.ts'
import { type CheckedDomain, type Domain, getDomain, type ListedDomain, listDomains } from './queries.ts'
import { findDomainKeys, type ShownKeys } from './rotate-keys.ts'
import { saveNextLook } from './rotation-keys.ts'
import { checkDomain } from './verify-records.ts'

/** `D` with its tenant's name, or the tenant's id if the tenant was deleted just before the domain. */
type Named<D> = D & { tenantName: string }

export interface DomainView extends Named<CheckedDomain> {
  dnsRecords: DnsRecords
  keys: DomainKeysView
}

/** The keys of a domain with their records. */
export interface DomainKeysView extends Pick<ShownKeys, 'bits' | 'delegated' | 'keySince' | 'others' | 'usedFrom' | 'nextRecords'> {
  /** The CNAME records with which rotation needs no action of the domain's owner; empty unless Postrider writes the records they point to. */
  aliases: DnsRecord[]
}

/** A scope of null is the whole organisation. A missing domain is refused with `not_found`. */
export interface DomainService {
  /** Refuses `validation_error`, `not_found`, `tenant_archived` and `domain_already_exists`. A tenant of null is the default one. */
  create(tenantId: string | null, name: string): Promise<DomainView>
  list(scope: string | null): Promise<Named<ListedDomain>[]>
  get(id: string, scope: string | null): Promise<DomainView>
  /** Checks DNS now; answers within about ten seconds even if resolvers do not. */
  verify(id: string, scope: string | null): Promise<DomainView>
}

export interface DomainServiceDeps {
  db: Db
  clock: Clock
  ids: Ids
  secrets: Secrets
  tenants: Tenants
  resolver: Resolver
  hostname: string
  /** Postrider writes its own DNS records. */
  writesDns: boolean
}

export function openDomainService(deps: DomainServiceDeps): DomainService {
  const { db, clock, ids, secrets, tenants, hostname, writesDns } = deps

  const named = async <D extends Domain>(domains: readonly D[]): Promise<Named<D>[]> => {
    if (domains.length === 0) return []
    const names = await tenantNames(
      db,
      domains.map(({ tenantId }) => tenantId),
    )
    return domains.map((domain) => ({ ...domain, tenantName: names.get(domain.tenantId) ?? domain.tenantId }))
  }
  const shown = async (domain: CheckedDomain): Promise<DomainView> => {
    const [one] = await named([domain])
    return { ...(one as Named<CheckedDomain>), dnsRecords: recordsOf(domain, hostname, domain.findings), keys: await keysOf(domain) }
  }
  const keysOf = async (domain: Domain): Promise<DomainKeysView> => {
    const found = await findDomainKeys(db, domain)
    if (!found) throw new Refusal('not_found', { message: 'no such domain' })
    const { bits, delegated, keySince, others, usedFrom, nextRecords } = found
    const aliases = writesDns && !domain.testOnly ? aliasRecordsOf(domain, hostname) : []
    const seen = aliases.map((record, nth) => (delegated && nth < rsaAliases ? { ...record, status: 'OK' as const } : record))
    return { bits, delegated, keySince, others, usedFrom, nextRecords, aliases: seen }
  }

  return {
    async create(tenantId, name) {
      const wanted = { tenantId: tenantId ?? (await tenants.default()).id, name, trusted: false }
      const made = await makeDomain(wanted, { ids, secrets, nowMs: clock.nowMs() })
      const domain = await db.transaction((tx) => addDomain(tx, made))
      return shown({ ...domain, findings: {}, checkedAt: null, failedChecks: 0 })
    },
    list: async (scope) => named(await listDomains(db, scope)),
    get: async (id, scope) => shown(await getDomain(db, id, scope)),
    async verify(id, scope) {
      const domain = await getDomain(db, id, scope)
      const begunMs = clock.nowMs()
      const result = await checkDomain(domain, deps)
      const saved = await db.transaction((tx) => saveCheck(tx, domain, result, { by: 'request', begunMs, nowMs: clock.nowMs() }))
      if (!saved) throw new Refusal('not_found', { message: 'no such domain' })
      // Its CNAME records may be published now.
      if (writesDns) await saveNextLook(db, domain, clock.nowMs())
      return shown(saved.domain)
    },
  }
}
