/** The DKIM key of the sandbox sender's domain, which belongs to no tenant. Created once; two processes that start together share one. */
import { createPrivateKey } from 'node:crypto'
import type { Ids, Secrets } from '#base'
import { type Queryable, sql } from '#db'
import { makeRsaKey, type SigningKey } from '#dkim'

interface StoredKey {
  name: string
  selector: string
  rsaPrivate: Buffer
  rsaPublic: string
}

const keyByName = sql<StoredKey>`
  select name, selector, rsa_private as "rsaPrivate", rsa_public as "rsaPublic"
  from platform_keys
  where name = $1`

const insertKey = sql`
  insert into platform_keys (name, selector, rsa_private, rsa_public, created_at)
  values ($1, $2, $3, $4, $5)
  on conflict (name) do nothing`

export interface PlatformKey {
  name: string
  selector: string
  rsaPublic: string
}

export const sealName = (name: string) => `platform key ${name}`

/** Returns a domain's key, and creates it if it does not exist. */
export async function ensurePlatformKey(
  on: Queryable,
  name: string,
  facts: { nowMs: number; ids: Ids; secrets: Secrets },
): Promise<PlatformKey> {
  const known = await on.first(keyByName, [name])
  if (known) return known
  const { privateKey, publicKey } = await makeRsaKey()
  const sealed = facts.secrets.seal(sealName(name), Buffer.from(privateKey))
  await on.run(insertKey, [name, `pr-${facts.ids.label(6)}`, sealed, publicKey, new Date(facts.nowMs)])
  return (await on.first(keyByName, [name])) as StoredKey
}

/** The parsed key; undefined if it was not created. */
export async function platformSigningKey(on: Queryable, name: string, secrets: Secrets): Promise<SigningKey | undefined> {
  const key = await on.first(keyByName, [name])
  if (!key) return undefined
  const privateKey = createPrivateKey(secrets.open(sealName(name), key.rsaPrivate).toString())
  return { domain: name, selector: key.selector, algorithm: 'rsa', privateKey }
}
