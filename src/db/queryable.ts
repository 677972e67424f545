/** The interface of all modules to PostgreSQL: the same methods on a transaction, a session and the database. */
import type { Readable, Writable } from 'node:stream'
import type { Sql } from './sql-tag.ts'

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

/** One dedicated connection, as an advisory lock needs. It is not counted in the pool. */
export interface DbSession extends Queryable {
  readonly scope: 'session'
  /** Aborts when the connection, and every lock it held, is lost. */
  readonly lost: AbortSignal
  /** `copy … to stdout`: streams the server's data with backpressure. */
  copyOut(text: string): Readable
  /** `copy … from stdin`: streams data to the server; finishes once the server has received all of it. */
  copyIn(text: string): Writable
  /** Ends the connection and releases its locks. */
  close(): Promise<void>
}

export interface ListenOptions {
  /** Called after a lost connection listens again; notifications sent in between were lost. */
  onReconnect?: () => void
}

/** Each statement commits separately. An unknown commit outcome throws `CommitUnknown`. */
export interface Db extends Queryable {
  readonly scope: 'database'
  /**
   * Commits when `work` resolves; rolls back and rethrows when it rejects. Throws `CommitUnknown` or `NotDurable` (see errors.ts). `work`
   * is repeated after a deadlock, so it must have no effects outside the database.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /** A hint only: notifications sent while the connection is down are lost. The returned function stops listening. */
  listen(channel: string, notified: (payload: string) => void, options?: ListenOptions): Promise<() => Promise<void>>
  notify(channel: string, payload: string): Promise<void>
  session(): Promise<DbSession>
  /**
   * Grows when a connection ends, or when another server is used. As long as it stands, the server has every commit that it confirmed, also
   * one that did not wait for its disk.
   */
  readonly interruptions: number
  /** Waits for running statements, then ends every connection. */
  close(): Promise<void>
}
