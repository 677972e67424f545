/**
 * Transports and their shares (an extension of the contract): SMTP relays of the whole installation, for keys of the organisation with full
 * access and for owners. A response never has a password.
 */
import Type, { type Static } from 'typebox'
import { Refusal, rejectUnstorableText } from '#base'
import {
  getTransport,
  listRules,
  listTransportStates,
  listTransports,
  removeTransport,
  saveTransport,
  shareTransport,
  shownRule,
  type Transport,
  type TransportRule,
  type TransportSettings,
  type TransportState,
  testTransport,
  transportTlsModes,
} from '#delivery'
import { findAddresses, openGuard } from '#net'
import { nullable, optional, tenantFields, tenantNamedIn } from './common-schemas.ts'
import { type ApiDeps, route } from './define-endpoint.ts'

const manages = { permission: 'full access', scope: 'organisation', families: 'organisation', sessions: 'owners' } as const
const testWithinMs = 25_000
const usualConnections = 20

const Tls = Type.Unsafe<TransportSettings['tls']>({ type: 'string', enum: [...transportTlsModes] })
const Name = Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,62}$', description: 'Lower-case letters, digits, - and _' })
const Username = Type.String({ minLength: 1, maxLength: 255 })
const instant = Type.String({ format: 'date-time' })

const Down = Type.Object({
  tenantId: nullable(Type.String({ description: 'null: the mail of all tenants' })),
  reason: Type.Unsafe<TransportState['reason']>({
    type: 'string',
    enum: ['failed', 'refused'],
    description: 'failed: no connection, TLS or login; refused: it refused message after message',
  }),
  since: instant,
  until: Type.String({ format: 'date-time', description: 'The next email tries it again after this time' }),
})

const TransportObject = Type.Object({
  name: Type.String(),
  host: Type.String(),
  port: Type.Integer(),
  tls: Tls,
  username: nullable(Type.String({ description: 'null: no login' })),
  connections: Type.Integer({ description: 'Most connections at once, over all processes' }),
  rate: nullable(Type.Number({ description: 'Most messages per second, over all processes; null: unlimited' })),
  failover: Type.Boolean({ description: 'false: its mail waits while it is down' }),
  fallback: nullable(Type.String({ description: 'The transport of its mail while it is down; null: the default' })),
  state: Type.Unsafe<'up' | 'down'>({ type: 'string', enum: ['up', 'down'], description: 'down: at least one process avoids it' }),
  down: Type.Array(Down, { description: 'Empty while it is up' }),
  createdAt: instant,
})

const Rule = Type.Object({
  tenantId: nullable(Type.String({ description: 'null: mail of any tenant' })),
  domain: nullable(Type.String({ description: 'Sending domain; null: any' })),
  tag: nullable(Type.String({ description: 'null: any tag or none' })),
  shares: Type.Array(Type.Object({ transport: Type.String(), percent: Type.Integer() }), { description: 'The default has the rest' }),
})

const settings = {
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: 'Default 465 with implicit TLS, otherwise 587' })),
  tls: Type.Optional(Tls),
  password: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
  connections: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  rate: optional(Type.Number({ minimum: 0.001, maximum: 100_000 })),
  failover: Type.Optional(Type.Boolean()),
  fallback: optional(Name),
  username: optional(Username),
}
const Host = Type.String({ pattern: '^[A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?$', description: 'Host name or IP address' })
const NewTransport = Type.Object({ name: Name, host: Host, ...settings })
const Changes = Type.Object({ host: Type.Optional(Host), ...settings })

export const createTransport = route({
  method: 'POST',
  path: '/transports',
  name: 'transports.create',
  summary: 'Add an SMTP relay for a share of the mail',
  ...manages,
  body: NewTransport,
  status: 201,
  data: TransportObject,
  refuses: ['transport_already_exists'],
  handle: async ({ body }, deps) => {
    const { name, ...wanted } = body
    await refuseBlockedHost(wanted.host, deps)
    const made = await saveTransport(
      deps,
      name,
      (now) => {
        if (now) throw new Refusal('transport_already_exists', { field: 'name' })
        return settingsOf(wanted, undefined)
      },
      deps.clock.nowMs(),
    )
    return transportToWire(made, [])
  },
})

