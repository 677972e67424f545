/**
 * Transports: SMTP relays (smart hosts) that a share of some mail takes instead of the default of the installation. The operator's changes
 * apply in every process within a second.
 */
import { Refusal, type Relay, type Secrets } from '#base'
import { type Db, type Queryable, type SealedValue, sealedColumn, sql, type Tx } from '#db'
import { recordOperatorAction } from '#events'
import { defaultSlot, emptySlots, sharesOf, slotCount, type TransportSlots, withShare } from './transport-shares.ts'

/** The two ways that need no record: direct delivery to MX hosts, and the relay of POSTRIDER_RELAY. */
const builtInTransports = ['mx', 'relay'] as const

/** `implicit`: TLS from the first octet; `required`: STARTTLS with a valid certificate; `opportunistic`: STARTTLS when offered. */
export const transportTlsModes = ['implicit', 'required', 'opportunistic'] as const
export type TransportTls = (typeof transportTlsModes)[number]

export interface TransportSettings {
  host: string
  port: number
  tls: TransportTls
  /** null: no login. */
  auth: Relay['auth'] | null
  /** At most this many connections over all processes. */
  connections: number
  /** Messages per second over all processes; null: no limit. */
  rate: number | null
  /** Mail takes the fallback while this transport is down; false: it waits. */
  failover: boolean
  /** Another transport; null: the default. */
  fallback: string | null
  /** Connections avoid blocked networks: the host was not named on this machine. */
  guarded: boolean
}

export interface Transport extends TransportSettings {
  name: string
  /** Raised by every change. */
  revision: number
  createdAt: Date
}

/** The mail of a rule; '' matches any. */
export interface TransportScope {
  tenantId: string
  /** Sending domain, in lower case. */
  domain: string
  tag: string
}

export interface TransportRule extends TransportScope {
  slots: TransportSlots
}

interface StoredTransport extends Omit<Transport, 'auth'> {
  username: string | null
  password: Buffer | null
}

const transportColumns = sql.part`name, host, port, tls, username, password, connections, rate, failover, fallback, guarded, revision,
  created_at as "createdAt"`

const allTransports = sql<StoredTransport>`
  select ${transportColumns}
  from transports
  order by name`

const transportByName = sql<StoredTransport>`
  select ${transportColumns}
  from transports
  where name = $1`

const putTransport = sql`
  insert into transports (name, host, port, tls, username, password, connections, rate, failover, fallback, guarded, revision, created_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12)
  on conflict (name) do update
  set host = excluded.host, port = excluded.port, tls = excluded.tls, username = excluded.username, password = excluded.password,
    connections = excluded.connections, rate = excluded.rate, failover = excluded.failover, fallback = excluded.fallback, guarded = excluded.guarded,
    revision = transports.revision + 1`

const dropTransport = sql`
  delete from transports
  where name = $1`

const allRules = sql<TransportRule>`
  select tenant_id as "tenantId", domain, tag, slots
  from transport_rules
  order by tenant_id, domain, tag`

const putRule = sql`
  insert into transport_rules (tenant_id, domain, tag, slots)
  values ($1, $2, $3, $4)
  on conflict (tenant_id, domain, tag) do update
  set slots = excluded.slots`

const dropRule = sql`
  delete from transport_rules
  where tenant_id = $1 and domain = $2 and tag = $3`

const dropRulesOf = sql`
  delete from transport_rules
  where tenant_id = $1`

const findSealed = sql<SealedValue>`
  select name as key, name as named, password as sealed
  from transports
  where name > $2 and password is not null and substring(password from 1 for 5) <> $1::bytea
  order by name
  limit $3`

const saveSealed = sql`
  update transports
  set password = $2
  where name = $1 and password = $3`

const sealName = (name: string) => `transport ${name}`

export const sealedOfTransports = [sealedColumn('transports.password', sealName, { find: findSealed, save: saveSealed })]

/** Removes the rules of a deleted tenant. */
export const removeRulesOfTenant = (tx: Tx, tenantId: string): Promise<number> => tx.run(dropRulesOf, [tenantId])

/** Serialises the commands: each reads before it writes. */
const oneAtATime = (tx: Tx) => tx.script('lock table transports, transport_rules in share row exclusive mode')

