/** Classifies database errors, above all of commits: not committed, outcome unknown, or committed without the requested durability. */
import { DatabaseError } from 'pg'

/** The connection broke, or the server went down, during a commit, so that its outcome is unknown. Only idempotent work may be repeated. */
export class CommitUnknown extends Error {
  constructor(cause: unknown) {
    super('lost the connection to the database during a commit; the result is unknown', { cause })
    this.name = 'CommitUnknown'
  }
}

/**
 * Committed on this server, but the wait for its standby was cancelled, so that a failover could lose the commit. PostgreSQL reports
 * success with a warning (reliability finding 7). Such a commit must not be reported as accepted.
 */
export class NotDurable extends Error {
  /** The SQLSTATE of the warning. */
  readonly code = '01000'

  constructor() {
    super('the wait for the standby was cancelled: committed only on this server')
    this.name = 'NotDurable'
  }
}

/** No writable host of the database could be reached. No statement was sent. */
export class DatabaseUnreachable extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'DatabaseUnreachable'
  }
}

/**
 * Why a host cannot be used now: it did not answer, it accepts no writes, it (or its machine) refused the connection, or another reason. An
 * `other` reason does not show that the server is gone: it answered with an error, such as too many connections, or its name was not found.
 */
export type HostFault = 'silent' | 'read-only' | 'refused' | 'other'

/** One host cannot be used for writes. */
export class HostUnusable extends DatabaseUnreachable {
  readonly fault: HostFault
  /** The timeline of a standby; 0 if unknown. */
  readonly timeline: number

  constructor(host: string, fault: HostFault, timeline: number, cause: unknown) {
    super(`${host}: ${(cause as Error).message}`, cause)
    this.fault = fault
    this.timeline = timeline
  }
}

/** The SQLSTATE of a server error, if it is one. */
export function sqlState(error: unknown): string | undefined {
  // The code's form does not suffice: EPIPE looks like a SQLSTATE.
  return error instanceof DatabaseError || error instanceof NotDurable ? error.code : undefined
}

/** Another row has the same key. */
export const isUniqueViolation = (error: unknown): boolean => sqlState(error) === '23505'

/** The statement exceeded its time limit and was cancelled. */
export const isStatementTimeout = (error: unknown): boolean => sqlState(error) === '57014'

/** The database (classes 21, 22, 23) or Postrider rejected the data itself, so that a retry cannot succeed. */
export const isContentRejected = (error: unknown): boolean =>
  /^2[123]/.test(sqlState(error) ?? '') || error instanceof TypeError || error instanceof RangeError

/** The transaction was rolled back as the victim of a deadlock or a serialisation failure. */
export const isTransactionConflict = (error: unknown): boolean => ['40001', '40P01'].includes(sqlState(error) ?? '')

/** Too many connections for the server, the database or the role. */
export const isTooManyConnections = (error: unknown): boolean =>
  sqlState(error) === '53300' || (error instanceof DatabaseUnreachable && isTooManyConnections(error.cause))

/** The server is shutting down, crashed, is starting or became read-only, so that every idle connection to it is suspect. */
const unavailableStates = new Set(['25006', '57P01', '57P02', '57P03'])
export const isServerUnavailable = (error: unknown) => unavailableStates.has(sqlState(error) ?? '')

/** After these codes the session or its prepared statements are unusable: 0A000 is a plan for an older schema, 26000 a lost statement. */
export const isConnectionFatal = (error: unknown) => /^(08|57P|0A000|25006|25P03|26000|53|58|XX)/.test(sqlState(error) ?? '')

/** The server may have gone down with this error; whether the session survived must be checked. */
export const mayMeanServerDown = (error: unknown) => /^(08|57P|53|58|XX)/.test(sqlState(error) ?? '')
