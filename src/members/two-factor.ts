/**
 * Two-factor authentication: an authenticator app and ten recovery codes. Each code works once, also in concurrent requests: a used step of
 * the app is refused, and a used recovery code is deleted.
 */
import { createHash } from 'node:crypto'
import { type Ids, Refusal, type Secrets } from '#base'
import { type Queryable, type SealedValue, sealedColumn, sql, type Tx } from '#db'
import { base32, enrolmentUri, stepOf } from './totp.ts'

const secretOctets = 20
const recoveryCodeCount = 10
const recoveryCodeLength = 10

export interface SecondFactor {
  isOn: boolean
  since: Date | null
  recoveryCodesLeft: number
}

export interface Factor {
  id: number
  totpSecret: Buffer | null
  confirmedAt: Date | null
  lastStep: number | null
}

export const factorColumns = sql.part`totp_secret as "totpSecret", totp_confirmed_at as "confirmedAt", totp_last_step::integer as "lastStep"`

const factorOf = sql<Factor & { address: string; recoveryCodesLeft: number }>`
  select id, address, ${factorColumns},
    (select count(*)::integer from recovery_codes where member_id = members.id) as "recoveryCodesLeft"
  from members
  where id = $1`

const setSecret = sql`
  update members
  set totp_secret = $2, totp_last_step = null
  where id = $1 and totp_confirmed_at is null`

/** Of two requests with the same code, the second updates no row. */
const useStep = sql`
  update members
  set totp_last_step = $2, totp_confirmed_at = coalesce(totp_confirmed_at, $3)
  where id = $1 and totp_secret = $4 and (totp_last_step is null or totp_last_step < $2)`

const useRecoveryCode = sql`
  delete from recovery_codes
  where member_id = $1 and code_hash = $2`

const deleteRecoveryCodes = sql`
  delete from recovery_codes
  where member_id = $1`

const deleteSecret = sql`
  update members
  set totp_secret = null, totp_confirmed_at = null, totp_last_step = null
  where id = $1`

const insertRecoveryCodes = sql`
  insert into recovery_codes (member_id, code_hash)
  select $1, code_hash
  from unnest($2::bytea[]) as made (code_hash)`

const sealName = (memberId: number | string) => `second factor of member ${memberId}`
const findSealed = sql<SealedValue>`
  select id::text as key, id::text as named, totp_secret as sealed
  from members
  where id > coalesce(nullif($2::text, ''), '0')::bigint and substring(totp_secret from 1 for 5) <> $1::bytea
  order by id
  limit $3`

const saveSealed = sql`
  update members
  set totp_secret = $2
  where id = $1::bigint and totp_secret = $3`

export const sealedOfMembers = [sealedColumn('members.totp_secret', sealName, { find: findSealed, save: saveSealed })]

const hashOfCode = (code: string): Buffer => createHash('sha256').update(code).digest()

/** Accepts a recovery code in any case, with or without the hyphen: `ab3de-fgh1j`. */
const plainCode = (typed: string) => typed.toLowerCase().replace(/[\s-]/g, '')

const wrongCode = (message: string) =>
  new Refusal('authentication_required', {
    field: 'code',
    message,
    suggestion: 'Enter the current code from your authenticator app, or a recovery code',
  })

/** Asks the form for a code; does not count as an attempt. */
export const codeNeeded = () => wrongCode('a code from your authenticator app is required')

/** Whether it is an app code and not a recovery code. */
export const isAppCode = (typed: string) => /^\d{6}$/.test(plainCode(typed))

/** Consumes an app code or a recovery code. Refuses `authentication_required` with the field `code`. */
export async function useCode(on: Queryable, factor: Factor, typed: string, { nowMs, secrets }: { nowMs: number; secrets: Secrets }) {
  const code = plainCode(typed)
  const used = isAppCode(code) ? await useAppCode(on, factor, code, { nowMs, secrets }) : await isRecoveryCodeUsed(on, factor, code)
  if (!used) throw wrongCode('the code is wrong or already used')
}

