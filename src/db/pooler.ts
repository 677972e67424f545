/** Recognises a connection pooler that shares server connections between its clients, and refuses it. */
import type { Connection } from './connection.ts'

const rounds = 3

const refusal =
  'DATABASE_URL leads to a pooler that shares server connections between clients (PgBouncer with pool_mode = transaction or statement). ' +
  'Set pool_mode = session for this database, or connect to PostgreSQL directly'

/** Shown where the pooler itself refuses a transaction. */
const statementMode = /statement pooling/i

/**
 * Throws a sentence for the operator if two clients get the same server connection. A pooler shows itself by a backend whose process id is
 * not that of the login; without one, this returns at once. `connect` opens connections outside the pool.
 */
export async function refuseSharedConnections(connect: () => Promise<Connection>): Promise<void> {
  const first = await connect()
  let second: Connection | undefined
  try {
    if ((await backendOf(first)) === first.loginPid) return
    second = await connect()
    for (let round = 0; round < rounds; round++) {
      const before = await backendOf(first)
      await second.script('begin')
      const other = await backendOf(second)
      // While the second is in a transaction, the first must still have its own server connection.
      const after = other === before ? other : await backendOf(first)
      await second.script('commit')
      if (other === before || after !== before) throw new Error(refusal)
    }
  } catch (error) {
    throw statementMode.test((error as Error).message) ? new Error(refusal, { cause: error }) : error
  } finally {
    void first.end()
    void second?.end()
  }
}

async function backendOf(connection: Connection): Promise<number> {
  const { rows } = await connection.script<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid ?? 0
}
