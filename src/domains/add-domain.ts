/** Adds a sending domain: validates its name and creates its DKIM keys. */
import { domainToUnicode } from 'node:url'
import { parse as parseHost } from 'tldts'
import { type Ids, Refusal, type Secrets, wrongField } from '#base'
import { sql, type Tx } from '#db'
import { makeEd25519Key, makeRsaKey, readRsaKey } from '#dkim'
import { parseDomain } from '#mail'
import { simulatorDomain } from '#simulator'
import { tenantForNew } from '#tenants'
import { type Domain, domainColumns } from './queries.ts'
import { sealNameOf } from './sealed-keys.ts'

const selectorPrefix = 'pr-'
/** A newly added domain has no DNS records yet. */
const firstCheckAfterMs = 600_000

const insertDomain = sql<Domain>`
  insert into domains (id, tenant_id, uuid, name, trusted, verified, verified_at, test_only, selector, rsa_private, rsa_public,
                       ed25519_private, ed25519_public, created_at, next_check_at, own_key)
  select number, $1, $2::uuid, $3, $4::boolean, $4, case when $4 then $11::timestamptz end, $5::boolean, $6, $7::bytea, $8, $9::bytea, $10,
         $11::timestamptz, $12::timestamptz, $14::boolean
  from unnest($13::integer[]) with ordinality as drawn (number, nth)
  where not exists (select from domains where id = number)
  order by nth
  limit 1
  on conflict (tenant_id, name) do nothing
  returning ${domainColumns}`

/** A host name of at least two labels that one organisation can own, as lower-case A-labels; refuses `validation_error` otherwise. */
function domainName(text: string): string {
  const name = parseDomain(text)
  // An A-label that decodes to no other text is kept unchanged.
  const isEncoded = (label: string) => label.startsWith('xn--')
  if (name === undefined || domainToUnicode(name).split('.').some(isEncoded))
    throw wrongField('name', 'must be a host name of at least two labels, such as mail.example.com')
  // Top-level domains unknown to the registries, as in labs, are not treated as public suffixes.
  const { publicSuffix, isIcann } = parseHost(name, { allowPrivateDomains: false })
  if (isIcann && publicSuffix === name) throw wrongField('name', `must not be a public suffix: anyone can register names below ${name}`)
  return name
}

export interface NewDomain {
  tenantId: string
  name: string
  /** In the statement's order. */
  row: readonly unknown[]
}

/** A DKIM key that is published already, so that no DNS record changes. */
export interface OwnKey {
  /** One or more DNS labels. */
  selector: string
  /** An RSA private key in PEM. */
  privateKey: string
}

const selectorForm = /^(?=.{1,63}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/i

function readOwnKey({ selector, privateKey }: OwnKey) {
  if (!selectorForm.test(selector)) throw wrongField('selector', 'must be DNS labels of letters, digits and -, at most 63 characters')
  const pair = readRsaKey(privateKey)
  if (!pair) throw wrongField('key', 'must be an RSA private key in PEM form, of 1024 to 4096 bits')
  return pair
}

/**
 * Builds a sending domain with its own RSA-2048 and Ed25519 DKIM keys, or with `ownKey` in place of the first, before the insert: key generation takes too long for a transaction.
 * `trusted` is the operator's override: usable without DNS verification. Refuses `validation_error`.
 */
export async function makeDomain(
  wanted: { tenantId: string; name: string; trusted: boolean; testOnly?: boolean; ownKey?: OwnKey | undefined },
  facts: { nowMs: number; ids: Ids; secrets: Secrets },
): Promise<NewDomain> {
  const name = domainName(wanted.name)
  if (name === simulatorDomain && !wanted.testOnly)
    throw wrongField('name', `must not be ${simulatorDomain}: every test key can already send from it`)
  const uuid = facts.ids.uuid()
  const { ownKey } = wanted
  const rsa = ownKey ? readOwnKey(ownKey) : await makeRsaKey()
  const ed25519 = makeEd25519Key()
  const row = [
    wanted.tenantId,
    uuid,
    name,
    wanted.trusted,
    wanted.testOnly ?? false,
    ownKey ? ownKey.selector.toLowerCase() : selectorPrefix + facts.ids.label(6),
    facts.secrets.seal(sealNameOf('rsa')(uuid), Buffer.from(rsa.privateKey)),
    rsa.publicKey,
    facts.secrets.seal(sealNameOf('ed25519')(uuid), Buffer.from(ed25519.privateKey)),
    ed25519.publicKey,
    new Date(facts.nowMs),
    wanted.testOnly ? null : new Date(facts.nowMs + firstCheckAfterMs),
    facts.ids.numbers(),
    ownKey !== undefined,
  ]
  return { tenantId: wanted.tenantId, name, row }
}

const maxDomains = 1000

const countDomains = sql<{ total: number }>`
  select count(*) as total
  from domains
  where tenant_id = $1 and name <> $2`

/** Refuses `not_found`, `tenant_archived`, `domain_already_exists`, and `validation_error` for too many domains. */
export async function addDomain(tx: Tx, { tenantId, name, row }: NewDomain): Promise<Domain> {
  await tenantForNew(tx, tenantId)
  const { total } = (await tx.first(countDomains, [tenantId, name])) ?? { total: 0 }
  if (total >= maxDomains) throw wrongField('name', `cannot be added: the tenant has ${maxDomains} domains`)
  const added = await tx.first(insertDomain, row)
  if (!added) throw new Refusal('domain_already_exists', { field: 'name', message: `name: this tenant already has the domain ${name}` })
  return added
}
