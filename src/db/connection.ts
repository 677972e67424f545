/**
 * One database connection: the driver's client with Postrider's types and session settings. Also tracks two facts that the driver does not:
 * whether the connection is lost, and whether a wait for a standby was cancelled behind a successful reply.
 */

import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { Client, type CustomTypesConfig, type QueryResult, types } from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { pause, systemClock } from '#base'
import type { Host } from './database-hosts.ts'
import { type HostFault, HostUnusable, isConnectionFatal, isServerUnavailable, NotDurable } from './errors.ts'
import type { Sql } from './sql-tag.ts'

export interface StatementResult<Row> {
  rows: Row[]
  /** Affected rows; 0 if the command has no count. */
  count: number
  /** The command's tag. A failed transaction answers COMMIT with ROLLBACK. */
  command: string
}

export interface Connection {
  readonly host: Host
  /** The server's timeline when this connection was made; 0 if the server refuses to report it. A promotion raises it. */
  readonly timeline: number
  /** The server process named at the login; a pooler names one that does not exist. */
  readonly loginPid: number
  /** True once the socket is closed or the last error made the session unusable. */
  readonly spoilt: boolean
  readonly socketLost: boolean
  /** Statements and copies without a complete answer so far. */
  readonly pending: number
  /** Octets received from the server so far. */
  readonly octetsRead: number
  ask<Row>(statement: Sql<Row>, parameters: readonly unknown[]): Promise<StatementResult<Row>>
  /** The simple protocol: several statements in one round trip. Returns the result of the last one with rows. */
  script<Row>(text: string): Promise<StatementResult<Row>>
  /** `copy … to stdout`: streams the server's data with backpressure. */
  copyOut(text: string): Readable
  /** `copy … from stdin`: streams data to the server; finishes once the server has received all of it. */
  copyIn(text: string): Writable
  onNotification(notified: (channel: string, payload: string) => void): void
  /** Called when a statement or copy begins while no other is pending. */
  onWork(begun: () => void): void
  /** Called once, when the connection is lost or ended. */
  onEnd(ended: () => void): void
  /** Closes the socket at once. Pending statements fail; a pending commit is unknown. */
  destroy(reason: string): void
  end(): Promise<void>
}

/** Time limit for connecting, including the first statements. */
const connectWithinMs = 3000
const endWithinMs = 5000

function safeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`bigint ${text} exceeds the exact range of a number`)
  return value
}

const texts = types.getTypeParser(1009 as Parameters<typeof types.getTypeParser>[0]) as (text: string) => (string | null)[]
const parsers = new Map<number, (text: string) => unknown>([
  [20, safeInteger], // int8
  [1016, (text) => texts(text).map((item) => (item === null ? null : safeInteger(item)))], // int8[]
  [1082, (text) => text], // date: the driver would parse it as a moment in local time
  [1182, texts], // date[]
  [1114, (text) => text], // timestamp without time zone is not a moment in time
])

const ourTypes: CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    (format === 'binary' ? undefined : parsers.get(oid)) ?? types.getTypeParser(oid, format)) as CustomTypesConfig['getTypeParser'],
}

/**
 * Settings that the parsing relies on, which override the server's defaults, and timeouts. A process that is frozen between two statements of
 * a transaction holds its locks for ten seconds, behind which the others may wait. The server ends the sessions of a vanished machine after a
 * minute.
 */
const settle = `
  select set_config('datestyle', 'ISO', false), set_config('timezone', 'UTC', false), set_config('intervalstyle', 'postgres', false),
    set_config('idle_in_transaction_session_timeout', '10s', false), set_config('tcp_keepalives_idle', '30', false),
    set_config('tcp_keepalives_interval', '10', false), set_config('tcp_keepalives_count', '3', false)`

const askStanding = `
  select pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as "readOnly"`

/** The first eight hexadecimal digits of the current WAL file's name. Some managed servers refuse the query. */
const askTimeline = `
  select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline`

/** The timeline that a standby follows, by its last checkpoint: it may be one behind for a moment. */
const askStandbyTimeline = `
  select timeline_id as timeline
  from pg_control_checkpoint()`

export interface DatabaseConnectOptions {
  applicationName: string
  /** PostgreSQL settings of the session, set after connecting: a pooler does not pass on those of the start-up message. */
  settings?: Readonly<Record<string, string>> | undefined
  withinMs?: number | undefined
}

/** Connects to one host. Rejects with `HostUnusable` if it does not answer in time or is read-only. */
export async function connectDatabase(
  host: Host,
  { applicationName, settings, withinMs = connectWithinMs }: DatabaseConnectOptions,
): Promise<Connection> {
  const client = new Client({
    connectionString: host.url,
    application_name: applicationName,
    connectionTimeoutMillis: withinMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: ourTypes,
  })
  const connection = new ClientConnection(client, host)
  // The driver's time limit ends with the login; a server that is frozen afterwards would never answer the first statements.
  const cancel = systemClock.after(withinMs, () => connection.destroy(`no answer within ${withinMs} ms`))
  let readOnly = false
  try {
    await client.connect()
    const [standing] = (await connection.script<{ readOnly: boolean }>(`${settle}${settingsOf(client, settings)}; ${askStanding}`)).rows
    readOnly = standing?.readOnly !== false
    const text = readOnly ? askStandbyTimeline : askTimeline
    const named = await connection.script<{ timeline: string | number }>(text).catch(() => undefined)
    const timeline = named?.rows[0]?.timeline ?? 0
    connection.timeline = typeof timeline === 'number' ? timeline : Number.parseInt(timeline, 16)
    if (readOnly) throw new Error('it accepts no writes (standby or read-only)')
    return connection
  } catch (cause) {
    if (connection.socketLost) connection.destroy('the connection failed')
    else void connection.end()
    throw new HostUnusable(host.name, readOnly ? 'read-only' : faultOf(cause), connection.timeline, withNextStep(cause))
  } finally {
    cancel()
  }
}