async function useAppCode(on: Queryable, factor: Factor, code: string, facts: UseFacts, isAgain = false): Promise<boolean> {
  const { id, totpSecret, lastStep } = factor
  const { nowMs, secrets } = facts
  const step = totpSecret ? stepOf(code, secrets.open(sealName(id), totpSecret), nowMs, lastStep) : undefined
  if (step === undefined || totpSecret === null) return false
  if ((await on.run(useStep, [id, step, new Date(nowMs), totpSecret])) > 0) return true
  // The secret may have been resealed meanwhile.
  const now = isAgain ? undefined : await on.first(factorOf, [id])
  return now?.totpSecret != null && !now.totpSecret.equals(totpSecret) && useAppCode(on, now, code, facts, true)
}

interface UseFacts {
  nowMs: number
  secrets: Secrets
}

const isRecoveryCodeUsed = async (on: Queryable, { id }: Factor, code: string) =>
  (await on.run(useRecoveryCode, [id, hashOfCode(code)])) > 0

async function getFactor(on: Queryable, memberId: number) {
  const found = await on.first(factorOf, [memberId])
  if (!found) throw new Refusal('not_found', { message: 'no such member' })
  return found
}

export async function getSecondFactor(on: Queryable, memberId: number): Promise<SecondFactor> {
  const { confirmedAt, recoveryCodesLeft } = await getFactor(on, memberId)
  return { isOn: confirmedAt !== null, since: confirmedAt, recoveryCodesLeft }
}

/** Creates a secret for an app, not in force until `confirmSecondFactor`. Refuses a member who has a second factor. */
export async function beginSecondFactor(
  tx: Tx,
  memberId: number,
  { ids, secrets, issuer }: { ids: Ids; secrets: Secrets; issuer: string },
): Promise<{ secret: string; uri: string }> {
  const { address } = await getFactor(tx, memberId)
  // Hashes 256 random bits to the 160 that RFC 4226 section 4 recommends.
  const secret = createHash('sha256').update(ids.token(43)).digest().subarray(0, secretOctets)
  if ((await tx.run(setSecret, [memberId, secrets.seal(sealName(memberId), secret)])) === 0)
    throw new Refusal('validation_error', { message: 'two-factor authentication is already on', suggestion: 'Turn it off first' })
  return { secret: base32(secret), uri: enrolmentUri(secret, address, issuer) }
}

/** Activates the factor with a first app code, and creates the recovery codes, which are shown once. */
export async function confirmSecondFactor(tx: Tx, memberId: number, code: string, facts: UseFacts & { ids: Ids }): Promise<string[]> {
  const factor = await getFactor(tx, memberId)
  if (factor.confirmedAt !== null || factor.totpSecret === null)
    throw new Refusal('validation_error', { field: 'code', message: 'code: no setup to confirm', suggestion: 'Start the setup again' })
  if (!(await useAppCode(tx, factor, plainCode(code), facts))) throw wrongCode('the code does not match this secret now')
  return renewRecoveryCodes(tx, memberId, facts)
}

/** Replaces the recovery codes by ten new ones. */
export async function renewRecoveryCodes(tx: Tx, memberId: number, { ids }: { ids: Ids }): Promise<string[]> {
  const codes = Array.from({ length: recoveryCodeCount }, () => ids.label(recoveryCodeLength))
  await tx.run(deleteRecoveryCodes, [memberId])
  await tx.run(insertRecoveryCodes, [memberId, codes.map(hashOfCode)])
  return codes.map((code) => `${code.slice(0, recoveryCodeLength / 2)}-${code.slice(recoveryCodeLength / 2)}`)
}

export async function removeSecondFactor(tx: Tx, memberId: number): Promise<void> {
  await tx.run(deleteSecret, [memberId])
  await tx.run(deleteRecoveryCodes, [memberId])
}
