/**
 * The event log of all emails: the only source for webhooks, usage, live view and timelines.
 * Owns: events. Uses: base, db. Used by: suppressions, emails, spool, tracking, accept, delivery, returns, received-mail, webhooks, usage,
 * reputation, privacy, housekeeping, doctor, http.
 * Promises: an event is appended in the transaction that makes it true.
 */

export { eraseAddressFromEvents, eraseFromEvents } from './erase-events.ts'
export { type CountedChange, type CountedEvent, readCountedEvents, readTailBySecond, readTailByTenant } from './event-counts.ts'
export {
  appendEvents,
  countEventsLeft,
  countEventsWithin,
  dataWithoutAttempt,
  type EventKind,
  eventTables,
  findEndOfLog,
  findEventsAt,
  findTimeAfter,
  isReadable,
  type LoggedEvent,
  type LogPosition,
  listEmailsWithEvent,
  type NewEvent,
  readEvents,
  readTenantEvents,
  simulatedAt,
  simulatedMs,
  startOfLog,
} from './event-log.ts'
export { countEventsWithAddresses, hashAddressesOfEvents } from './hash-addresses.ts'
export { type AttemptEnd, type HourlyStats, readRecentEnds, summariseEvents } from './hourly-stats.ts'
export { listEventsBetween } from './list-events.ts'
export { findOldestOpenTransaction, logDelayMs } from './log-delay.ts'
export { nextEventAfter } from './new-events.ts'
export { removeOldEvents } from './old-events.ts'
export { recordOperatorAction } from './operator-action.ts'
export { type OutcomeEvent, readOutcomeEvents } from './outcome-events.ts'
