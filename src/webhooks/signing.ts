/**
 * How a receiver knows that a request is ours (contract 13.8): HMAC-SHA-256 with the webhook's secret (Standard Webhooks), and
 * RSA-SHA-256 with the installation's key, which is made once and published as a JWK set.
 */
import { createHash, createHmac, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { Clock, Secrets } from '#base'
import { type Db, sql } from '#db'
import { makeRsaKey, readPrivateKey } from '#dkim'

const keyLock = 7_305_055
/** On another thread: a signature takes longer than everything else about a request. */
const signBeside = promisify(sign)

const lockKeys = sql`
  select pg_advisory_xact_lock($1::bigint)`

const storedKeys = sql<{ id: string; privateKey: Buffer }>`
  select id, private_key as "privateKey"
  from webhook_signing_keys
  order by created_at desc, id`

const insertKey = sql`
  insert into webhook_signing_keys (id, private_key, created_at)
  values ($1, $2, $3)`

export interface Jwk {
  kty: 'RSA'
  n: string
  e: string
  kid: string
  alg: 'RS256'
  use: 'sig'
}

export interface InstallationKey {
  kid: string
  privateKey: KeyObject
  jwk: Jwk
}

const sealName = (kid: string) => `webhook signing key ${kid}`

/** The keys of this installation, the one that signs first; the first is made when there is none. Kept once known: none ever changes. */
export function openInstallationKeys({ db, clock, secrets }: { db: Db; clock: Clock; secrets: Secrets }): () => Promise<InstallationKey[]> {
  const load = async () => {
    const rows = await db.rows(storedKeys)
    return rows.map((row) => keyOf(readPrivateKey(secrets.open(sealName(row.id), row.privateKey).toString())))
  }
  const make = async () => {
    const { privateKey } = await makeRsaKey()
    const { kid } = keyOf(readPrivateKey(privateKey))
    await db.transaction(async (tx) => {
      await tx.run(lockKeys, [keyLock])
      if ((await tx.first(storedKeys)) !== undefined) return
      await tx.run(insertKey, [kid, secrets.seal(sealName(kid), Buffer.from(privateKey)), new Date(clock.nowMs())])
    })
    return load()
  }
  let known: Promise<InstallationKey[]> | undefined
  return () => {
    known ??= load()
      .then((keys) => (keys.length > 0 ? keys : make()))
      .catch((error: unknown) => {
        known = undefined
        throw error
      })
    return known
  }
}

/** The id of a key is its thumbprint (RFC 7638). */
function keyOf(privateKey: KeyObject): InstallationKey {
  const { n = '', e = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const kid = createHash('sha256')
    .update(JSON.stringify({ e, kty: 'RSA', n }))
    .digest('base64url')
  return { kid, privateKey, jwk: { kty: 'RSA', n, e, kid, alg: 'RS256', use: 'sig' } }
}

export interface Signed {
  /** The event's, the same on every attempt. */
  uuid: string
  event: string
  attempt: number
  body: Buffer
  nowMs: number
}

const secretPrefix = 'whsec_'
export const shownSecret = (octets: Uint8Array) => secretPrefix + Buffer.from(octets).toString('base64')

/** Every header of a request but those of HTTP itself. */
export async function signedHeaders(
  { uuid, event, attempt, body, nowMs }: Signed,
  by: { secrets: readonly Buffer[]; key: InstallationKey; signatureHeader: string; version: string },
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs / 1000))
  const hmac = (secret: Buffer) => `v1,${createHmac('sha256', secret).update(`${uuid}.${timestamp}.`).update(body).digest('base64')}`
  return {
    'Content-Type': 'application/json',
    'User-Agent': `Postrider/${by.version}`,
    'webhook-id': uuid,
    'webhook-timestamp': timestamp,
    'webhook-signature': by.secrets.map(hmac).join(' '),
    [by.signatureHeader]: (await signBeside('RSA-SHA256', body, by.key.privateKey)).toString('base64'),
    [`${by.signatureHeader}-KID`]: by.key.kid,
    'X-Webhook-Event': event,
    'X-Webhook-Attempt': String(attempt),
  }
}