export const listTransportsRoute = route({
  method: 'GET',
  path: '/transports',
  name: 'transports.list',
  summary: 'List the transports, their state, and the shares of each rule',
  ...manages,
  data: Type.Object({
    default: Type.Unsafe<'mx' | 'relay'>({ type: 'string', enum: ['mx', 'relay'], description: 'The transport of all other mail' }),
    transports: Type.Array(TransportObject),
    rules: Type.Array(Rule),
  }),
  refuses: [],
  handle: async (_call, { db, secrets, clock, config }) => {
    const states = await listTransportStates(db, clock.nowMs())
    return {
      default: config.relay ? ('relay' as const) : ('mx' as const),
      transports: (await listTransports(db, secrets)).map((one) => transportToWire(one, states)),
      rules: (await listRules(db)).map(ruleToWire),
    }
  },
})

export const retrieveTransport = route({
  method: 'GET',
  path: '/transports/{transportName}',
  name: 'transports.retrieve',
  summary: 'Get a transport',
  ...manages,
  data: TransportObject,
  refuses: ['not_found'],
  handle: async ({ params }, { db, secrets, clock }) =>
    transportToWire(await getTransport(db, secrets, params.transportName), await listTransportStates(db, clock.nowMs())),
})

export const updateTransport = route({
  method: 'PATCH',
  path: '/transports/{transportName}',
  name: 'transports.update',
  summary: 'Change the settings of a transport',
  ...manages,
  body: Changes,
  data: TransportObject,
  refuses: ['not_found'],
  handle: async ({ params, body }, deps) => {
    const { db, secrets, clock } = deps
    const name = params.transportName
    await getTransport(db, secrets, name)
    if (body.host !== undefined) await refuseBlockedHost(body.host, deps)
    const changed = await saveTransport(
      deps,
      name,
      (now) => {
        if (!now) throw new Refusal('not_found', { message: `no such transport: ${name}` })
        return settingsOf(body, now)
      },
      clock.nowMs(),
    )
    return transportToWire(changed, await listTransportStates(db, clock.nowMs()))
  },
})

export const deleteTransport = route({
  method: 'DELETE',
  path: '/transports/{transportName}',
  name: 'transports.delete',
  summary: 'Remove a transport that has no share',
  ...manages,
  data: Type.Object({ message: Type.String() }),
  refuses: ['not_found'],
  handle: async ({ params }, { db, clock }) => {
    await removeTransport(db, params.transportName, clock.nowMs())
    return { message: 'The transport has been removed' }
  },
})

export const shareTransportRoute = route({
  method: 'POST',
  path: '/transports/{transportName}/share',
  name: 'transports.share',
  summary: 'Set the share of a transport in percent, of all mail or of a part; the default has the rest',
  ...manages,
  body: Type.Object({
    percent: Type.Integer({ minimum: 0, maximum: 100 }),
    domain: optional(Type.String({ maxLength: 253, description: 'Only mail from this sending domain' })),
    tag: optional(Type.String({ maxLength: 1000, description: 'Only mail with this tag' })),
    ...tenantFields,
    tenantId: optional(Type.String({ description: 'Only mail of this tenant' })),
  }),
  data: Rule,
  refuses: ['not_found', 'tenant_mismatch'],
  handle: async (call, { db, clock, config, tenants }) => {
    const { percent, domain, tag } = call.body
    const tenantId = (await tenantNamedIn(call, tenants)) ?? ''
    const scope = { tenantId, domain: (domain ?? '').toLowerCase(), tag: tag ?? '' }
    for (const [field, text] of Object.entries(scope)) rejectUnstorableText(field, text)
    const wanted = { ...scope, transport: call.params.transportName, percent }
    return ruleToWire(await shareTransport(db, wanted, config.relay !== undefined, clock.nowMs()))
  },
})

export const testTransportRoute = route({
  method: 'POST',
  path: '/transports/{transportName}/test',
  name: 'transports.test',
  summary: 'Connect to a transport and log in, without sending mail',
  ...manages,
  data: Type.Object({
    works: Type.Boolean(),
    address: nullable(Type.String({ description: 'The address that was connected to' })),
    secure: Type.Boolean(),
    message: Type.String({ description: 'The reason of a failure; empty: it works' }),
    conversation: Type.String({ description: 'The conversation of a failure, without the password' }),
  }),
  refuses: ['not_found'],
  handle: async ({ params }, { db, secrets, clock, resolver, config }) => {
    const transport = await getTransport(db, secrets, params.transportName)
    const guard = openGuard(config.allowedNetworks)
    return testTransport(transport, { clock, resolver, hostname: config.hostname, guard, withinMs: testWithinMs })
  },
})

