/**
 * Opens the database: single statements, transactions and sessions. Success means committed. An unknown outcome or a missing standby
 * confirmation is thrown, and Postrider never times out or cancels a commit.
 */
import { type Log, silentLog } from '#base'
import type { Connection, StatementResult } from './connection.ts'
import { CommitUnknown, isServerUnavailable, isTransactionConflict, mayMeanServerDown } from './errors.ts'
import { NotificationListener } from './listen-notify.ts'
import { awaitDatabase, type DatabaseWait, Pool } from './pool.ts'
import { refuseSharedConnections } from './pooler.ts'
import type { Db, DbSession, Queryable, Tx } from './queryable.ts'
import { type Sql, sql } from './sql-tag.ts'

export interface DbConfig extends DatabaseWait {
  /** `postgres://user:password@host1:5432,host2:5432/name`, or for a unix socket `postgres://user:password@/name?host=/folder`. */
  url: string
  /** Most connections at once, not counting sessions and the one for LISTEN. */
  poolSize: number
  applicationName: string
  /** PostgreSQL settings of every connection. */
  settings?: Readonly<Record<string, string>> | undefined
  log?: Log
}

const say = sql`
  select pg_notify($1, $2)`

/** Implements `Queryable` over any function that runs statements. */
function verbs(
  ask: <Row>(statement: Sql<Row>, parameters: readonly unknown[]) => Promise<StatementResult<Row>>,
  script: (text: string) => Promise<unknown>,
): Queryable {
  return {
    rows: async (statement, parameters = []) => (await ask(statement, parameters)).rows,
    first: async (statement, parameters = []) => (await ask(statement, parameters)).rows[0],
    run: async (statement, parameters = []) => (await ask(statement, parameters)).count,
    script: async (text) => void (await script(text)),
  }
}

/** Rejects with `DatabaseUnreachable` if no writable host answers within `waitMs`, and with a sentence if a pooler shares connections. */
export async function openDb({ log = silentLog, waitMs, ending, ...config }: DbConfig): Promise<Db> {
  const pool = new Pool({ ...config, log })
  await awaitDatabase(pool, log, { waitMs, ending })
  try {
    await refuseSharedConnections(() => pool.extra())
  } catch (error) {
    await pool.close()
    throw error
  }
  const listener = new NotificationListener(() => pool.extra(), log)
  const sessions = new Set<DbSession>()
  const db: Db = {
    scope: 'database',
    ...verbs(
      (statement, parameters) => againIfSacrificed(() => alone(pool, (connection) => connection.ask(statement, parameters))),
      (text) => alone(pool, (connection) => connection.script(text)),
    ),
    transaction: (work) => againIfSacrificed(() => transactOnce(pool, work)),
    listen: (channel, notified, options) => listener.listen(channel, notified, options),
    async notify(channel, payload) {
      await db.rows(say, [channel, payload])
    },
    get interruptions() {
      return pool.interruptions
    },
    async session() {
      const session = sessionOn(await pool.extra(), () => sessions.delete(session))
      sessions.add(session)
      return session
    },
    async close() {
      await listener.close()
      await Promise.all([...sessions].map((session) => session.close()))
      await pool.close()
    },
  }
  return db
}

/** Runs single statements on a connection of the pool. */
async function alone<T>(pool: Pool, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await pool.take()
  try {
    return await work(connection)
  } catch (error) {
    throw judged(pool, (await isUnknown(connection, error)) ? new CommitUnknown(error) : error)
  } finally {
    pool.give(connection)
  }
}

async function transactOnce<T>(pool: Pool, work: (tx: Tx) => Promise<T>): Promise<T> {
  const connection = await pool.take()
  try {
    await connection.script('begin')
    const result = await inside(connection, work)
    await commit(connection)
    return result
  } catch (error) {
    throw judged(pool, error)
  } finally {
    pool.give(connection)
  }
}

/** Drops the pool's connections if `error` reports that their server is unavailable; returns `error`. */
function judged(pool: Pool, error: unknown): unknown {
  if (isServerUnavailable(error instanceof CommitUnknown ? error.cause : error)) pool.drop()
  return error
}

function sessionOn(connection: Connection, onClose: () => void): DbSession {
  const lost = new AbortController()
  connection.onEnd(() => lost.abort())
  return {
    scope: 'session',
    lost: lost.signal,
    copyOut: (text) => connection.copyOut(text),
    copyIn: (text) => connection.copyIn(text),
    ...verbs(
      (statement, parameters) => connection.ask(statement, parameters),
      (text) => connection.script(text),
    ),
    async close() {
      onClose()
      await connection.end()
    },
  }
}

/** A deadlock of several transactions can have more than one victim. */
const maxTries = 4

/** Repeats `work` after a deadlock: it was rolled back, and the other transactions have continued. */
async function againIfSacrificed<T>(work: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await work()
    } catch (error) {
      if (tried === maxTries || !isTransactionConflict(error)) throw error
    }
  }
}

/**
 * An error that leaves the session alive means that the commit failed. Only after an error that ends the session is the outcome unknown.
 */
async function isUnknown(connection: Connection, error: unknown): Promise<boolean> {
  if (connection.socketLost) return true
  return (
    mayMeanServerDown(error) &&
    connection.script('select 1').then(
      () => false,
      () => true,
    )
  )
}

/** Runs `work` in a transaction that has begun; rolls back if it fails, and drops a connection that cannot roll back. */
async function inside<T>(connection: Connection, work: (tx: Tx) => Promise<T>): Promise<T> {
  let over = false
  const unlessOver = <R>(act: () => Promise<R>): Promise<R> =>
    over ? Promise.reject(new Error('a statement ran after its transaction had ended')) : act()
  const tx: Tx = {
    scope: 'transaction',
    ...verbs(
      (statement, parameters) => unlessOver(() => connection.ask(statement, parameters)),
      (text) => unlessOver(() => connection.script(text)),
    ),
  }
  try {
    return await work(tx)
  } catch (error) {
    over = true
    await connection.script('rollback').catch(() => connection.end())
    throw error
  } finally {
    over = true
  }
}

async function commit(connection: Connection): Promise<void> {
  const { command } = await connection.script('commit').catch(async (error: unknown) => {
    throw (await isUnknown(connection, error)) ? new CommitUnknown(error) : error
  })
  // A transaction with a failed statement answers COMMIT with ROLLBACK, without an error.
  if (command !== 'COMMIT') throw new Error('the transaction was rolled back because one of its statements failed')
}
