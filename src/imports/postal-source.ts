/**
 * Reads Postal's MariaDB: the main database whole, in one snapshot, and each server's suppressions, queue and messages in pages. It only
 * reads.
 */
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
  /** Seconds since a worker of Postal showed that it runs; undefined: no worker has, or it stopped. */
  workerSilence(): Promise<number | undefined>
  countQueued(serverId: number): Promise<number>
  /** Pages of queued messages by id: columns of `messages`, with `queue_id`, `attempts` and `locked_at` of the queue. */
  queued(serverId: number): AsyncIterable<readonly Row[]>
  /** Headers and body of a message; undefined: no longer there. Parts over `maxOctets` are not read. */
  rawParts(serverId: number, message: Row, maxOctets: number): Promise<RawParts | undefined>
  /** Outgoing messages from a time on, and those that are older. */
  countMessages(serverId: number, since: Date): Promise<{ total: number; older: number }>
  /** Pages of outgoing messages after an id and from a time on, by id, with their deliveries in order. */
  messages(serverId: number, after: number, since: Date): AsyncIterable<readonly MessageRows[]>
  close(): Promise<void>
}

export interface RawParts {
  /** null: larger than was allowed. */
  headers: Buffer | null
  body: Buffer | null
}

export interface MessageRows {
  message: Row
  deliveries: readonly Row[]
}

const pageRows = 10_000
const queuePageRows = 500
const messagePageRows = 2000
const rawTable = /^raw-\d{4}-\d{2}-\d{2}$/
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

  async workerSilence(): Promise<number | undefined> {
    const [row] = await this.#rows('select timestampdiff(second, max(acquired_at), utc_timestamp()) as seconds from worker_roles')
    return row?.seconds == null ? undefined : Number(row.seconds)
  }

  async countQueued(serverId: number): Promise<number> {
    const [row] = await this.#rows('select count(*) as total from queued_messages where server_id = ?', [serverId])
    return Number(row?.total ?? 0)
  }

  async *queued(serverId: number): AsyncIterable<readonly Row[]> {
    for (let after = 0; ; ) {
      const page = await this.#rows(
        `select message.*, queue.id as queue_id, queue.attempts, queue.locked_at
         from queued_messages as queue
         left join ${this.#table(serverId, 'messages')} as message on message.id = queue.message_id
         where queue.server_id = ? and queue.id > ?
         order by queue.id
         limit ${queuePageRows}`,
        [serverId, after],
      )
      if (page.length === 0) return
      yield page
      after = Number(page.at(-1)?.queue_id)
    }
  }

  async rawParts(serverId: number, { raw_table: table, raw_headers_id: head, raw_body_id: body }: Row, maxOctets: number) {
    if (typeof table !== 'string' || !rawTable.test(table)) return undefined
    const rows = await this.#rows(
      `select id, if(octet_length(data) > ?, null, data) as data from ${this.#table(serverId, table)} where id in (?, ?)`,
      [maxOctets, Number(head ?? 0), Number(body ?? 0)],
    )
    const part = (id: unknown) => rows.find((row) => Number(row.id) === Number(id))
    const octets = (row: Row) => (Buffer.isBuffer(row.data) ? row.data : null)
    const [headers, content] = [part(head), part(body)]
    return headers && content && { headers: octets(headers), body: octets(content) }
  }

  async countMessages(serverId: number, since: Date): Promise<{ total: number; older: number }> {
    const [row] = await this.#rows(
      `select count(*) as total, sum(timestamp < ?) as older
       from ${this.#table(serverId, 'messages')}
       where scope = 'outgoing'`,
      [since.getTime() / 1000],
    )
    const older = Number(row?.older ?? 0)
    return { total: Number(row?.total ?? 0) - older, older }
  }

  async *messages(serverId: number, after: number, since: Date): AsyncIterable<readonly MessageRows[]> {
    for (let last = after; ; ) {
      const page = await this.#rows(
        `select id, token, rcpt_to, mail_from, subject, message_id, timestamp, status, tag
         from ${this.#table(serverId, 'messages')} force index (primary)
         where id > ? and scope = 'outgoing' and timestamp >= ?
         order by id
         limit ${messagePageRows}`,
        [last, since.getTime() / 1000],
      )
      if (page.length === 0) return
      const ids = page.map((row) => Number(row.id))
      const deliveries = await this.#rows(
        `select * from ${this.#table(serverId, 'deliveries')} where message_id in (?) order by message_id, id`,
        [ids],
      )
      const byMessage = Map.groupBy(deliveries, (row) => Number(row.message_id))
      yield page.map((message) => ({ message, deliveries: byMessage.get(Number(message.id)) ?? [] }))
      last = ids.at(-1) ?? last
    }
  }

  close(): Promise<void> {
    return this.#connection.end()
  }

  #table(serverId: number, table: string): string {
    return `\`${this.#prefix}-server-${serverId}\`.\`${table}\``
  }

  /** Empty for a table or a database that does not exist. */
  async #rows(text: string, values: readonly (number | readonly number[])[] = []): Promise<readonly Row[]> {
    try {
      const [rows] = await this.#connection.query(text, [...values])
      return rows as Row[]
    } catch (error) {
      if (missing.has((error as { code?: string }).code ?? '')) return []
      throw error
    }
  }
}