/** A message that begins with a field names it for callers of the API too. */
function refused(message: string, suggestion: string): Refusal {
  const [, field] = /^(\w+): /.exec(message) ?? []
  return new Refusal('validation_error', { message, suggestion, ...(field === undefined ? {} : { field }) })
}
const missing = (name: string) =>
  new Refusal('not_found', { message: `no such transport: ${name}`, suggestion: 'Run postrider transport list' })

const opened = ({ username, password, ...transport }: StoredTransport, secrets: Secrets): Transport => ({
  ...transport,
  auth:
    username === null || password === null
      ? null
      : { user: username, password: secrets.open(sealName(transport.name), password).toString() },
})

export interface TransportDeps {
  db: Db
  secrets: Secrets
}

export const listTransports = async (on: Queryable, secrets: Secrets): Promise<Transport[]> =>
  (await on.rows(allTransports)).map((one) => opened(one, secrets))

export const listRules = (on: Queryable): Promise<TransportRule[]> => on.rows(allRules)

const nameForm = /^[a-z0-9][a-z0-9_-]{0,62}$/

/** Another text is the name of no transport, and may be one that PostgreSQL cannot store. */
const findByName = async (on: Queryable, name: string) => (nameForm.test(name) ? on.first(transportByName, [name]) : undefined)

/** Refuses `not_found`. */
export async function getTransport(on: Queryable, secrets: Secrets, name: string): Promise<Transport> {
  const found = await findByName(on, name)
  if (!found) throw missing(name)
  return opened(found, secrets)
}

const maxConnections = 1000
/** It is in the primary key of the rules, whose entries have at most 2,704 octets. */
const maxTagOctets = 2000
/** Every process that claims mail keeps all of them in memory, and reads them once in 900 ms. */
const maxTransports = 200
const maxRules = 2000

function checkSettings(name: string, { host, port, connections, rate }: TransportSettings): void {
  if (!nameForm.test(name)) throw refused(`name: "${name}" is not a transport name`, 'Use lower-case letters, digits, - and _')
  if ((builtInTransports as readonly string[]).includes(name))
    throw refused(`name: ${name} is the name of a built-in transport`, 'Choose another name')
  if (host === '' || host.length > 253) throw refused('host: is empty or too long', 'Use smtp://host:port')
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw refused(`port: is not a port: ${port}`, 'Use 1 to 65535')
  if (!Number.isInteger(connections) || connections < 1 || connections > maxConnections)
    throw refused(`connections: is not between 1 and ${maxConnections}: ${connections}`, 'Give the number that the provider allows')
  if (rate !== null && !(rate > 0 && rate <= 100_000))
    throw refused(`rate: is not a number of messages per second: ${rate}`, 'Use 0.1 to 100000')
}

/** A fallback that exists, and no circle: the mail of a chain must come to its end. */
function checkFallback(name: string, { fallback }: TransportSettings, known: readonly Pick<Transport, 'name' | 'fallback'>[]): void {
  const seen = new Set([name])
  for (let next = fallback; next !== null; next = known.find((one) => one.name === next)?.fallback ?? null) {
    if (!known.some((one) => one.name === next) && next !== name)
      throw refused(`fallback: no such transport: ${next}`, 'Add it first, or leave fallback out for the default')
    if (seen.has(next)) throw refused(`fallback: ${next} leads back to ${name}`, 'End the chain at another transport or at the default')
    seen.add(next)
  }
}

/**
 * Adds a transport, or changes one: `change` gets the settings in force, or undefined for a new one. Refuses `validation_error`,
 * and rejects with the errors of `change`.
 */
export function saveTransport(
  { db, secrets }: TransportDeps,
  name: string,
  change: (now: Transport | undefined) => TransportSettings,
  nowMs: number,
): Promise<Transport> {
  return db.transaction(async (tx) => {
    await oneAtATime(tx)
    const found = await findByName(tx, name)
    const wanted = change(found && opened(found, secrets))
    checkSettings(name, wanted)
    const all = await tx.rows(allTransports)
    if (!found && all.length >= maxTransports) throw refused(`there are ${maxTransports} transports already`, 'Remove one first')
    const { host, port, tls, auth, connections, rate, failover, fallback, guarded } = wanted
    checkFallback(name, wanted, all)
    const password = auth ? secrets.seal(sealName(name), Buffer.from(auth.password)) : null
    const user = auth?.user ?? null
    const limits = [connections, rate, failover, fallback, guarded]
    await tx.run(putTransport, [name, host, port, tls, user, password, ...limits, new Date(nowMs)])
    await recordOperatorAction(tx, nowMs, {
      action: found ? 'transport set' : 'transport add',
      name,
      host,
      port,
      tls,
      connections,
      rate,
      failover,
      fallback,
    })
    return getTransport(tx, secrets, name)
  })
}

