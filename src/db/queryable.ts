/** What rooms are given to speak to PostgreSQL with: the same three verbs on a transaction, on a session and on the database. */
import type { Readable, Writable } from 'node:stream'
import type { Sql } from './sql.ts'

export interface Queryable {
  rows<Row>(statement: Sql<Row>, parameters?: readonly unknown[]): Promise<Row[]>
  first<Row>(statement: Sql<Row>, parameters?: readonly unknown[]): Promise<Row | undefined>
  /** Returns the number of affected rows. */
  run(statement: Sql<unknown>, parameters?: readonly unknown[]): Promise<number>
  /** Unprepared text of one or several statements: migrations, partitions and other DDL. */
  script(text: string): Promise<void>
}

/** The caller commits. */
export interface Tx extends Queryable {
  readonly scope: 'transaction'
}

/** One connection for as long as it is open: what an advisory lock needs. Counts beside the pool, not in it. */
export interface Session extends Queryable {
  readonly scope: 'session'
  /** Aborts when the connection is lost, and with it every lock it held. */
  readonly lost: AbortSignal
  /** `copy … to stdout`: what the server sends, as fast as it is read. */
  copyOut(text: string): Readable
  /** `copy … from stdin`: what is written goes to the server; it finishes when the server has taken all. */
  copyIn(text: string): Writable
  /** Ends the connection, and with it every lock it held. */
  close(): Promise<void>
}

export interface ListenOptions {
  /** Runs after the connection was lost and is listening again: whatever was said in between was not heard. */
  onReconnect?: () => void
}

/** Every statement commits by itself. One whose commit may or may not have happened throws `CommitUnknown`. */
export interface Db extends Queryable {
  readonly scope: 'database'
  /**
   * Commits when `work` resolves, rolls back and rethrows when it rejects. Throws `CommitUnknown` or `NotDurable` (see errors.ts). A deadlock's
   * victim is done again, so `work` leaves nothing but in the database.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /** A hint, never a promise: what is said while the connection is down is lost. The returned function stops listening. */
  listen(channel: string, heard: (payload: string) => void, options?: ListenOptions): Promise<() => Promise<void>>
  notify(channel: string, payload: string): Promise<void>
  session(): Promise<Session>
  /** Waits for what is running, then ends every connection. */
  close(): Promise<void>
}