const untrusted = /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT)/

/** With sslmode=require, libpq would accept any certificate; the driver verifies it. */
function withNextStep(cause: unknown): unknown {
  const { code, message } = cause as { code?: unknown; message: string }
  if (!untrusted.test(String(code))) return cause
  return new Error(`${message}: add sslrootcert=/path/to/ca.pem to DATABASE_URL, with the certificate authority of the server`, { cause })
}

const settingsOf = (client: Client, settings: DatabaseConnectOptions['settings'] = {}) =>
  Object.entries(settings)
    .map(([name, value]) => `, set_config(${client.escapeLiteral(name)}, ${client.escapeLiteral(value)}, false)`)
    .join('')

/** The driver's time limit, that of this file, or that of the network. */
const isSilence = (cause: unknown) =>
  /^timeout expired|^no answer within/.test((cause as Error).message) ||
  /^(ETIMEDOUT|EHOST|ENET)/.test(String((cause as { code?: unknown }).code))

/** Its machine refused, a proxy closed the connection, or the server is starting or shutting down. */
const isRefusal = (cause: unknown) =>
  isServerUnavailable(cause) ||
  (cause as Error).message === 'Connection terminated unexpectedly' ||
  /^(ECONNREFUSED|ECONNRESET)$/.test(String((cause as { code?: unknown }).code))

const faultOf = (cause: unknown): HostFault => (isSilence(cause) ? 'silent' : isRefusal(cause) ? 'refused' : 'other')

/** The driver's client behind the interface above. */
class ClientConnection implements Connection {
  readonly host: Host
  timeline = 0
  readonly #client: Client
  #socketLost = false
  #isUnfit = false
  /** The server cancelled the wait for its standby during the current statement. */
  #standbyForsaken = false
  #pending = 0
  #begun = () => {}
  #ending: Promise<void> | undefined
  readonly #endings: (() => void)[] = []

  constructor(client: Client, host: Host) {
    this.#client = client
    this.host = host
    const lose = () => {
      this.#socketLost = true
      for (const ended of this.#endings.splice(0)) ended()
    }
    // Without a listener an 'error' event would end the process. A lost connection emits it twice, then 'end'.
    client.on('error', lose)
    client.on('end', lose)
    client.on('notice', (notice) => {
      // Matched by the function's name, because the warning's text may be translated. Its code is 01000, or 57P01 if the backend is
      // terminated.
      if (notice.routine === 'SyncRepWaitForLSN') this.#standbyForsaken = true
    })
  }

  get loginPid(): number {
    return (this.#client as unknown as { processID: number | null }).processID ?? 0
  }

  get spoilt(): boolean {
    return this.#socketLost || this.#isUnfit
  }

  get socketLost(): boolean {
    return this.#socketLost
  }

  get pending(): number {
    return this.#pending
  }

  get octetsRead(): number {
    return (this.#client.connection.stream as Socket).bytesRead
  }

  ask<Row>(statement: Sql<Row>, parameters: readonly unknown[]): Promise<StatementResult<Row>> {
    return this.#answer(this.#client.query({ name: statement.name, text: statement.text, values: parameters as unknown[] }))
  }

  script<Row>(text: string): Promise<StatementResult<Row>> {
    return this.#answer(this.#client.query(text))
  }

  copyOut(text: string): Readable {
    return this.#counted(this.#client.query(copyTo(text)))
  }

  copyIn(text: string): Writable {
    return this.#counted(this.#client.query(copyFrom(text)))
  }

  onNotification(notified: (channel: string, payload: string) => void): void {
    this.#client.on('notification', ({ channel, payload }) => notified(channel, payload ?? ''))
  }

  onWork(begun: () => void): void {
    this.#begun = begun
  }

  onEnd(ended: () => void): void {
    if (this.#socketLost) ended()
    else this.#endings.push(ended)
  }

  destroy(reason: string): void {
    this.#client.connection.stream.destroy(Object.assign(new Error(reason), { code: 'ETIMEDOUT' }))
  }

  end(): Promise<void> {
    this.#ending ??= endWithin(this.#client)
    return this.#ending
  }

  async #answer<Row>(work: Promise<QueryResult<object> | QueryResult<object>[]>): Promise<StatementResult<Row>> {
    this.#begin()
    try {
      const all = await work
      if (this.#standbyForsaken) throw new NotDurable()
      const results = Array.isArray(all) ? all : [all]
      const last = results.findLast((result) => result.fields.length > 0) ?? results.at(-1)
      return { rows: (last?.rows ?? []) as Row[], count: last?.rowCount ?? 0, command: results.at(-1)?.command ?? '' }
    } catch (error) {
      if (isServerUnavailable(error) || isConnectionFatal(error)) this.#isUnfit = true
      throw error
    } finally {
      this.#pending--
      this.#standbyForsaken = false
    }
  }

  #begin(): void {
    if (this.#pending === 0) this.#begun()
    this.#pending++
  }

  #counted<Stream extends Readable | Writable>(stream: Stream): Stream {
    this.#begin()
    stream.once('close', () => this.#pending--)
    return stream
  }
}

/** Closes the socket if a frozen server does not answer the orderly end in time. */
async function endWithin(client: Client): Promise<void> {
  const finished = new AbortController()
  const goodbye = client.end().then(
    () => finished.abort(),
    () => finished.abort(),
  )
  await pause(systemClock, endWithinMs, finished.signal)
  if (!finished.signal.aborted) client.connection.stream.destroy()
  await goodbye
}
