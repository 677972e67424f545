/**
 * Sending domains and their DKIM keys.
 * Owns: domains. Uses: base, mail, dkim, db. Used by: tracking, accept, delivery, housekeeping, http, cli, main.
 * Promises: private keys are sealed in the database and leave this room only as signing keys; they are parsed once.
 */

import { LRUCache } from 'lru-cache'
import type { Clock, Ids, Secrets } from '#base'
import { Refusal, remembered } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { makeEd25519Key, makeRsaKey, readPrivateKey, type SigningKey } from '#dkim'
import { parseAddress } from '#mail'
import { ed25519Selector, type PublishedFacts } from './records.ts'

export { findDomainById, inZone } from './by-id.ts'
export { recordsOf } from './records.ts'

export interface Domain extends PublishedFacts {
  id: number
  uuid: string
  tenantId: string
  trusted: boolean
  verified: boolean
  verifiedAt: Date | null
  /** Usable by test keys only. */
  testOnly: boolean
  createdAt: Date
}

const selectorPrefix = 'pr-'

const domainColumns = sql.part`
  id, uuid, tenant_id as "tenantId", name, trusted, verified, verified_at as "verifiedAt", test_only as "testOnly", selector,
  rsa_public as "rsaPublic", ed25519_public as "ed25519Public", spf_status as "spfStatus", dkim_status as "dkimStatus",
  dkim_ed25519_status as "dkimEd25519Status", return_path_status as "returnPathStatus", created_at as "createdAt"`

const insertDomain = sql<Domain>`
  insert into domains (tenant_id, uuid, name, trusted, verified, verified_at, test_only, selector, rsa_private, rsa_public,
                       ed25519_private, ed25519_public, created_at)
  values ($1, $2, $3, $4, $4, case when $4 then $11::timestamptz end, $5, $6, $7, $8, $9, $10, $11)
  on conflict (tenant_id, name) do nothing
  returning ${domainColumns}`

const domainByName = sql<Domain>`
  select ${domainColumns}
  from domains
  where tenant_id = $1 and name = $2`

const sealedKeys = sql<{ uuid: string; name: string; selector: string; rsaPrivate: Buffer; ed25519Private: Buffer }>`
  select uuid, name, selector, rsa_private as "rsaPrivate", ed25519_private as "ed25519Private"
  from domains
  where tenant_id = $1 and id = $2`

/** A host name of at least two labels, as lower-case A-labels; refuses `validation_error` otherwise. */
function domainName(text: string): string {
  const address = parseAddress(`postmaster@${text}`)
  if (!address || text.includes('@')) {
    throw new Refusal('validation_error', {
      field: 'name',
      message: 'name must be a host name of at least two labels, such as mail.example.com',
    })
  }
  return address.domain
}

/**
 * Adds a sending domain with an RSA-2048 and an Ed25519 DKIM key of its own. `trusted` is the operator's override: usable without
 * DNS verification. Refuses `domain_already_exists`.
 */
export async function addDomain(
  on: Queryable,
  wanted: { tenantId: string; name: string; trusted: boolean; testOnly?: boolean },
  facts: { nowMs: number; ids: Ids; secrets: Secrets },
): Promise<Domain> {
  const name = domainName(wanted.name)
  const uuid = facts.ids.uuid()
  const rsa = await makeRsaKey()
  const ed25519 = makeEd25519Key()
  const added = await on.first(insertDomain, [
    wanted.tenantId,
    uuid,
    name,
    wanted.trusted,
    wanted.testOnly ?? false,
    selectorPrefix + facts.ids.label(6),
    facts.secrets.seal(`domain ${uuid} rsa`, Buffer.from(rsa.privateKey)),
    rsa.publicKey,
    facts.secrets.seal(`domain ${uuid} ed25519`, Buffer.from(ed25519.privateKey)),
    ed25519.publicKey,
    new Date(facts.nowMs),
  ])
  if (!added) throw new Refusal('domain_already_exists', { field: 'name', message: `name: the tenant has the domain ${name} already` })
  return added
}

const dropDomainsOf = sql`
  delete from domains
  where tenant_id = $1`

/** Every sending domain of a tenant that goes. */
export const removeDomainsOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropDomainsOf, [tenantId])

/** A change of a domain is in force everywhere within this time. */
const cacheMs = 900

export interface Domains {
  /** The tenant's domain of this name (A-labels, lower case), verified or not. */
  find(tenantId: string, name: string): Promise<Domain | undefined>
  /** The keys that sign for a domain, RSA first; undefined when the domain is gone. */
  signingKeys(tenantId: string, domainId: number, withEd25519: boolean): Promise<SigningKey[] | undefined>
  /** A domain was changed by this process, which sees it at once. */
  forget(): void
}

export function openDomains({ db, clock, secrets }: { db: Db; clock: Clock; secrets: Secrets }): Domains {
  const perf = { now: () => clock.monotonicMs() }
  const known = remembered(clock, (key) => db.first(domainByName, key.split(' ')))
  // A domain's keys never change: they are parsed once, but whether the domain is still there is asked again and again.
  const keys = new LRUCache<string, { uuid: string; rsa: SigningKey; ed25519: SigningKey } | { gone: true }>({
    max: 10_000,
    ttl: cacheMs,
    perf,
    fetchMethod: async (key, known) => {
      const row = await db.first(sealedKeys, key.split(' '))
      if (!row) return { gone: true }
      if (known && 'uuid' in known && known.uuid === row.uuid) return known
      const open = (algorithm: 'rsa' | 'ed25519', sealed: Buffer, selector: string): SigningKey => ({
        domain: row.name,
        selector,
        algorithm,
        privateKey: readPrivateKey(secrets.open(`domain ${row.uuid} ${algorithm}`, sealed).toString()),
      })
      return {
        uuid: row.uuid,
        rsa: open('rsa', row.rsaPrivate, row.selector),
        ed25519: open('ed25519', row.ed25519Private, ed25519Selector(row.selector)),
      }
    },
  })
  return {
    find: (tenantId, name) => known.get(`${tenantId} ${name}`),
    async signingKeys(tenantId, domainId, withEd25519) {
      const found = await keys.fetch(`${tenantId} ${domainId}`)
      if (!found || 'gone' in found) return undefined
      return withEd25519 ? [found.rsa, found.ed25519] : [found.rsa]
    },
    forget: () => known.forget(),
  }
}
