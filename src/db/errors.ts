/** What may go wrong with a commit, told apart: known not to have happened, unknown, done but not as durable as it was asked to be. */
import { DatabaseError } from 'pg'

/** The connection broke, or the server went down, while a commit was under way: it may or may not have happened. Repeat only what may be repeated. */
export class CommitUnknown extends Error {
  constructor(cause: unknown) {
    super('the connection to the database was lost during a commit, which may or may not have happened', { cause })
    this.name = 'CommitUnknown'
  }
}

/**
 * Committed on this server, but somebody cancelled the wait for its standby: a failover could lose it. PostgreSQL reports success with a
 * warning (reliability finding 7); nobody may be told "accepted" on the strength of that.
 */
export class NotDurable extends Error {
  /** The SQLSTATE of the warning. */
  readonly code = '01000'

  constructor() {
    super('the wait for the standby was cancelled: committed on this server only')
    this.name = 'NotDurable'
  }
}

/** No host of the database could be reached, or none that may be written to. Nothing was sent. */
export class DatabaseUnreachable extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'DatabaseUnreachable'
  }
}

/** The SQLSTATE of an error of the server, if it is one. */
export function sqlState(error: unknown): string | undefined {
  // Not by the form of the code: EPIPE looks like one.
  return error instanceof DatabaseError || error instanceof NotDurable ? error.code : undefined
}

/** An objection to what is to be written, the database's (22, 23) or ours, and not to the moment: repeating it is of no use. */
export const refusesContent = (error: unknown): boolean =>
  /^2[23]/.test(sqlState(error) ?? '') || error instanceof TypeError || error instanceof RangeError

/** Ended so that others can go on, with whom it waited in a circle; all that it did is undone. */
export const wasSacrificed = (error: unknown): boolean => ['40001', '40P01'].includes(sqlState(error) ?? '')

/** Too many connections, of the server's, the database's or the role's. */
export const saysServerIsFull = (error: unknown): boolean =>
  sqlState(error) === '53300' || (error instanceof DatabaseUnreachable && saysServerIsFull(error.cause))

/** The server is going down, has gone, starts, or became read-only: every idle connection to it is suspect. */
const leavingStates = new Set(['25006', '57P01', '57P02', '57P03'])
export const saysServerIsLeaving = (error: unknown) => leavingStates.has(sqlState(error) ?? '')

/** After these the session is over or its prepared statements are of no more use: 0A000 is a plan made for another schema, 26000 a lost one. */
export const spoilsConnection = (error: unknown) => /^(08|57P|0A000|25006|25P03|26000|53|58|XX)/.test(sqlState(error) ?? '')

/** The server may have gone down with this error; whether the session survived must be asked. */
export const maySpellEnd = (error: unknown) => /^(08|57P|53|58|XX)/.test(sqlState(error) ?? '')
