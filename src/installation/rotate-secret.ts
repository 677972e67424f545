/**
 * Rotates the secret while the service runs: all processes get the new secret, then seal with it; existing values are resealed; finally it
 * becomes the database's secret. The steps are stored, so that an interrupted command resumes. Signatures under the old secret stay valid,
 * because the new secret opens it.
 */
import { type Clock, fingerprintOf, pause, type Secrets } from '#base'
import { type Db, type SealedColumns, sql, type Tx, withProcessLock } from '#db'
import { findOrganisation, saveSecretFingerprint } from '#tenants'
import { findRotation, openRing, type Rotation, seal } from './known-secrets.ts'

/**
 * Every sealed column in the database, except the secrets themselves. Loads the modules that own them only when called, because every start
 * loads this file. A test compares the columns with the schema. @public
 */
export async function sealedEverywhere(): Promise<readonly SealedColumns[]> {
  const [domains, members, credentials, webhooks, requestLogs, certificates, delivery] = await Promise.all([
    import('#domains'),
    import('#members'),
    import('#credentials'),
    import('#webhooks'),
    import('#request-logs'),
    import('#certificates'),
    import('#delivery'),
  ])
  return [
    ...domains.sealedOfDomains,
    ...members.sealedOfMembers,
    ...credentials.sealedOfCredentials,
    ...webhooks.sealedOfWebhooks,
    ...requestLogs.sealedOfRequestLogs,
    ...certificates.sealedOfCertificates,
    ...delivery.sealedOfTransports,
  ]
}

const rotationLock = 7_305_056
/** Several times the time that a process takes to notice a step. */
const settleMs = 4000

const beginRotation = sql`
  insert into secret_rotation (old_fingerprint, new_fingerprint, step, began_at)
  values ($1, $2, 'announced', $3)
  on conflict (only_one) do update
  set old_fingerprint = excluded.old_fingerprint, new_fingerprint = excluded.new_fingerprint, step = excluded.step, began_at = excluded.began_at`

const saveStep = sql`
  update secret_rotation
  set step = $1`

const deleteOpenedBy = sql`
  delete from secrets
  where opened_by = $1`

export interface RotateDeps {
  db: Db
  clock: Clock
  secrets: Secrets
  /** The new secret, if it was given. */
  wanted: string | undefined
  /** Creates it otherwise. */
  makeNew: () => string
  /** Replaces the stored secret of the installation. */
  keepNew: (secret: string) => void
  /** Called after each step with a line for the operator. */
  progress: (line: string) => void
  /** Tests end the command here. */
  failpoint?: ((place: string) => void) | undefined
}

interface Rotated {
  resumed: boolean
  rows: number
  from: string
  to: string
}

/** Throws a message for the operator if another rotation is running, or if the new secret is unusable. */
export async function rotateInstallationSecret(deps: RotateDeps): Promise<Rotated> {
  const rotated = await withProcessLock(deps.db, rotationLock, () => rotate(deps))
  if (!rotated) throw new Error('another postrider secret rotate is running. Wait until it ends')
  return rotated
}

async function rotate(deps: RotateDeps): Promise<Rotated> {
  const { db, clock, secrets, progress, failpoint } = deps
  const open = await findRotation(db)
  const resumed = open !== undefined && open.step !== 'done'
  const { oldFingerprint, newFingerprint } = resumed ? goingOn(open, deps) : await announce(deps)
  await openRing(db, secrets)
  const secret = secrets.textOf(newFingerprint)
  if (secret === undefined) throw new Error('the new secret of the rotation is missing here')
  progress(resumed ? 'continuing an unfinished rotation' : 'announced the new secret to running processes')
  failpoint?.('announced')
  await pause(clock, settleMs)
  await db.run(saveStep, ['sealing'])
  failpoint?.('sealing')
  await pause(clock, settleMs)
  await openRing(db, secrets)
  progress('new data is encrypted with the new secret; re-encrypting stored data')
  const rows = await resealAll(deps)
  deps.keepNew(secret)
  failpoint?.('kept')
  await db.transaction(async (tx) => {
    await saveSecretFingerprint(tx, newFingerprint)
    await tx.run(deleteOpenedBy, [oldFingerprint])
    await tx.run(saveStep, ['done'])
  })
  failpoint?.('done')
  return { resumed, rows, from: oldFingerprint, to: newFingerprint }
}

function goingOn(rotation: Rotation, { wanted }: RotateDeps): Rotation {
  if (wanted !== undefined && fingerprintOf(wanted) !== rotation.newFingerprint)
    throw new Error(
      'a rotation to another new secret is unfinished. Set POSTRIDER_SECRET_NEW to that secret, finish the rotation, then rotate again',
    )
  return rotation
}

/** Each of the two secrets opens the other, and the new one opens all earlier ones. */
async function announce({ db, clock, secrets, wanted, makeNew }: RotateDeps): Promise<Pick<Rotation, 'oldFingerprint' | 'newFingerprint'>> {
  await openRing(db, secrets)
  const { known } = secrets
  const oldFingerprint = (await findOrganisation(db))?.secretFingerprint ?? ''
  const old = secrets.textOf(oldFingerprint) ?? ''
  const secret = wanted ?? makeNew()
  const newFingerprint = fingerprintOf(secret)
  if (known.includes(secret)) throw new Error('the new secret is in use or was used before. Create another one')
  await db.transaction(async (tx: Tx) => {
    await seal(tx, secret, old)
    for (const one of known) await seal(tx, one, secret)
    await tx.run(beginRotation, [oldFingerprint, newFingerprint, new Date(clock.nowMs())])
  })
  return { oldFingerprint, newFingerprint }
}

/** Repeats until a full pass finds no value sealed with another secret. */
async function resealAll({ db, secrets, progress, failpoint }: RotateDeps): Promise<number> {
  const everywhere = await sealedEverywhere()
  let rows = 0
  for (let found = -1; found !== 0; ) {
    found = 0
    for (const { columns, reseal } of everywhere) {
      let here = 0
      for (let after: string | undefined = ''; after !== undefined; ) {
        const page = await reseal(db, secrets, after)
        here += page.rows
        after = page.last
        failpoint?.(columns[0] as string)
        if (after !== undefined) progress(`${columns.join(', ')}: ${here} rows so far`)
      }
      if (here > 0) progress(`${columns.join(', ')}: ${here} rows`)
      found += here
    }
    rows += found
  }
  return rows
}
