/**
 * Decides on mail for routes, at RCPT and after DATA, and stores it. Mail is accepted only for an address that a route of a verified domain
 * names, so there is no relaying.
 */
import { type Clock, cached, type Ids, type Log, networkOf, TookTooLong } from '#base'
import type { Db } from '#db'
import type { Domains } from '#domains'
import { findEmail } from '#emails'
import type { ReadWith } from '#returns'
import type { Tenants } from '#tenants'
import { isOver, NetworkUse, type ReceivingLimits, usualLimits } from './limits.ts'
import { matchRoute, routedAddress } from './match-route.ts'
import { type ReceivedParts, unreadParts } from './read-received-mail.ts'
import { listRoutesOfDomain, type Route } from './route-records.ts'
import { type ReceivedRecipient, storeReceived, usedBy } from './stored-messages.ts'

export interface ReceivingDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  domains: Pick<Domains, 'find'>
  tenants: Pick<Tenants, 'find'>
  read: ReadWith<ReceivedParts>
  /** Stricter limits for tests. */
  limits?: Partial<ReceivingLimits>
}

/** `later`: the domain is no longer verified, or the tenant suspended or archived. */
export type RouteVerdict = 'routed' | 'later' | 'unknown'
/** `network`, `tenant`: over the limit of the client's network or of a tenant. */
export type Receipt = 'stored' | 'network' | 'tenant'

export interface Receiving {
  accepts(address: string): Promise<RouteVerdict>
  /** Once it resolves with `stored` the message is on disk, with an event for each tenant. Throws if the sender should retry. */
  take(envelope: { from: string; recipients: readonly string[]; address: string }, octets: Buffer): Promise<Receipt>
}

interface Destination {
  route: Route
  address: string
}

const dayMs = 86_400_000

export const openReceiving = (deps: ReceivingDeps): Receiving => new ReceivingService(deps)

class ReceivingService implements Receiving {
  readonly #deps: ReceivingDeps
  readonly #limits: ReceivingLimits
  readonly #networks: NetworkUse
  readonly #routes
  readonly #used

  constructor(deps: ReceivingDeps) {
    const { db, clock } = deps
    this.#deps = deps
    this.#limits = { ...usualLimits, ...deps.limits }
    this.#networks = new NetworkUse(clock, this.#limits.network)
    // At most one query a second for a domain, however many addresses a stranger tries.
    this.#routes = cached(clock, (domain) => listRoutesOfDomain(db, domain))
    this.#used = cached(clock, (tenantId) => usedBy(db, tenantId, new Date(clock.nowMs() - dayMs)))
  }

  async accepts(address: string): Promise<RouteVerdict> {
    const found = await this.#find(address)
    if (!found) return 'unknown'
    return (await this.#isReady(found.route)) ? 'routed' : 'later'
  }

  async take(
    { from, recipients, address }: { from: string; recipients: readonly string[]; address: string },
    octets: Buffer,
  ): Promise<Receipt> {
    const { clock, log } = this.#deps
    const network = networkOf(address)
    const byTenant = await this.#destinations(recipients)
    if (!this.#networks.allows(network)) return 'network'
    for (const tenantId of byTenant.keys()) if (isOver(await this.#used.get(tenantId), this.#limits.tenant)) return 'tenant'
    const parts = await this.#read(octets, network)
    const receivedAt = new Date(clock.nowMs())
    for (const [tenantId, to] of byTenant) {
      const id = await this.#store(tenantId, to, { from, address, octets, parts, receivedAt })
      log.info({ tenant: tenantId, received: id, octets: octets.length, recipients: to.length }, 'received for a route')
    }
    this.#networks.count(network, octets.length)
    return 'stored'
  }

  async #find(text: string): Promise<Destination | undefined> {
    const wanted = routedAddress(text)
    if (!wanted) return undefined
    const route = matchRoute(await this.#routes.get(wanted.domain), wanted.local)
    return route && { route, address: `${wanted.local}@${wanted.domain}` }
  }

  async #isReady({ tenantId, domain, domainId }: Route): Promise<boolean> {
    const { domains, tenants } = this.#deps
    const [owned, tenant] = await Promise.all([domains.find(tenantId, domain), tenants.find(tenantId)])
    return owned?.id === domainId && owned.verified && tenant?.status === 'active'
  }

  /** Throws if a recipient was accepted and has no route now. */
  async #destinations(recipients: readonly string[]): Promise<Map<string, Destination[]>> {
    const byTenant = new Map<string, Destination[]>()
    for (const recipient of recipients) {
      const found = await this.#find(recipient)
      if (!found || !(await this.#isReady(found.route))) throw new Error('a route no longer accepts mail')
      const known = byTenant.get(found.route.tenantId) ?? []
      if (!known.some(({ address }) => address === found.address)) known.push(found)
      byTenant.set(found.route.tenantId, known)
    }
    return byTenant
  }

  /** A message that takes too long to read would do so again: it is stored unread. Rejects if there is no place to read it now. */
  async #read(octets: Buffer, network: string): Promise<ReceivedParts> {
    const { clock, read } = this.#deps
    try {
      return await read(octets, { atMs: clock.nowMs(), network })
    } catch (error) {
      if (error instanceof TookTooLong) return unreadParts()
      throw error
    }
  }

  async #store(
    tenantId: string,
    to: readonly Destination[],
    { from, address, octets, parts, receivedAt }: { from: string; address: string; octets: Buffer; parts: ReceivedParts; receivedAt: Date },
  ): Promise<string> {
    const { db, ids } = this.#deps
    const id = ids.emailId(receivedAt.getTime())
    const recipients: ReceivedRecipient[] = to.map((one) => ({ address: one.address, routeId: one.route.id }))
    const isStored = await storeReceived(db, {
      tenantId,
      id,
      sender: from,
      recipients,
      client: address,
      sizeOctets: octets.length,
      facts: parts.facts,
      text: parts.text,
      html: parts.html,
      replyToEmail: await this.#repliedTo(tenantId, parts.references),
      raw: octets,
      receivedAt,
    })
    if (!isStored) throw new Error('a route was deleted meanwhile')
    return id
  }

  /** The email of the tenant that the message answers. Its Message-ID begins with its id, and must be the whole one. */
  async #repliedTo(tenantId: string, references: readonly string[]): Promise<string | null> {
    for (const reference of references) {
      const [, id] = /^([0-9A-Za-z]{22})@/.exec(reference) ?? []
      const email = id === undefined ? undefined : await findEmail(this.#deps.db, id, tenantId)
      if (email?.messageId === `<${reference}>`) return email.id
    }
    return null
  }
}
