/**
 * The rows of certificates. A claim books the retry of its order in advance, so that a process that dies during an order is neither waited
 * for nor followed by orders without a pause; a success replaces the retry by the renewal.
 */
import type { Secrets } from '#base'
import { type Db, type Queryable, type SealedColumns, type SealedValue, sealedColumn, sql } from '#db'
import { type ChallengeKind, orderWithinMs } from './schedule.ts'

/** A host name of the installation and its certificate, without the key. */
export interface CertificateRecord {
  name: string
  /** The directory URL of the CA; null before the first certificate. */
  directory: string | null
  issuedAt: Date | null
  expiresAt: Date | null
  /** Of the next order. */
  dueAt: Date
  /** Failed orders since the last success. */
  failures: number
  lastError: string | null
}

/** An order that this process alone may place now. */
export interface ClaimedName {
  name: string
  challenge: ChallengeKind | null
  /** Failures before this order. */
  failures: number
  /** null: of the installation itself. */
  tenantId: string | null
}

/** Certificate and private key as PEM. */
export interface CertificateWithKey {
  cert: string
  key: string
}

/** Notified with the name of a certificate that was obtained. */
export const certificatesChanged = 'certificates_changed'
/** Notified with a name whose next order is due now. */
export const certificatesDue = 'certificates_due'

const sealName = (name: string) => `certificate ${name}`
const accountSealName = (directory: string) => `acme account ${directory}`
const maxErrorLength = 500
const hourMs = 3_600_000
const dayMs = 24 * hourMs

const recordColumns = sql.part`
  name, directory, issued_at as "issuedAt", expires_at as "expiresAt", due_at as "dueAt", failures, last_error as "lastError"`

/** Writes only names that are new or were last recorded before $3: it runs every few seconds. */
const insertNames = sql`
  insert into certificates (name, due_at, created_at, wanted_at)
  select wanted.name, $2::timestamptz, $2, $2
  from unnest($1::text[]) as wanted (name)
  where not exists (select from certificates known where known.name = wanted.name and known.wanted_at >= $3)
  order by wanted.name
  on conflict (name) do update
  set wanted_at = excluded.wanted_at`

/** Names whose chain is from another CA: once, because the statement also records the new one. */
const adoptDirectory = sql`
  update certificates
  set directory = $2, due_at = $3, failures = 0, last_error = null
  where name = any($1::text[]) and directory <> $2`

/**
 * $1: own names, which are first; then tenants take turns, by their orders since $5, also of names that they no longer use. $2, $3: names with
 * their tenants, '' without one. $6 to $8: names ordered since then that reach the limits: of all, of a tenant, and of those that had failed
 * before their last order.
 */
const dueName = sql<ClaimedName>`
  with wanted as (
    select * from unnest($2::text[], $3::text[]) as wanted (name, owner)
  ),
  recent as (
    select tenant_id as owner, count(*) as orders
    from certificates
    where ordered_at > $5
    group by tenant_id
  )
  select name, challenge, failures, nullif(owner, '') as "tenantId"
  from certificates join wanted using (name) left join recent using (owner)
  where due_at <= $4 and (order_until is null or order_until <= $4)
    and (select count(*) from certificates where ordered_at > $5) < $6::integer
    and (owner = '' or coalesce(orders, 0) < $7::integer)
    and (failures = 0 or owner = '' or (select count(*) from certificates where ordered_at > $5 and failures > 1) < $8::integer)
  order by name = any($1::text[]) desc, coalesce(orders, 0), due_at
  limit 1
  for update of certificates skip locked`

const bookRetry = sql`
  update certificates
  set ordered_at = $2, due_at = $3, order_until = $4, tenant_id = $5, failures = failures + 1
  where name = $1`

const saveIssued = sql`
  update certificates
  set directory = $2, chain = $3, private_key = $4, issued_at = $5, expires_at = $6, due_at = $7, challenge = $8, failures = 0,
    last_error = null, order_until = null
  where name = $1`

