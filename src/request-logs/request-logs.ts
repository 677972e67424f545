/**
 * Request logs: API requests and responses, without secrets and attachment content.
 * Owns: request_logs, request_log_bodies. Uses: base, db. Used by: privacy, housekeeping, installation, http.
 * Promises: writing an entry never delays a request; an entry can be read within a second of its response while the database is available;
 * bodies are sealed, and the secrets in them are never written; nor are the bodies of a tenant that keeps its contents for 0 days.
 */
import { type Clock, type Log, metrics, type Secrets } from '#base'
import { type Db, WriteQueue, type WriteQueueBounds, withPartitions } from '#db'
import type { NewEntry, NumberedEntry } from './log-entry.ts'
import { insertLogs, logTables } from './log-store.ts'
import type { HeldBody } from './redact.ts'

export {
  beforeFirstEntry,
  countBodiesLeft,
  hasSharedBodies,
  type LogPlace,
  removeOwnBodies,
  removeSharedBodies,
} from './body-retention.ts'
export { countEntriesLeft, removeOldEntries } from './entry-retention.ts'
export { eraseFromLogs } from './erase.ts'
export { countCallsWithAddresses, hashAddressesOfLogs } from './hash-addresses.ts'
export type { LogDetails, LogEntry, NewEntry } from './log-entry.ts'
export { findLog, findSendingLog, type LogBody, listLogs, logTables, sealedOfRequestLogs } from './log-store.ts'
export { type HeldBody, holdBody, notKept } from './redact.ts'

export interface RequestLogs {
  /** Queues an entry for writing; never blocks, never throws. */
  note(entry: NewEntry): void
  /** Entries not written yet. */
  readonly waiting: number
  /** Entries dropped since the start, because the queue was full, or at the end because the database was unavailable. */
  readonly dropped: number
  /** Writes the queued entries. Must be called before the database is closed. */
  stop(): Promise<void>
}

/** Approximate bytes of an entry without its bodies and path. */
const entryOctets = 2000

/** Days for which these tenants keep contents, of those with a retention of their own; '' is the calls that concern no single tenant. */
type ContentDays = (tenantIds: ReadonlySet<string>) => Promise<ReadonlyMap<string, number>>

const octetsIn = (body: HeldBody | null) => (body ? body.octets.length + (body.head?.length ?? 0) : 0)

export function openRequestLogs({
  db,
  clock,
  log,
  secrets,
  contentDays,
  bounds = {},
}: {
  db: Db
  clock: Clock
  log: Log
  secrets: Secrets
  /** Asked once for each batch of entries. */
  contentDays: ContentDays
  bounds?: Partial<WriteQueueBounds>
}): RequestLogs {
  const queue = new WriteQueue<NumberedEntry>({
    clock,
    log,
    bounds,
    called: 'request logs',
    onDrop: (entries) => metrics.logsDropped.inc(entries),
    write: async (batch) => {
      const days = await contentDays(new Set(batch.map(({ tenantId }) => tenantId ?? '')))
      const keepsBodies = ({ tenantId }: NumberedEntry) => days.get(tenantId ?? '') !== 0
      const insert = () => insertLogs(db, batch, { secrets, keepsBodies })
      return withPartitions(db, insert, [{ tables: logTables, timesMs: batch.map(({ at }) => at.getTime()) }])
    },
    octetsOf: ({ path, request, response }) => entryOctets + path.length + octetsIn(request.body) + octetsIn(response),
  })
  let noted = 0
  return {
    note(entry) {
      noted = (noted + 1) % 2 ** 31
      queue.push({ ...entry, nth: noted })
    },
    get waiting() {
      return queue.waiting
    },
    get dropped() {
      return queue.dropped
    },
    stop: () => queue.stop(),
  }
}
