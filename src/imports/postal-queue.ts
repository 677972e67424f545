/**
 * Brings the messages that wait in Postal's queue: each becomes an email that is sent once, however often the import runs, because the
 * email's id comes from the message. Postal itself must not send them any more: the import only reads, and cannot take them away.
 */
import type { AcceptMoved } from '#accept'
import { emailIdTimeMs, Refusal } from '#base'
import type { Db } from '#db'
import { findNumbers } from '#emails'
import { emailIdOf, metadataOf, tagOf, timeOf, wholeMessage } from './postal-messages.ts'
import type { PostalSource, Row } from './postal-source.ts'

export interface QueueServer {
  serverId: number
  uuid: string
  /** undefined: the tenant is not there yet. */
  tenantId: string | undefined
}

export interface QueueCount {
  found: number
  missing: number
  failed: number
  /** Brought, though Postal was sending them when it stopped: their recipients may get them twice. */
  repeated: number
  /** The reasons of the messages that did not come, with their numbers. */
  reasons: Map<string, number>
}

export interface QueueOptions {
  /** undefined: only compares. */
  accept: AcceptMoved | undefined
  /** Retention has dropped older emails, so that a second run could not find them. */
  oldestMs: number
  nowMs: number
  progress(read: number): void
}

/** A worker of Postal renews its role every minute, and gives it back when it stops. */
const workerIsGoneAfterSeconds = 300
/** Messages in memory. */
const atOnce = 4
const maxOctets = 14 * 1_048_576

/** Refuses while a worker of Postal runs: it would send the same messages. */
export async function refuseWhilePostalSends(postal: PostalSource): Promise<void> {
  const silence = await postal.workerSilence()
  if (silence === undefined || silence > workerIsGoneAfterSeconds) return
  throw new Refusal('validation_error', {
    message: `a worker of Postal ran ${Math.max(0, silence)} seconds ago, and would send the queued messages too`,
    suggestion: 'Stop Postal (postal stop), then run the command again. A worker that was killed counts as stopped after five minutes',
  })
}

export async function bringQueue(postal: PostalSource, server: QueueServer, db: Db, options: QueueOptions): Promise<QueueCount> {
  const run = new QueueRun(postal, server, db, options)
  for await (const page of postal.queued(server.serverId)) await run.bring(page)
  return run.count
}

class QueueRun {
  readonly count: QueueCount = { found: 0, missing: 0, failed: 0, repeated: 0, reasons: new Map() }
  readonly #postal: PostalSource
  readonly #server: QueueServer
  readonly #db: Db
  readonly #options: QueueOptions

  constructor(postal: PostalSource, server: QueueServer, db: Db, options: QueueOptions) {
    this.#postal = postal
    this.#server = server
    this.#db = db
    this.#options = options
  }

  async bring(page: readonly Row[]): Promise<void> {
    const { uuid, tenantId } = this.#server
    const wanted = page.flatMap((row) => {
      this.count.found++
      const atMs = timeOf(row, this.#options.nowMs)
      const problem = this.#problemOf(row, atMs)
      if (problem === undefined && atMs !== null) return [{ row, id: emailIdOf(uuid, row, atMs) }]
      this.#fail(problem ?? 'has no usable time')
      return []
    })
    const ids = wanted.map(({ id }) => id)
    const there = tenantId === undefined ? new Map<string, number>() : await findNumbers(this.#db, tenantId, ids)
    const missing = wanted.filter(({ id }) => !there.has(id))
    if (!this.#options.accept) this.count.missing += missing.length
    else
      for (let first = 0; first < missing.length; first += atOnce)
        await Promise.all(missing.slice(first, first + atOnce).map(({ row, id }) => this.#one(row, id)))
    this.#options.progress(this.count.found)
  }

  #problemOf(row: Row, atMs: number | null): string | undefined {
    if (row.id == null) return 'is no longer among the messages of its server'
    if (row.scope !== 'outgoing') return 'is incoming mail, which only Postal can deliver'
    if (atMs !== null && atMs < this.#options.oldestMs) return 'is older than emails are kept here (POSTRIDER_KEEP_EMAIL_DAYS)'
    return undefined
  }

  #fail(reason: string): void {
    this.count.failed++
    this.count.reasons.set(reason, (this.count.reasons.get(reason) ?? 0) + 1)
  }

  async #one(row: Row, id: string): Promise<void> {
    const parts = await this.#postal.rawParts(this.#server.serverId, row, maxOctets)
    if (!parts) return this.#fail('has lost its content in Postal')
    const octets = wholeMessage(parts)
    if (!octets) return this.#fail('is larger than 14 MB')
    try {
      const isNew = await this.#options.accept?.({
        id,
        tenantId: this.#server.tenantId as string,
        recipient: typeof row.rcpt_to === 'string' ? row.rcpt_to : '',
        octets,
        bounce: !row.mail_from || Number(row.bounce ?? 0) === 1,
        acceptedAtMs: emailIdTimeMs(id) ?? 0,
        tag: tagOf(row),
        metadata: { ...metadataOf(row), postal_attempts: String(Number(row.attempts ?? 0)) },
      })
      if (!isNew) return
      this.count.missing++
      if (row.locked_at != null) this.count.repeated++
    } catch (error) {
      // A refusal to repeat is about the database, not about the message.
      if (!(error instanceof Refusal) || error.shouldRetry === true) throw error
      this.#fail(`did not come: ${error.message}`)
    }
  }
}