/** $4: the booked retry. An earlier time was requested during the order, and stays. */
const saveFailed = sql`
  update certificates
  set last_error = $2, due_at = case when due_at < $4 then due_at else greatest($3, $4) end, order_until = null
  where name = $1`

/** Not the names that instances stopped using, such as removed track domains: their certificates expire unnoticed. */
const wantedRecords = sql<CertificateRecord>`
  select ${recordColumns}
  from certificates
  where wanted_at > (select max(wanted_at) from certificates) - interval '3 hours'
  order by name`

const renewNow = sql<{ name: string }>`
  update certificates
  set due_at = $2
  where name = $1
  returning name`

const versions = sql<{ name: string; issuedAt: Date }>`
  select name, issued_at as "issuedAt"
  from certificates
  where chain is not null`

const keyPairOf = sql<{ chain: string; privateKey: Buffer; issuedAt: Date }>`
  select chain, private_key as "privateKey", issued_at as "issuedAt"
  from certificates
  where name = $1 and chain is not null`

/**
 * $1: the existing track domains. Their certificates stay while the check of the CNAME fails, because links in earlier mail need them. $2, $3, $4: a
 * week, a day and a month ago. A week, so that a tenant that removes and adds a name again and again stays below the CA's five certificates a week.
 */
const deleteUnwanted = sql`
  delete from certificates
  where name <> all($1::text[])
    and (
      (tenant_id is not null and wanted_at < $2) or (ordered_at is null and wanted_at < $3)
      or (wanted_at < $4 and coalesce(expires_at, created_at) < $4)
    )`

const accountKey = sql<{ privateKey: Buffer }>`
  select private_key as "privateKey"
  from acme_accounts
  where directory = $1`

const insertAccount = sql`
  insert into acme_accounts (directory, private_key, created_at)
  values ($1, $2, $3)
  on conflict (directory) do nothing`

const findSealedKeys = sql<SealedValue>`
  select name as key, name as named, private_key as sealed
  from certificates
  where name > $2::text and substring(private_key from 1 for 5) <> $1::bytea
  order by name
  limit $3`

const saveSealedKey = sql`
  update certificates
  set private_key = $2
  where name = $1 and private_key = $3`

const findSealedAccounts = sql<SealedValue>`
  select directory as key, directory as named, private_key as sealed
  from acme_accounts
  where directory > $2::text and substring(private_key from 1 for 5) <> $1::bytea
  order by directory
  limit $3`

const saveSealedAccount = sql`
  update acme_accounts
  set private_key = $2
  where directory = $1 and private_key = $3`

/** This module's sealed columns, for the rotation of the secret. */
export const sealedOfCertificates: readonly SealedColumns[] = [
  sealedColumn('certificates.private_key', sealName, { find: findSealedKeys, save: saveSealedKey }),
  sealedColumn('acme_accounts.private_key', accountSealName, { find: findSealedAccounts, save: saveSealedAccount }),
]

/** Records that an instance uses these names. The first order of a new name is due now. */
export async function addNames(on: Queryable, names: readonly string[], nowMs: number): Promise<void> {
  await on.run(insertNames, [names, new Date(nowMs), new Date(nowMs - hourMs)])
}

/** Makes names due whose certificate another CA issued, after the operator chose a new one. */
export async function followDirectory(on: Queryable, names: readonly string[], directory: string, nowMs: number): Promise<void> {
  await on.run(adoptDirectory, [names, directory, new Date(nowMs)])
}

export interface ClaimFacts {
  /** Those of the installation itself, which are ordered before track domains. */
  own: readonly string[]
  /** The names in use, with their tenants; '': of the installation itself. */
  owners: ReadonlyMap<string, string>
  nowMs: number
  /** Orders count from then on. */
  sinceMs: number
  /** Most names with an order since then: of all, of one tenant, and of those that had failed before. */
  maxNames: number
  maxOfTenant: number
  maxRetries: number
}

