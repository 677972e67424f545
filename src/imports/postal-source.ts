/** Reads Postal's MariaDB: the main database whole, and each server's own database in pages. It only reads, in one snapshot per database. */
import type { Connection } from 'mysql2/promise'

/** A row with Postal's own column names; columns of other versions may be missing. */
export type Row = Readonly<Record<string, unknown>>

/** The tables of the main database that the import reads. */
export const mainTables = [
  'organizations',
  'organization_users',
  'users',
  'servers',
  'domains',
  'credentials',
  'webhooks',
  'webhook_events',
  'track_domains',
  'routes',
  'ip_pools',
  'ip_addresses',
  'ip_pool_rules',
  'queued_messages',
] as const
export type MainTable = (typeof mainTables)[number]
export type PostalTables = Readonly<Record<MainTable, readonly Row[]>>

export interface PostalSourceOptions {
  /** `mysql://user:password@host:port/database`; the query may have `socketPath`. */
  url: string
  /** Of the databases of servers, `PREFIX-server-ID`. */
  messagePrefix: string
}

export interface PostalSource {
  main(): Promise<PostalTables>
  countSuppressions(serverId: number): Promise<number>
  /** Pages of suppressions by id, as long as there are any. */
  suppressions(serverId: number): AsyncIterable<readonly Row[]>
  close(): Promise<void>
}

const pageRows = 10_000
/** MariaDB's code for a table that does not exist, and for a database. */
const missing = new Set(['ER_NO_SUCH_TABLE', 'ER_BAD_DB_ERROR'])
const connectWithinMs = 10_000

/** Connects; throws an Error with the address and the problem. */
export async function openPostalSource({ url, messagePrefix }: PostalSourceOptions): Promise<PostalSource> {
  const { hostname, port, username, password, pathname, searchParams, protocol } = new URL(url)
  if (protocol !== 'mysql:' && protocol !== 'mariadb:') throw new Error('the URL must begin with mysql:// or mariadb://')
  if (!/^[A-Za-z0-9_-]{1,40}$/.test(messagePrefix)) throw new Error(`"${messagePrefix}" is not a prefix of databases`)
  const socketPath = searchParams.get('socketPath')
  // Loaded here, because no other command needs it.
  const { createConnection } = await import('mysql2/promise')
  const connection = await createConnection({
    ...(socketPath ? { socketPath } : { host: hostname, port: Number(port || 3306) }),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)) || 'postal',
    connectTimeout: connectWithinMs,
    charset: 'utf8mb4',
    timezone: 'Z',
    decimalNumbers: true,
  }).catch((error: unknown) => {
    throw new Error(`cannot connect to Postal's database at ${socketPath ?? hostname}: ${(error as Error).message}`)
  })
  await connection.query('set session transaction read only')
  return new MariaDb(connection, messagePrefix)
}

class MariaDb implements PostalSource {
  readonly #connection: Connection
  readonly #prefix: string

  constructor(connection: Connection, prefix: string) {
    this.#connection = connection
    this.#prefix = prefix
  }

  async main(): Promise<PostalTables> {
    const read: Partial<Record<MainTable, readonly Row[]>> = {}
    await this.#connection.query('start transaction with consistent snapshot')
    for (const table of mainTables) read[table] = await this.#rows(`select * from \`${table}\``)
    await this.#connection.query('commit')
    const { organizations, servers } = read
    if (!organizations?.length && !servers?.length)
      throw new Error('the database has no organizations and no servers: is it the main database of Postal?')
    return read as PostalTables
  }

  async countSuppressions(serverId: number): Promise<number> {
    const [row] = await this.#rows(`select count(*) as total from ${this.#table(serverId, 'suppressions')}`)
    return Number(row?.total ?? 0)
  }

  async *suppressions(serverId: number): AsyncIterable<readonly Row[]> {
    for (let after = 0; ; ) {
      const page = await this.#rows(`select * from ${this.#table(serverId, 'suppressions')} where id > ? order by id limit ${pageRows}`, [
        after,
      ])
      if (page.length === 0) return
      yield page
      after = Number(page.at(-1)?.id)
    }
  }

  close(): Promise<void> {
    return this.#connection.end()
  }

  #table(serverId: number, table: string): string {
    return `\`${this.#prefix}-server-${serverId}\`.\`${table}\``
  }

  /** Empty for a table or a database that does not exist. */
  async #rows(text: string, values: readonly number[] = []): Promise<readonly Row[]> {
    try {
      const [rows] = await this.#connection.query(text, [...values])
      return rows as Row[]
    } catch (error) {
      if (missing.has((error as { code?: string }).code ?? '')) return []
      throw error
    }
  }
}
