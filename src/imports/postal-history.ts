/**
 * Brings the messages that Postal is done with, as records of emails with their attempts. Each page is one transaction with the position
 * in it: an interrupted run goes on there. A message that is there stays as it is.
 */
import type { Clock } from '#base'
import type { Db } from '#db'
import { addImportedEmails, findNumbers, type ImportedEmail } from '#emails'
import { findPosition, type ImportPosition, movePosition } from './import-positions.ts'
import { emailOf, timeOf } from './postal-messages.ts'
import type { MessageRows, PostalSource } from './postal-source.ts'

export interface HistoryDeps {
  db: Db
  clock: Clock
}

export interface HistoryServer {
  serverId: number
  uuid: string
  /** undefined: neither the tenant nor its history is there yet. */
  tenantId: string | undefined
}

export interface HistoryCount {
  /** From `since` on. */
  found: number
  missing: number
  failed: number
  /** Left in Postal, which may still send them. */
  unfinished: number
  older: number
}

const source = 'postal'
/** Postal gives a message up long before, and ends a hold after a week. Older unfinished messages do not keep the position back. */
const unfinishedForMs = 30 * 86_400_000

/** Counts without writing. */
export async function compareHistory(
  postal: PostalSource,
  server: HistoryServer,
  since: Date,
  { db, clock }: HistoryDeps,
): Promise<HistoryCount> {
  const { total, older } = await postal.countMessages(server.serverId, since)
  const stored = server.tenantId === undefined ? undefined : await findPosition(db, server.tenantId, source)
  const count = { found: total, missing: total, failed: 0, unfinished: 0, older }
  if (stored === undefined || stored.since > since) return count
  // Only the messages after the position are read; most often there are no new ones.
  const pages = postal.messages(server.serverId, stored.position, since)
  count.missing = 0
  for await (const page of pages) {
    const emails = page.map((one) => emailOf(server.uuid, one, clock.nowMs()))
    const ids = emails.flatMap((one) => (typeof one === 'string' ? [] : [one.id]))
    count.missing += ids.length - (await findNumbers(db, server.tenantId as string, ids)).size
    count.failed += emails.filter((one) => one === 'bad').length
    count.unfinished += emails.filter((one) => one === 'unfinished').length
  }
  return count
}

/** Brings all that is missing; `progress` is called with the number of messages read so far. */
export async function bringHistory(
  postal: PostalSource,
  server: HistoryServer & { tenantId: string },
  since: Date,
  deps: HistoryDeps,
  progress: (read: number, total: number) => void,
): Promise<HistoryCount> {
  const { total, older } = await postal.countMessages(server.serverId, since)
  const run = new HistoryRun(server, since, deps)
  await run.begin()
  let read = 0
  for await (const page of ahead(postal.messages(server.serverId, run.position, since))) {
    await run.bring(page)
    read += page.length
    progress(read, total)
  }
  return { ...run.count, found: total, older }
}

class HistoryRun {
  readonly count = { missing: 0, failed: 0, unfinished: 0 }
  readonly #server: HistoryServer & { tenantId: string }
  readonly #deps: HistoryDeps
  #reached: ImportPosition
  /** An unfinished message was read: a later run begins before it. */
  #isKeptBack = false

  constructor(server: HistoryServer & { tenantId: string }, since: Date, deps: HistoryDeps) {
    this.#server = server
    this.#deps = deps
    this.#reached = { since, position: 0 }
  }

  get position(): number {
    return this.#reached.position
  }

  /** The position of a run that left out newer messages than this one does not count. */
  async begin(): Promise<void> {
    const stored = await findPosition(this.#deps.db, this.#server.tenantId, source)
    if (stored && stored.since <= this.#reached.since) this.#reached = { ...this.#reached, position: stored.position }
  }

  async bring(page: readonly MessageRows[]): Promise<void> {
    const { db, clock } = this.#deps
    const { tenantId, uuid } = this.#server
    const emails: ImportedEmail[] = []
    let position = this.#reached.position
    for (const one of page) {
      const email = emailOf(uuid, one, clock.nowMs())
      if (email === 'bad') this.count.failed++
      else if (email === 'unfinished') {
        this.count.unfinished++
        this.#isKeptBack ||= this.#mayFinish(one)
      } else emails.push(email)
      if (!this.#isKeptBack) position = Number(one.message.id)
    }
    const reached = { ...this.#reached, position }
    this.count.missing += await addImportedEmails(db, tenantId, emails, (tx) => movePosition(tx, tenantId, source, reached))
    this.#reached = reached
  }

  #mayFinish({ message }: MessageRows): boolean {
    const nowMs = this.#deps.clock.nowMs()
    return (timeOf(message, nowMs) ?? 0) > nowMs - unfinishedForMs
  }
}

/** Reads the next page while the caller works on one. */
async function* ahead<Page>(pages: AsyncIterable<Page>): AsyncGenerator<Page> {
  const iterator = pages[Symbol.asyncIterator]()
  let next = iterator.next()
  for (;;) {
    const { done, value } = await next
    if (done) return
    next = iterator.next()
    // Its failure is thrown when it is awaited.
    next.catch(() => {})
    yield value
  }
}