/** Refuses `not_found`, and a transport that still has a share. */
export function removeTransport(db: Db, name: string, nowMs: number): Promise<void> {
  return db.transaction(async (tx) => {
    await oneAtATime(tx)
    if ((await listRules(tx)).some(({ slots }) => slots.includes(name)))
      throw refused(`${name} still has a share of some mail`, `Run postrider transport share ${name} 0 first`)
    const user = (await tx.rows(allTransports)).find((one) => one.fallback === name)
    if (user) throw refused(`${name} is the fallback of ${user.name}`, `Give ${user.name} another fallback first`)
    if (!(await findByName(tx, name))) throw missing(name)
    await tx.run(dropTransport, [name])
    await recordOperatorAction(tx, nowMs, { action: 'transport remove', name })
  })
}

/**
 * Sets the share of a transport, 0 to 100 percent of the mail of a scope; the default has the rest. `hasRelay`: the installation has
 * POSTRIDER_RELAY. Refuses `not_found` and `validation_error`.
 */
export function shareTransport(
  db: Db,
  { transport, percent, ...scope }: TransportScope & { transport: string; percent: number },
  hasRelay: boolean,
  nowMs: number,
): Promise<TransportRule> {
  if (!Number.isInteger(percent) || percent < 0 || percent > slotCount)
    throw refused(`percent: is not between 0 and 100: ${percent}`, 'Use a whole number')
  if (Buffer.byteLength(scope.tag) > maxTagOctets) throw refused(`tag: is longer than ${maxTagOctets} octets`, 'Use a shorter tag')
  return db.transaction(async (tx) => {
    await oneAtATime(tx)
    const isBuiltIn = transport === 'mx' || (transport === 'relay' && hasRelay)
    if (!isBuiltIn && !(await findByName(tx, transport))) throw missing(transport)
    const isForAllMail = scope.tenantId === '' && scope.domain === '' && scope.tag === ''
    if (isForAllMail && transport === (hasRelay ? 'relay' : 'mx') && percent > 0)
      throw refused(
        `transport: ${transport} is the default, which carries all mail without another share`,
        'Change the shares of the others',
      )
    const rules = await listRules(tx)
    const known = rules.find((one) => isSameScope(one, scope))
    if (!known && rules.length >= maxRules) throw refused(`there are ${maxRules} rules already`, 'Set the shares of another rule to 0')
    const slots = withShare(known?.slots ?? emptySlots, transport, percent)
    if (!slots)
      throw refused(
        `percent: the other transports of this mail have ${slotCount - free(known?.slots ?? emptySlots, transport)} percent`,
        `Lower the share of ${othersIn(known?.slots ?? emptySlots, transport).join(' or ')} first`,
      )
    const { tenantId, domain, tag } = scope
    if (slots.every((one) => one === defaultSlot)) await tx.run(dropRule, [tenantId, domain, tag])
    else await tx.run(putRule, [tenantId, domain, tag, slots])
    await recordOperatorAction(tx, nowMs, { action: 'transport share', transport, percent, ...scope })
    return { ...scope, slots }
  })
}

const othersIn = (slots: TransportSlots, transport: string) => [...new Set(slots)].filter((one) => one !== defaultSlot && one !== transport)
const free = (slots: TransportSlots, transport: string) => slots.filter((one) => one === defaultSlot || one === transport).length

const isSameScope = (one: TransportScope, other: TransportScope) =>
  one.tenantId === other.tenantId && one.domain === other.domain && one.tag === other.tag

/** For commands and pages: a rule with its shares. */
export const shownRule = ({ slots, ...scope }: TransportRule) => ({ ...scope, shares: sharesOf(slots) })
