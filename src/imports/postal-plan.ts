/**
 * Translates Postal's main database to the records of this installation, without reading or writing anything else. Records that cannot come
 * become notes with the reason and the next step.
 */
import { type ImportedKey, importedKeyForm } from '#credentials'
import { readRsaKey } from '#dkim'
import type { OwnKey } from '#domains'
import { parseAddress, parseDomain } from '#mail'
import type { Role } from '#members'
import { type WebhookEvent, webhookEvents } from '#webhooks'
import type { PostalTables, Row } from './postal-source.ts'

export interface Note {
  /** The kind of record, in the plural. */
  about: string
  /** The name of the record, with its server. */
  name: string
  text: string
}

export interface PlannedDomain {
  name: string
  /** undefined: Postal has no usable key, so a new one is made. */
  ownKey: OwnKey | undefined
  bits: number | undefined
  /** Postal let its server send from it. */
  verified: boolean
}

export interface PlannedTrackDomain {
  domain: string
  name: string
  trackClicks: boolean
  trackOpens: boolean
  sslEnabled: boolean
  excludedClickDomains: string | null
}

export interface PlannedWebhook {
  name: string
  url: string
  events: WebhookEvent[]
  allEvents: boolean
  enabled: boolean
}

export interface PlannedTenant {
  serverId: number
  /** The server's, by which a later run finds the tenant. */
  uuid: string
  name: string
  organization: string
  permalink: string
  /** The local part of its return paths. */
  token: string
  suspended: boolean
  /** Postal holds all mail of such a server. */
  development: boolean
  /** Emails per hour. */
  sendLimit: number | undefined
  pool: string | undefined
  members: { address: string; role: Role }[]
  domains: PlannedDomain[]
  trackDomains: PlannedTrackDomain[]
  credentials: Omit<ImportedKey, 'tenantId' | 'from'>[]
  webhooks: PlannedWebhook[]
}

export interface PlannedAddress {
  address: string
  pool: string
  ehloName: string | null
}

export interface PostalPlan {
  tenants: PlannedTenant[]
  /** Of the whole organisation: Postal's global administrators. */
  members: { address: string; role: Role }[]
  addresses: PlannedAddress[]
  notes: Note[]
}

export interface PlanOptions {
  /** The first part of Postal's selectors (dns.dkim_identifier). */
  dkimIdentifier: string
}

const maxNameLength = 100
const smallKeyBits = 2048

const text = (row: Row | undefined, column: string): string => {
  const value = row?.[column]
  return typeof value === 'string' ? value : ''
}
const numberOf = (row: Row, column: string): number | undefined => (row[column] == null ? undefined : Number(row[column]))
const isSet = (row: Row | undefined, column: string): boolean => Number(row?.[column] ?? 0) === 1
const dateOf = (row: Row, column: string): Date | null => {
  const value = row[column]
  return value instanceof Date && !Number.isNaN(value.getTime()) ? value : null
}
const storable = (value: string) => value.toWellFormed().replaceAll('\0', '')
const isLive = (row: Row) => row.deleted_at == null

/** Servers and organisations that were deleted in Postal do not come. */
export function planPostal(tables: PostalTables, options: PlanOptions): PostalPlan {
  const notes: Note[] = []
  const organizations = new Map(tables.organizations.filter(isLive).map((one) => [one.id, one]))
  const servers = tables.servers.filter((one) => isLive(one) && organizations.has(one.organization_id))
  const hasSeveral = new Set(servers.map((one) => one.organization_id)).size > 1
  const pools = poolNames(tables)
  const tenants = servers.map((server) => {
    const organization = organizations.get(server.organization_id) as Row
    const name = nameOf(server, organization, hasSeveral)
    const scope = { tables, server, organization, name, notes, options }
    return {
      serverId: Number(server.id),
      uuid: text(server, 'uuid') || `server-${Number(server.id)}`,
      name,
      organization: storable(text(organization, 'permalink')),
      permalink: storable(text(server, 'permalink')),
      token: storable(text(server, 'token')),
      suspended: server.suspended_at != null || organization.suspended_at != null,
      development: text(server, 'mode') === 'Development',
      sendLimit: numberOf(server, 'send_limit'),
      pool: pools.get(server.ip_pool_id ?? organization.ip_pool_id),
      members: membersOf(scope),
      domains: domainsOf(scope),
      trackDomains: trackDomainsOf(scope),
      credentials: credentialsOf(scope),
      webhooks: webhooksOf(scope),
    }
  })
  noteOthers(tables, notes)
  const admins = tables.users.filter((user) => isSet(user, 'admin')).map(addressOf)
  return {
    tenants,
    members: admins.filter((address) => address !== undefined).map((address) => ({ address, role: 'admin' })),
    addresses: addressesOf(tables, pools),
    notes,
  }
}

