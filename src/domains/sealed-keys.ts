/** This module's sealed columns, for the rotation of the secret. */
import { type SealedColumns, type SealedValue, sealedColumn, sql } from '#db'
import { sealName as platformName } from './platform-key.ts'

export const sealNameOf = (algorithm: 'rsa' | 'ed25519') => (uuid: string) => `domain ${uuid} ${algorithm}`
/** Of keys that do not sign yet. */
export const sealNameOfNext = (algorithm: 'rsa' | 'ed25519') => (uuid: string) => `dkim key ${uuid} ${algorithm}`

const findRsa = sql<SealedValue>`
  select id::text as key, uuid::text as named, rsa_private as sealed
  from domains
  where id > coalesce(nullif($2::text, ''), '0')::bigint and substring(rsa_private from 1 for 5) <> $1::bytea
  order by id
  limit $3`

const saveRsa = sql`
  update domains
  set rsa_private = $2
  where id = $1::bigint and rsa_private = $3`

const findEd25519 = sql<SealedValue>`
  select id::text as key, uuid::text as named, ed25519_private as sealed
  from domains
  where id > coalesce(nullif($2::text, ''), '0')::bigint and substring(ed25519_private from 1 for 5) <> $1::bytea
  order by id
  limit $3`

const saveEd25519 = sql`
  update domains
  set ed25519_private = $2
  where id = $1::bigint and ed25519_private = $3`

const findNextRsa = sql<SealedValue>`
  select uuid::text as key, uuid::text as named, rsa_private as sealed
  from dkim_keys
  where uuid::text > $2::text and substring(rsa_private from 1 for 5) <> $1::bytea
  order by uuid::text
  limit $3`

const saveNextRsa = sql`
  update dkim_keys
  set rsa_private = $2
  where uuid = $1::uuid and rsa_private = $3`

const findNextEd25519 = sql<SealedValue>`
  select uuid::text as key, uuid::text as named, ed25519_private as sealed
  from dkim_keys
  where uuid::text > $2::text and substring(ed25519_private from 1 for 5) <> $1::bytea
  order by uuid::text
  limit $3`

const saveNextEd25519 = sql`
  update dkim_keys
  set ed25519_private = $2
  where uuid = $1::uuid and ed25519_private = $3`

const findPlatform = sql<SealedValue>`
  select name as key, name as named, rsa_private as sealed
  from platform_keys
  where name > $2::text and substring(rsa_private from 1 for 5) <> $1::bytea
  order by name
  limit $3`

const savePlatform = sql`
  update platform_keys
  set rsa_private = $2
  where name = $1 and rsa_private = $3`

export const sealedOfDomains: readonly SealedColumns[] = [
  sealedColumn('domains.rsa_private', sealNameOf('rsa'), { find: findRsa, save: saveRsa }),
  sealedColumn('domains.ed25519_private', sealNameOf('ed25519'), { find: findEd25519, save: saveEd25519 }),
  sealedColumn('dkim_keys.rsa_private', sealNameOfNext('rsa'), { find: findNextRsa, save: saveNextRsa }),
  sealedColumn('dkim_keys.ed25519_private', sealNameOfNext('ed25519'), { find: findNextEd25519, save: saveNextEd25519 }),
  sealedColumn('platform_keys.rsa_private', platformName, { find: findPlatform, save: savePlatform }),
]
