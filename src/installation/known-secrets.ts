/**
 * The secrets known to a process: the given one, and those that the database stores sealed under it. During a rotation, the old and the new
 * secret each open the other, so that a process may start with either. Afterwards the new one opens the old.
 */
import { type Clock, fingerprintOf, type Log, type Loop, openSecrets, type Secrets, startLoop, systemRandom } from '#base'
import { type Db, type Queryable, sql, type Tx } from '#db'
import { findOrganisation } from '#tenants'

export interface Rotation {
  oldFingerprint: string
  newFingerprint: string
  step: 'announced' | 'sealing' | 'done'
  beganAt: Date
}

interface KeptSecret {
  openedBy: string
  fingerprint: string
  sealed: Buffer
}

/** Polling interval of every process: a change is in force everywhere within this time plus the query's duration. */
const lookEveryMs = 3000

const lastRotation = sql<Rotation>`
  select old_fingerprint as "oldFingerprint", new_fingerprint as "newFingerprint", step, began_at as "beganAt"
  from secret_rotation`

const keptSecrets = sql<KeptSecret>`
  select opened_by as "openedBy", fingerprint, sealed
  from secrets`

const keepSecret = sql`
  insert into secrets (opened_by, fingerprint, sealed)
  values ($1, $2, $3)
  on conflict (opened_by, fingerprint) do update
  set sealed = excluded.sealed`

const sealer = (secret: string) => openSecrets(secret, systemRandom).sealer('secrets')
const sealName = (fingerprint: string) => `secret ${fingerprint}`

export const findRotation = (on: Queryable): Promise<Rotation | undefined> => on.first(lastRotation)

/** Stores the secret `known`, sealed so that holders of the secret `by` can open it. */
export async function seal(tx: Tx, known: string, by: string): Promise<void> {
  const fingerprint = fingerprintOf(known)
  await tx.run(keepSecret, [fingerprintOf(by), fingerprint, sealer(by).seal(sealName(fingerprint), Buffer.from(known))])
}

const otherSecret = () =>
  new Error(
    'POSTRIDER_SECRET is not the secret of this database: stored keys cannot be decrypted. Use the original secret, or the new one after postrider secret rotate, as POSTRIDER_SECRET, POSTRIDER_SECRET_FILE or the file secret in the data directory.',
  )

/**
 * Adds to `secrets` all secrets that its own and the `given` ones can open. Throws a message for the operator if the database's secret is
 * not among them. Has no effect before the first start.
 */
export async function openRing(db: Db, secrets: Secrets, given: readonly string[] = []): Promise<void> {
  const organisation = await findOrganisation(db)
  if (!organisation) return
  const [rotation, kept] = [await findRotation(db), await db.rows(keptSecrets)]
  const found = new Map([...secrets.known, ...given].map((secret) => [fingerprintOf(secret), secret]))
  // Each round opens at least one, or is the last.
  for (let before = -1; before < found.size; ) {
    before = found.size
    for (const { openedBy, fingerprint, sealed } of kept) {
      const by = found.get(openedBy)
      if (by !== undefined && !found.has(fingerprint)) found.set(fingerprint, sealer(by).open(sealName(fingerprint), sealed).toString())
    }
  }
  const own = found.get(organisation.secretFingerprint)
  if (own === undefined) throw otherSecret()
  const sealing = rotation?.step === 'sealing' ? found.get(rotation.newFingerprint) : own
  if (sealing === undefined) throw otherSecret()
  // A given secret that is not announced yet is ignored.
  const counting = new Set([organisation.secretFingerprint, ...kept.flatMap(({ openedBy, fingerprint }) => [openedBy, fingerprint])])
  secrets.use(
    sealing,
    [...found].flatMap(([fingerprint, secret]) => (counting.has(fingerprint) ? [secret] : [])),
  )
}

/** Polls for changes of the secret until stopped. */
export function followRing({ db, clock, log, secrets }: { db: Db; clock: Clock; log: Log; secrets: Secrets }): Loop {
  let seen = ''
  return startLoop({ clock, log, name: 'checking for a new secret', everyMs: lookEveryMs }, async () => {
    const now = JSON.stringify((await findRotation(db)) ?? null)
    if (now === seen) return
    // A secret that the process already holds stays in use, even if the database no longer contains values sealed under it.
    await openRing(db, secrets)
    seen = now
  })
}
