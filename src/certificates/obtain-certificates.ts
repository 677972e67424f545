/**
 * Obtains and renews the certificates of this instance's names. Instances that share the database never order one name at the same time, and
 * failures are spaced so that the CA's rate limits are not reached.
 */
import { type Clock, type Ids, type Log, metrics, pause, type Secrets, startLoop } from '#base'
import type { Db } from '#db'
import { type OrderDeps, obtainCertificate } from './acme-order.ts'
import { TooManyOrders } from './acme-requests.ts'
import {
  addNames,
  book,
  type ClaimedName,
  certificatesChanged,
  certificatesDue,
  deleteOldNames,
  findDue,
  followDirectory,
  listCertificates,
  saveCertificate,
  saveFailure,
} from './certificate-records.ts'
import { type ChallengeKind, challengeFor, laterAsAsked, orderRetryMs, renewalMs } from './schedule.ts'

export interface ObtainDeps extends OrderDeps {
  db: Db
  clock: Clock
  log: Log
  ids: Pick<Ids, 'random'>
  secrets: Secrets
  /** The names of the installation that lead to this instance. */
  own: readonly string[]
  /** Further names that are verified to lead to this installation, with their tenants; null: of the installation itself. */
  listVerifiedNames: () => Promise<readonly { name: string; tenantId: string | null }[]>
  /** The names of all track domains, whether they lead here or not. */
  listTrackNames: () => Promise<readonly string[]>
  /** The challenges that this instance's ports can answer, the preferred one first. */
  challenges: readonly ChallengeKind[]
}

const lookEveryMs = 10_000
const saveWithinMs = 15_000
const saveAgainMs = 500
const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** Let's Encrypt allows 300 orders in three hours. Each of these names may fail up to four times in an hour, later less often. */
const maxNamesPerHour = 50
/** Of these, names of one tenant, and names that have failed before: both leave orders to others. */
const maxOfTenant = 40
const maxRetries = 10
/** Names with a metric, soonest expiry first. */
const maxMeasured = 50

/** Repeats a write that fails for some seconds: a database that is away for a moment must not cost an issued certificate. */
async function repeated(clock: Clock, write: () => Promise<void>): Promise<void> {
  const untilMs = clock.monotonicMs() + saveWithinMs
  for (;;) {
    try {
      return await write()
    } catch (error) {
      if (clock.monotonicMs() >= untilMs) throw error
      await pause(clock, saveAgainMs)
    }
  }
}

/** Looks for due names now, after each order, and every ten seconds or when `requestRenewal` is called. */
export async function startObtaining(deps: ObtainDeps): Promise<{ stop(): Promise<void> }> {
  const obtaining = new Obtaining(deps)
  const settings = { clock: deps.clock, log: deps.log, name: 'obtaining certificates', everyMs: lookEveryMs }
  const loop = startLoop(settings, (stopping) => obtaining.turn(stopping))
  const stopListening = await deps.db.listen(certificatesDue, () => loop.nudge())
  return {
    async stop() {
      await Promise.all([loop.stop(), stopListening()])
    },
  }
}

class Obtaining {
  readonly #deps: ObtainDeps
  /** Once: instances with different settings must not take a name from each other again and again. */
  #hasFollowed = false
  #cleanedAtMs = Number.NEGATIVE_INFINITY

  constructor(deps: ObtainDeps) {
    this.#deps = deps
  }

  /** Places one order if any is due; then the next turn follows at once. Names are read before each order, because one may take 100 seconds. */
  async turn(stopping: AbortSignal): Promise<number | void> {
    const { db, clock, own, directory } = this.#deps
    const owners = new Map((await this.#deps.listVerifiedNames()).map(({ name, tenantId }) => [name, tenantId ?? ''] as const))
    for (const name of own) owners.set(name, '')
    const names = [...owners.keys()]
    await addNames(db, names, clock.nowMs())
    if (!this.#hasFollowed) await followDirectory(db, names, directory, clock.nowMs())
    this.#hasFollowed = true
    const claimed = stopping.aborted ? undefined : await this.#claim(owners)
    if (claimed) await this.#order(claimed, stopping)
    if (clock.monotonicMs() - this.#cleanedAtMs >= hourMs) {
      this.#cleanedAtMs = clock.monotonicMs()
      await deleteOldNames(db, clock.nowMs(), await this.#deps.listTrackNames())
    }
    await this.#measure(names)
    return claimed ? 0 : undefined
  }

  #claim(owners: ReadonlyMap<string, string>): Promise<(ClaimedName & { bookedMs: number }) | undefined> {
    const { db, clock, own, ids } = this.#deps
    return db.transaction(async (tx) => {
      const nowMs = clock.nowMs()
      const due = await findDue(tx, { own, owners, nowMs, sinceMs: nowMs - hourMs, maxNames: maxNamesPerHour, maxOfTenant, maxRetries })
      if (!due) return undefined
      const bookedMs = nowMs + orderRetryMs(due.failures + 1, ids.random())
      await book(tx, due, { nowMs, retryAtMs: bookedMs })
      return { ...due, bookedMs }
    })
  }

  async #order({ name, challenge, failures, bookedMs }: ClaimedName & { bookedMs: number }, stopping: AbortSignal): Promise<void> {
    const { db, clock, log, ids, secrets, directory, challenges } = this.#deps
    const kind = challengeFor(challenges, challenge, failures)
    try {
      const { cert, key, fromMs, toMs } = await obtainCertificate(name, kind, this.#deps, stopping)
      const times = { issuedMs: clock.nowMs(), expiresMs: toMs, renewAtMs: renewalMs(fromMs, toMs, ids.random(), clock.nowMs()) }
      await repeated(clock, () => saveCertificate(db, secrets, { name, directory, cert, key, challenge: kind, ...times }))
      // A hint only.
      await db.notify(certificatesChanged, name).catch(() => undefined)
      log.info({ host: name, expires: new Date(toMs).toISOString() }, 'obtained a certificate')
    } catch (error) {
      const { message } = error as Error
      const askedMs = error instanceof TooManyOrders ? error.askedMs : 0
      const retryMs = laterAsAsked(bookedMs - clock.nowMs(), askedMs)
      await saveFailure(db, name, `${kind}: ${message}`, { bookedMs, notBeforeMs: clock.nowMs() + retryMs })
      log.warn(
        { host: name, challenge: kind, failures: failures + 1, reason: message, retryInSeconds: Math.round(retryMs / 1000) },
        'failed to obtain a certificate; run postrider doctor',
      )
    }
  }

  async #measure(names: readonly string[]): Promise<void> {
    const { db, clock } = this.#deps
    const wanted = new Set(names)
    const expiring = (await listCertificates(db))
      .flatMap(({ name, expiresAt }) => (wanted.has(name) && expiresAt ? [{ name, leftMs: expiresAt.getTime() - clock.nowMs() }] : []))
      .sort((one, other) => one.leftMs - other.leftMs)
    metrics.certificateDays.reset()
    for (const { name, leftMs } of expiring.slice(0, maxMeasured)) metrics.certificateDays.set({ name }, leftMs / dayMs)
  }
}