interface Scope {
  tables: PostalTables
  server: Row
  organization: Row
  /** Of the tenant. */
  name: string
  notes: Note[]
  options: PlanOptions
}

function nameOf(server: Row, organization: Row, withOrganization: boolean): string {
  const name = text(server, 'name') || text(server, 'permalink') || `Server ${Number(server.id)}`
  const whole = withOrganization ? `${text(organization, 'name') || text(organization, 'permalink')} / ${name}` : name
  return [...storable(whole)].slice(0, maxNameLength).join('')
}

const addressOf = (user: Row) => parseAddress(text(user, 'email_address'))?.text.toLowerCase()

/** Everybody in an organisation may change all its servers in Postal; its owner is an owner here. */
function membersOf({ tables, organization, name, notes }: Scope): PlannedTenant['members'] {
  const users = new Map(tables.users.map((one) => [one.id, one]))
  const members = new Map<string, Role>()
  for (const { user_id: id } of tables.organization_users.filter((one) => one.organization_id === organization.id)) {
    const user = users.get(id)
    const address = user && addressOf(user)
    if (address === undefined)
      notes.push({
        about: 'users',
        name: `${text(user, 'email_address') || `user ${Number(id)}`} of ${name}`,
        text: 'has no email address',
      })
    else members.set(address, organization.owner_id === id ? 'owner' : 'admin')
  }
  return [...members].map(([address, role]) => ({ address, role }))
}

/** A domain belongs to one server, or to an organisation, whose servers may all send from it. */
const isDomainOf = (domain: Row, server: Row) =>
  domain.owner_type === 'Organization'
    ? domain.owner_id === server.organization_id
    : domain.owner_type === 'Server'
      ? domain.owner_id === server.id
      : domain.server_id === server.id

/** As A-labels; a text that is no domain is refused later, with its reason. */
const domainName = (domain: Row) => parseDomain(text(domain, 'name')) ?? text(domain, 'name').toLowerCase()

function domainsOf({ tables, server, name: tenant, notes, options }: Scope): PlannedDomain[] {
  const byName = new Map<string, PlannedDomain>()
  for (const domain of tables.domains) {
    if (!isDomainOf(domain, server)) continue
    const name = domainName(domain)
    const pair = readRsaKey(text(domain, 'dkim_private_key'))
    const suffix = text(domain, 'dkim_identifier_string')
    const hasKey = pair !== undefined && suffix !== ''
    const note = (problem: string) => notes.push({ about: 'domains', name: `${name} of ${tenant}`, text: problem })
    if (!hasKey) note('has no usable DKIM key or selector: it gets new ones. Publish the records that postrider domain show prints')
    else if (pair.bits < smallKeyBits)
      note(`has a DKIM key of ${pair.bits} bits. It comes along; later replace it by a key of 2048 bits: postrider dkim rotate ${name}`)
    byName.set(name, {
      name,
      ownKey: hasKey ? { selector: `${options.dkimIdentifier}-${suffix}`, privateKey: pair.privateKey } : undefined,
      bits: pair?.bits,
      verified: domain.verified_at != null,
    })
  }
  return [...byName.values()]
}

function trackDomainsOf({ tables, server }: Scope): PlannedTrackDomain[] {
  const domains = new Map(tables.domains.map((one) => [one.id, one]))
  return tables.track_domains.flatMap((one) => {
    const domain = domains.get(one.domain_id)
    if (one.server_id !== server.id || !domain) return []
    const excluded = text(one, 'excluded_click_domains')
      .split(/\s+/)
      .filter((host) => host !== '')
    return [
      {
        domain: domainName(domain),
        name: text(one, 'name').toLowerCase(),
        trackClicks: isSet(one, 'track_clicks'),
        trackOpens: isSet(one, 'track_loads'),
        sslEnabled: isSet(one, 'ssl_enabled'),
        excludedClickDomains: excluded.length === 0 ? null : excluded.join(','),
      },
    ]
  })
}