/** A caller of the API names hosts of the internet, and of the networks that the operator has opened. Delivery checks again. */
async function refuseBlockedHost(host: string, { resolver, config }: Pick<ApiDeps, 'resolver' | 'config'>): Promise<void> {
  const found = await findAddresses(host, resolver, openGuard(config.allowedNetworks))
  if (found.kind !== 'refused') return
  throw new Refusal('validation_error', {
    field: 'host',
    message: `host: resolves to a blocked address range: ${host}`,
    suggestion: 'Use a public host, ask the operator to set POSTRIDER_ALLOWED_NETWORKS, or run postrider transport add on the machine',
  })
}

/** The settings that the body names; the others stay, or get their defaults. */
function settingsOf(body: Omit<Static<typeof Changes>, 'host'> & { host?: string }, now: Transport | undefined): TransportSettings {
  const isElsewhere = isChanged(body.host, now?.host) || isChanged(body.port, now?.port) || isChanged(body.tls, now?.tls)
  const auth = loginOf(body, now, isElsewhere)
  const tls = body.tls ?? now?.tls ?? (auth ? 'required' : 'opportunistic')
  return {
    host: body.host ?? now?.host ?? '',
    port: body.port ?? now?.port ?? (tls === 'implicit' ? 465 : 587),
    tls,
    auth,
    connections: body.connections ?? now?.connections ?? usualConnections,
    rate: body.rate === undefined ? (now?.rate ?? null) : body.rate,
    failover: body.failover ?? now?.failover ?? true,
    fallback: body.fallback === undefined ? (now?.fallback ?? null) : body.fallback,
    guarded: now === undefined || isChanged(body.host, now.host) || isChanged(body.port, now.port) || now.guarded,
  }
}

const isChanged = <Value>(given: Value | undefined, now: Value | undefined) => given !== undefined && given !== now

/** The stored password goes only where it went before: another host, port or TLS mode needs it again. */
function loginOf(
  { username, password }: Pick<Static<typeof Changes>, 'username' | 'password'>,
  now: Transport | undefined,
  isElsewhere: boolean,
): TransportSettings['auth'] {
  const user = username === undefined ? now?.auth?.user : username
  if (user === undefined || user === null) {
    if (password !== undefined) throw refusedField('username', 'is missing beside the password', 'Give both, or neither')
    return null
  }
  rejectUnstorableText('username', user)
  const isSameLogin = user === now?.auth?.user && !isElsewhere
  if (password !== undefined) rejectUnstorableText('password', password)
  const secret = password ?? (isSameLogin ? now?.auth?.password : undefined)
  if (secret === undefined)
    throw refusedField('password', 'is needed with a new user name, host, port or TLS mode', 'Give the password of the login')
  return { user, password: secret }
}

const refusedField = (field: string, problem: string, suggestion: string) =>
  new Refusal('validation_error', { field, message: `${field}: ${problem}`, suggestion })

function transportToWire(transport: Transport, states: readonly TransportState[]): Static<typeof TransportObject> {
  const { name, host, port, tls, auth, connections, rate, failover, fallback, createdAt } = transport
  const down = states.filter((one) => one.transport === name)
  return {
    name,
    host,
    port,
    tls,
    username: auth?.user ?? null,
    connections,
    rate,
    failover,
    fallback,
    state: down.length === 0 ? 'up' : 'down',
    down: down.map(({ tenantId, reason, since, until }) => ({
      tenantId: tenantId || null,
      reason,
      since: since.toISOString(),
      until: until.toISOString(),
    })),
    createdAt: createdAt.toISOString(),
  }
}

function ruleToWire(rule: TransportRule): Static<typeof Rule> {
  const { tenantId, domain, tag, shares } = shownRule(rule)
  return { tenantId: tenantId || null, domain: domain || null, tag: tag || null, shares }
}
