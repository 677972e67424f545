/**
 * Turns of searches over emails, events, request logs, the audit log and received mail. Each may take a connection to the database for tens of
 * seconds, and a process has twelve for all its requests.
 */
import { openTenantTurns } from './tenant-turns.ts'

export const searchTurns = openTenantTurns({ atOnce: 8, atOnceOfTenant: 4, maxWaiting: 40 })

/** Of lists that are short without a filter, which no search delays. */
export const listTurns = openTenantTurns({ atOnce: 6, atOnceOfTenant: 3, maxWaiting: 100 })

/** Of reads of one message with all its recipients in other vendors' APIs: a few short queries each, which no search delays. */
export const messageTurns = openTenantTurns({ atOnce: 6, atOnceOfTenant: 3, maxWaiting: 100 })
