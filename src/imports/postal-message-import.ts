/** The part of an import that concerns single messages: the queue and the history of each server, on request, with their notes. */
import type { AcceptMoved } from '#accept'
import type { Clock } from '#base'
import type { Db } from '#db'
import { bringHistory, compareHistory, type HistoryCount } from './postal-history.ts'
import type { Note, PlannedTenant } from './postal-plan.ts'
import { bringQueue } from './postal-queue.ts'
import type { PostalSource } from './postal-source.ts'

interface MessageDeps {
  db: Db
  clock: Clock
  acceptMoved: AcceptMoved
  keepEmailDays: number
}

interface MessageOptions {
  apply: boolean
  queued?: boolean
  historySince?: Date | undefined
  progress(state: string): void
}

interface Count {
  found: number
  missing: number
  failed: number
}

interface MessageReport {
  counts: { 'queued messages'?: Count; history?: Count }
  notes: Note[]
}

const dayMs = 86_400_000
const shown = (count: number) => count.toLocaleString('en')

export class MessageImport {
  readonly #source: PostalSource
  readonly #deps: MessageDeps
  readonly #options: MessageOptions
  readonly #report: MessageReport
  /** The first day whose emails are kept. */
  readonly #oldestMs: number

  constructor(source: PostalSource, deps: MessageDeps, options: MessageOptions, report: MessageReport) {
    this.#source = source
    this.#deps = deps
    this.#options = options
    this.#report = report
    this.#oldestMs = Math.floor((deps.clock.nowMs() - deps.keepEmailDays * dayMs) / dayMs) * dayMs
    if (options.queued) report.counts['queued messages'] = { found: 0, missing: 0, failed: 0 }
    if (options.historySince) report.counts.history = { found: 0, missing: 0, failed: 0 }
  }

  /** `tenantId` undefined: only compared, and not there. */
  async ofServer(planned: PlannedTenant, tenantId: string | undefined): Promise<void> {
    if (this.#options.queued) await this.#queue(planned, tenantId)
    else await this.#noteQueue(planned)
    if (this.#options.historySince) await this.#history(planned, tenantId, this.#options.historySince)
  }

  #note(about: string, name: string, text: string): void {
    this.#report.notes.push({ about, name, text })
  }

  #add(kind: 'queued messages' | 'history', { found, missing, failed }: Count): void {
    const count = this.#report.counts[kind]
    if (!count) return
    count.found += found
    // A failed one is among the missing ones, as for other records.
    count.missing += missing + failed
    count.failed += failed
  }

  async #noteQueue({ serverId, name }: PlannedTenant): Promise<void> {
    const queued = await this.#source.countQueued(serverId)
    if (queued === 0) return
    const advice = 'let Postal deliver them before you stop it, or stop it and bring them with --queued'
    this.#note('queued messages', name, `${shown(queued)} messages are in the queue of Postal: ${advice}`)
  }

  async #queue({ serverId, uuid, name }: PlannedTenant, tenantId: string | undefined): Promise<void> {
    const { apply } = this.#options
    const count = await bringQueue(this.#source, { serverId, uuid, tenantId }, this.#deps.db, {
      accept: apply ? this.#deps.acceptMoved : undefined,
      oldestMs: this.#oldestMs,
      nowMs: this.#deps.clock.nowMs(),
      progress: (read) => this.#options.progress(`${name}: ${shown(read)} queued messages`),
    })
    this.#add('queued messages', count)
    for (const [reason, number] of count.reasons) this.#note('queued messages', name, `${shown(number)}: ${reason}`)
    if (count.repeated > 0)
      this.#note(
        'queued messages',
        name,
        `${shown(count.repeated)} were being sent by Postal when it stopped: their recipients may get them twice`,
      )
  }

  async #history({ serverId, uuid, name }: PlannedTenant, tenantId: string | undefined, wanted: Date): Promise<void> {
    const since = new Date(Math.max(wanted.getTime(), this.#oldestMs))
    const server = { serverId, uuid, tenantId }
    const { apply } = this.#options
    const count: HistoryCount =
      apply && tenantId !== undefined
        ? await bringHistory(this.#source, { ...server, tenantId }, since, this.#deps, (read, total) =>
            this.#options.progress(`${name}: ${shown(read)} of ${shown(total)} messages`),
          )
        : await compareHistory(this.#source, server, since, this.#deps)
    this.#add('history', count)
    if (count.failed > 0) this.#note('history', name, `${shown(count.failed)} messages have no usable time or no recipient address`)
    if (count.unfinished > 0)
      this.#note('history', name, `${shown(count.unfinished)} messages are not finished in Postal: run the command again later`)
    if (count.older > 0)
      this.#note('history', name, `${shown(count.older)} messages are older than ${since.toISOString().slice(0, 10)}, and stay in Postal`)
  }
}