/** The next due name, locked until the caller commits; the caller calls `book`. */
export function findDue(tx: Queryable, facts: ClaimFacts): Promise<ClaimedName | undefined> {
  const { own, owners, nowMs, sinceMs, maxNames, maxOfTenant, maxRetries } = facts
  const since = [new Date(nowMs), new Date(sinceMs)]
  return tx.first(dueName, [own, [...owners.keys()], [...owners.values()], ...since, maxNames, maxOfTenant, maxRetries])
}

/** Counts the order as failed, with its retry at `retryAtMs`, until its result is saved. */
export async function book(tx: Queryable, claimed: ClaimedName, facts: { nowMs: number; retryAtMs: number }): Promise<void> {
  const { nowMs, retryAtMs } = facts
  await tx.run(bookRetry, [claimed.name, new Date(nowMs), new Date(retryAtMs), new Date(nowMs + orderWithinMs), claimed.tenantId])
}

export interface Issued extends CertificateWithKey {
  name: string
  directory: string
  challenge: ChallengeKind
  issuedMs: number
  expiresMs: number
  renewAtMs: number
}

export async function saveCertificate(on: Queryable, secrets: Secrets, issued: Issued): Promise<void> {
  const { name, directory, cert, key, challenge } = issued
  const times = [issued.issuedMs, issued.expiresMs, issued.renewAtMs].map((atMs) => new Date(atMs))
  await on.run(saveIssued, [name, directory, cert, secrets.seal(sealName(name), Buffer.from(key)), ...times, challenge])
}

/** `bookedMs`: the retry that `book` recorded. The retry is not before `notBeforeMs`, unless the operator requested a renewal meanwhile. */
export async function saveFailure(
  on: Queryable,
  name: string,
  reason: string,
  { bookedMs, notBeforeMs }: { bookedMs: number; notBeforeMs: number },
): Promise<void> {
  await on.run(saveFailed, [name, reason.slice(0, maxErrorLength), new Date(notBeforeMs), new Date(bookedMs)])
}

/** The names in use, in alphabetical order, also those of other machines. */
export const listCertificates = (on: Queryable): Promise<CertificateRecord[]> => on.rows(wantedRecords)

/** Makes the next order of a name due now, or at the end of one in progress; false if there is no such name. */
export async function requestRenewal(db: Db, name: string, nowMs: number): Promise<boolean> {
  const found = await db.first(renewNow, [name, new Date(nowMs)])
  if (found) await db.notify(certificatesDue, name)
  return found !== undefined
}

/**
 * Deletes names of tenants a week after their last use, those without an order after a day, and others a month after their use and their
 * certificate ended. `existing`: names of track domains, whose rows stay.
 */
export async function deleteOldNames(on: Queryable, nowMs: number, existing: readonly string[]): Promise<void> {
  const ago = (days: number) => new Date(nowMs - days * dayMs)
  await on.run(deleteUnwanted, [existing, ago(7), ago(1), ago(30)])
}

/** The issue time of each name's certificate. */
export const listVersions = (on: Queryable): Promise<{ name: string; issuedAt: Date }[]> => on.rows(versions)

export async function findKeyPair(
  on: Queryable,
  secrets: Secrets,
  name: string,
): Promise<(CertificateWithKey & { issuedAt: Date }) | undefined> {
  const found = await on.first(keyPairOf, [name])
  return found && { cert: found.chain, key: secrets.open(sealName(name), found.privateKey).toString(), issuedAt: found.issuedAt }
}

/** The account's private key as PEM, the same in all processes; `make` creates it for a new CA. */
export async function ensureAccountKey(
  on: Queryable,
  secrets: Secrets,
  directory: string,
  facts: { nowMs: number; make: () => string },
): Promise<string> {
  const find = async () => {
    const found = await on.first(accountKey, [directory])
    return found && secrets.open(accountSealName(directory), found.privateKey).toString()
  }
  const found = await find()
  if (found !== undefined) return found
  await on.run(insertAccount, [directory, secrets.seal(accountSealName(directory), Buffer.from(facts.make())), new Date(facts.nowMs)])
  const made = await find()
  if (made === undefined) throw new Error('the ACME account disappeared while it was created')
  return made
}
