/**
 * Sending domains, their DKIM keys, and the verification of their DNS records.
 * Owns: domains, platform_keys, dkim_keys. Uses: base, mail, dkim, net, simulator, db, tenants. Used by: tracking, accept, delivery,
 * domain-reports, tls-reports, received-mail, housekeeping, installation, mta-sts, dns-updates, doctor, resend, ses, mailgun, imports, inbound,
 * http, cli, main.
 * Promises: private keys are sealed in the database and leave this module only as signing keys; they are parsed once. A check takes at
 * most ten seconds, and a failing resolver changes no domain.
 */

import { createPrivateKey } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { atMost, type Clock, cached, type Secrets } from '#base'
import { type Db, type Queryable, sql } from '#db'
import type { SigningKey } from '#dkim'
import { ed25519Selector } from './dns-records.ts'
import { platformSigningKey } from './platform-key.ts'
import { type Domain, domainColumns } from './queries.ts'
import { sealNameOf } from './sealed-keys.ts'

export { addDomain, makeDomain, type OwnKey } from './add-domain.ts'
export { dnsErrorOf, openDueDomains, saveCheck } from './check-schedule.ts'
export { type DmarcPolicy, dmarcPolicies, dmarcPolicyOf, findDmarcRecord } from './dmarc-record.ts'
export {
  type DnsRecord,
  nameInZone,
  reportAuthorisationOf,
  requiredRecords,
  returnPathDomainOf,
  returnPathLabel,
  tlsReportName,
} from './dns-records.ts'
export { ensurePlatformKey } from './platform-key.ts'
export { type PlatformRecord, platformRecords } from './platform-records.ts'
export {
  type CheckedDomain,
  type Domain,
  findDomainById,
  findDomainByUuid,
  listDomains,
  listVerifiedIds,
  removeDomain,
  removeDomainsOfTenant,
  trustDomain,
} from './queries.ts'
export {
  isFullRound,
  listDkimTargets,
  listDomainKeys,
  type RotationDeps,
  requestRotation,
  rotateDueDomains,
  type ShownKeys,
} from './rotate-keys.ts'
export { cancelRotation, digestDkimTargets, type OtherKey } from './rotation-keys.ts'
export { keyRetentionMs } from './rotation-step.ts'
export { sealedOfDomains } from './sealed-keys.ts'
export { type DomainService, type DomainView, openDomainService } from './service.ts'
export { checkDomain } from './verify-records.ts'

const domainByName = sql<Domain>`
  select ${domainColumns}
  from domains
  where tenant_id = $1 and name = $2`

interface SealedKeys {
  uuid: string
  name: string
  selector: string
  rsaPrivate: Buffer
  rsaPublic: string
  ed25519Private: Buffer
  signsEd25519: boolean
}

const sealedKeys = sql<SealedKeys>`
  select uuid, name, selector, rsa_private as "rsaPrivate", rsa_public as "rsaPublic", ed25519_private as "ed25519Private", signs_ed25519 as "signsEd25519"
  from domains
  where tenant_id = $1 and id = $2`

const domainOfAnyTenant = sql<{ id: number }>`
  select id
  from domains
  where name = $1
  limit 1`

/** Whether any tenant has this sending domain (A-labels, lower case). */
export const isSendingDomain = async (on: Queryable, name: string): Promise<boolean> =>
  (await on.first(domainOfAnyTenant, [name])) !== undefined

/** A change of a domain is in force in every process within this time. */
const cacheMs = 900

export interface Domains {
  /** The tenant's domain of this name (A-labels, lower case), verified or not. */
  find(tenantId: string, name: string): Promise<Domain | undefined>
  /** The keys that sign for a domain, RSA first; undefined if the domain was deleted. */
  signingKeys(tenantId: string, domainId: number, withEd25519: boolean): Promise<SigningKey[] | undefined>
  /** The key of one of the platform's own domains, if it was created. */
  platformKeys(name: string): Promise<SigningKey[]>
  /** Clears the cache after this process changed a domain. */
  forget(): void
}

interface ParsedKeys {
  uuid: string
  signsEd25519: boolean
  rsaPublic: string
  rsa: SigningKey
  ed25519: SigningKey
}

export function openDomains({ db, clock, secrets }: { db: Db; clock: Clock; secrets: Secrets }): Domains {
  const perf = { now: () => clock.monotonicMs() }
  const platform = cached(clock, async (name) => {
    const key = await platformSigningKey(db, name, secrets)
    return key ? [key] : []
  })
  const known = cached(clock, (key) => db.first(domainByName, key.split(' ')))
  // A pair of keys is parsed once; whether it still signs for the domain is checked again after the cache time.
  const keys = new LRUCache<string, ParsedKeys | { gone: true }>({
    ...atMost(10_000),
    ttl: cacheMs,
    // Reads the clock each time, as `cached` does.
    ttlResolution: 0,
    perf,
    fetchMethod: async (key, known) => {
      const row = await db.first(sealedKeys, key.split(' '))
      if (!row) return { gone: true }
      const { signsEd25519 } = row
      // Two rotations return to the selector with another key, so the key itself is compared.
      if (known && 'uuid' in known && known.uuid === row.uuid && known.rsa.selector === row.selector && known.rsaPublic === row.rsaPublic)
        return known.signsEd25519 === signsEd25519 ? known : { ...known, signsEd25519 }
      const open = (algorithm: 'rsa' | 'ed25519', sealed: Buffer, selector: string): SigningKey => ({
        domain: row.name,
        selector,
        algorithm,
        privateKey: createPrivateKey(secrets.open(sealNameOf(algorithm)(row.uuid), sealed).toString()),
      })
      return {
        uuid: row.uuid,
        signsEd25519,
        rsaPublic: row.rsaPublic,
        rsa: open('rsa', row.rsaPrivate, row.selector),
        ed25519: open('ed25519', row.ed25519Private, ed25519Selector(row.selector)),
      }
    },
  })
  return {
    find: (tenantId, name) => known.get(`${tenantId} ${name}`),
    platformKeys: (name) => platform.get(name),
    async signingKeys(tenantId, domainId, withEd25519) {
      const found = await keys.fetch(`${tenantId} ${domainId}`)
      if (!found || 'gone' in found) return undefined
      return withEd25519 && found.signsEd25519 ? [found.rsa, found.ed25519] : [found.rsa]
    },
    forget: () => known.clear(),
  }
}