function credentialsOf({ tables, server, name: tenant, notes }: Scope): PlannedTenant['credentials'] {
  return tables.credentials.flatMap((one) => {
    if (one.server_id !== server.id) return []
    const name = storable(text(one, 'name')) || 'imported'
    const note = (problem: string) => notes.push({ about: 'credentials', name: `${name} of ${tenant}`, text: problem })
    const type = text(one, 'type')
    const key = text(one, 'key')
    if (type === 'SMTP-IP') note('is a login by address (SMTP-IP), which Postrider does not have: give its programs an SMTP login')
    else if ((type !== 'API' && type !== 'SMTP') || !importedKeyForm.test(key))
      note(`has a key of another form: create a new one with postrider key create`)
    else
      return [
        {
          type: type === 'API' ? ('api' as const) : ('smtp' as const),
          name,
          key,
          hold: isSet(one, 'hold'),
          lastUsedAt: dateOf(one, 'last_used_at'),
          createdAt: dateOf(one, 'created_at') ?? new Date(0),
        },
      ]
    return []
  })
}

const isEvent = (name: string): name is WebhookEvent => webhookEvents.some((one) => one === name)

function webhooksOf({ tables, server, name: tenant, notes }: Scope): PlannedWebhook[] {
  return tables.webhooks.flatMap((one) => {
    if (one.server_id !== server.id) return []
    const name = storable(text(one, 'name')).slice(0, maxNameLength) || 'imported'
    const named = tables.webhook_events.filter((event) => event.webhook_id === one.id).map((event) => text(event, 'event'))
    const allEvents = isSet(one, 'all_events')
    const events = [...new Set(named)].filter(isEvent)
    const note = (problem: string) => notes.push({ about: 'webhooks', name: `${name} of ${tenant}`, text: problem })
    const others = named.filter((event) => !isEvent(event))
    if (!allEvents && others.length > 0)
      note(`is subscribed to ${others.join(', ')}, which Postrider sends only to webhooks for all events`)
    if (!allEvents && events.length === 0) {
      note('has no event that Postrider sends, so it does not come')
      return []
    }
    return [{ name, url: text(one, 'url'), events, allEvents, enabled: isSet(one, 'enabled') }]
  })
}

/** Pools by Postal's id, in the form of Postrider's names. */
function poolNames(tables: PostalTables): Map<unknown, string> {
  return new Map(
    tables.ip_pools.map((pool) => [
      pool.id,
      text(pool, 'name')
        .toLowerCase()
        .replace(/[^a-z0-9-]+/g, '-')
        .replace(/^-+|-+$/g, '')
        .slice(0, 40) || `pool-${Number(pool.id)}`,
    ]),
  )
}

const addressesOf = (tables: PostalTables, pools: ReadonlyMap<unknown, string>): PlannedAddress[] =>
  tables.ip_addresses.flatMap((one) =>
    [text(one, 'ipv4'), text(one, 'ipv6')]
      .filter((address) => address !== '')
      .map((address) => ({ address, pool: pools.get(one.ip_pool_id) ?? 'default', ehloName: text(one, 'hostname') || null })),
  )

function noteOthers(tables: PostalTables, notes: Note[]): void {
  const domains = new Map(tables.domains.map((one) => [one.id, text(one, 'name')]))
  for (const route of tables.routes)
    notes.push({
      about: 'routes',
      name: `${text(route, 'name')}@${domains.get(route.domain_id) ?? '?'}`,
      text: 'is for incoming mail: add a route with POST /v1/routes (docs/receiving-mail.md), and move the MX record to Postrider',
    })
  for (const rule of tables.ip_pool_rules)
    notes.push({
      about: 'IP pool rules',
      name: `rule ${Number(rule.id)}`,
      text: 'chooses a pool by sender or recipient addresses: Postrider assigns pools to tenants and tags (postrider pool assign)',
    })
}
