/**
 * The installation's RSA keys (contract 13.8): the first is created on demand, further ones by the operator. A new key is published at once
 * and signs after all cached key sets have expired. The replaced key stays published until no delivery record signed with it is left.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { type Clock, pause, type Secrets } from '#base'
import { type Db, type Queryable, type SealedValue, sealedColumn, sql, type Tx } from '#db'
import { makeRsaKey } from '#dkim'

const keyLock = 7_305_055
/** A fetched key set may be cached for an hour. The second hour allows for clock differences and this program's own cache. */
const clockOffsetMs = 2 * 3_600_000
/** Delivery records are kept for 30 days. */
const afterwardsMs = 31 * 86_400_000
/** How long a process caches the keys, and how long it waits for the database before it uses cached ones. */
const keptMs = 60_000
const askWithinMs = 2000

const lockKeys = sql`
  select pg_advisory_xact_lock($1::bigint)`

const storedKeys = sql<{ id: string; privateKey: Buffer; createdAt: Date }>`
  select id, private_key as "privateKey", created_at as "createdAt"
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
  createdAt: Date
}

/** The keys published at a time, the signing key first. `keys`: all keys, newest first; the oldest has always signed. */
export function keysAt<Key extends { createdAt: Date }>(keys: readonly Key[], nowMs: number): Key[] {
  const signsFromMs = keys.map(({ createdAt }, index) => (index === keys.length - 1 ? 0 : createdAt.getTime() + clockOffsetMs))
  const signing = signsFromMs.findIndex((fromMs) => fromMs <= nowMs)
  const isPublished = (index: number) => index < signing || nowMs < (signsFromMs[index - 1] ?? 0) + afterwardsMs
  return keys.filter((_, index) => index === signing).concat(keys.filter((_, index) => index !== signing && isPublished(index)))
}

const sealName = (kid: string) => `webhook signing key ${kid}`

const findSealed = sql<SealedValue>`
  select id as key, id as named, private_key as sealed
  from webhook_signing_keys
  where id > $2::text and substring(private_key from 1 for 5) <> $1::bytea
  order by id
  limit $3`

const saveSealed = sql`
  update webhook_signing_keys
  set private_key = $2
  where id = $1 and private_key = $3`

export const sealedKeysOfWebhooks = sealedColumn('webhook_signing_keys.private_key', sealName, { find: findSealed, save: saveSealed })

export interface KeyDeps {
  db: Db
  clock: Clock
  secrets: Secrets
}

/**
 * Returns the published keys, the signing key first; creates the first key if needed. Once cached, keys are served without the database.
 */
export function openInstallationKeys({ db, clock, secrets }: KeyDeps): () => Promise<InstallationKey[]> {
  let known: readonly InstallationKey[] = []
  let readAtMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  const read = async () => {
    const rows = await db.rows(storedKeys)
    known = rows.map(({ id, privateKey, createdAt }) => {
      const same = known.find(({ kid }) => kid === id)
      return same ?? { ...keyOf(createPrivateKey(secrets.open(sealName(id), privateKey).toString())), createdAt }
    })
  }
  const readFirst = async () => {
    await read()
    if (known.length > 0) return
    const made = await makeKey(secrets)
    await db.transaction(async (tx) => void ((await findNewest(tx)) ?? (await made.save(tx, clock.nowMs()))))
    await read()
  }
  const refresh = async () => {
    if (known.length === 0) await readFirst()
    else {
      const over = new AbortController()
      await Promise.race([read().catch(() => undefined), pause(clock, askWithinMs, over.signal)])
      over.abort()
    }
    readAtMs = clock.monotonicMs()
  }
  return async () => {
    if (clock.monotonicMs() - readAtMs >= keptMs) {
      reading ??= refresh().finally(() => {
        reading = undefined
      })
      await reading
    }
    return keysAt(known, clock.nowMs())
  }
}

/** Adds a key, published from now on; returns the time from which it signs. */
export async function rotateInstallationKey({ db, clock, secrets }: KeyDeps): Promise<{ kid: string; signsFrom: Date }> {
  const made = await makeKey(secrets)
  const signsFromMs = await db.transaction(async (tx) => {
    const newest = await findNewest(tx)
    const nowMs = clock.nowMs()
    // Later than every other key even if clocks differ, because the order decides which key replaces which.
    const createdAtMs = newest ? Math.max(nowMs, newest.createdAt.getTime() + 1) : nowMs
    await made.save(tx, createdAtMs)
    return newest ? createdAtMs + clockOffsetMs : nowMs
  })
  return { kid: made.kid, signsFrom: new Date(signsFromMs) }
}

/** Locks the keys until the caller commits. */
async function findNewest(tx: Tx): Promise<{ createdAt: Date } | undefined> {
  await tx.run(lockKeys, [keyLock])
  return tx.first(storedKeys)
}

async function makeKey(secrets: Secrets) {
  const { privateKey } = await makeRsaKey()
  const { kid } = keyOf(createPrivateKey(privateKey))
  const sealed = secrets.seal(sealName(kid), Buffer.from(privateKey))
  return { kid, save: (on: Queryable, createdAtMs: number) => on.run(insertKey, [kid, sealed, new Date(createdAtMs)]) }
}

/** A key's id is its thumbprint (RFC 7638). */
function keyOf(privateKey: KeyObject): Omit<InstallationKey, 'createdAt'> {
  const { n = '', e = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const kid = createHash('sha256')
    .update(JSON.stringify({ e, kty: 'RSA', n }))
    .digest('base64url')
  return { kid, privateKey, jwk: { kty: 'RSA', n, e, kid, alg: 'RS256', use: 'sig' } }
}
