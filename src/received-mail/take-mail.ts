/**
 * Decides on mail for routes, at RCPT and after DATA, and stores it. Mail is accepted only for an address that a route of a verified domain
 * names, so there is no relaying.
 */
import { type Clock, cached, type Ids, type Log, networkOf, TookTooLong } from '#base'
import type { Db } from '#db'
import type { Domain, Domains } from '#domains'
import { findEmail } from '#emails'
import type { ReadWith } from '#returns'
import type { Tenants } from '#tenants'
import { type AuthenticationDeps, authenticate } from './authenticate.ts'
import { forwardedCopy, isLoop } from './forward-mail.ts'
import { type Amount, isOver, NetworkUse, type ReceivingLimits, usualLimits } from './limits.ts'
import { matchRoute, routedAddress } from './match-route.ts'
import { type ReceivedParts, unreadParts } from './read-received-mail.ts'
import { listRoutesOfDomain, type MailRoute } from './route-records.ts'
import { type ReceivedRecipient, recordForwarding, storeReceived, usedBy } from './stored-messages.ts'

export interface ReceivingDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  domains: Pick<Domains, 'find'>
  tenants: Pick<Tenants, 'find'>
  read: ReadWith<ReceivedParts>
  /** For the checks of SPF, DKIM and DMARC. */
  resolver: AuthenticationDeps['resolver']
  hostname: string
  /** Accepts a copy for another address as an email of the tenant, signed by the domain; returns the email's id. */
  forward(octets: Buffer, to: string, by: { tenantId: string; domain: Domain; isBounce: boolean }): Promise<string>
  /** Stricter limits for tests. */
  limits?: Partial<ReceivingLimits>
}

/** `later`: the domain is no longer verified, or the tenant suspended or archived. */
export type RouteVerdict = 'routed' | 'later' | 'unknown'
/** `network`, `tenant`: over the limit of the client's network or of a tenant. `loop`: a route has forwarded it before. */
export type Receipt = 'stored' | 'network' | 'tenant' | 'loop'

export interface IncomingEnvelope {
  from: string
  recipients: readonly string[]
  /** The client's address, and the name in its EHLO. */
  address: string
  greeting: string
}

export interface Receiving {
  accepts(address: string): Promise<RouteVerdict>
  /** Once it resolves with `stored` the message is on disk, with an event for each tenant. Throws if the sender should retry. */
  take(envelope: IncomingEnvelope, octets: Buffer): Promise<Receipt>
}

interface Destination {
  route: MailRoute
  domain: Domain
  address: string
}

/** A message with the results of its reading and its checks. */
interface ReadMail {
  envelope: IncomingEnvelope
  octets: Buffer
  parts: ReceivedParts
  authentication: Awaited<ReturnType<typeof authenticate>> | null
}

const dayMs = 86_400_000

export const openReceiving = (deps: ReceivingDeps): Receiving => new ReceivingService(deps)

class ReceivingService implements Receiving {
  readonly #deps: ReceivingDeps
  readonly #limits: ReceivingLimits
  readonly #networks: NetworkUse
  readonly #routes: ReturnType<typeof cached<MailRoute[]>>
  readonly #used: ReturnType<typeof cached<Amount>>

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
    return found === undefined ? 'unknown' : 'route' in found ? 'routed' : 'later'
  }

  async take(envelope: IncomingEnvelope, octets: Buffer): Promise<Receipt> {
    const network = networkOf(envelope.address)
    const byTenant = await this.#destinations(envelope.recipients)
    if (isLoop(octets, new Set([...byTenant.values()].flat().map(({ route }) => route.id)))) return 'loop'
    if (!this.#networks.allows(network)) return 'network'
    for (const tenantId of byTenant.keys()) if (isOver(await this.#used.get(tenantId), this.#limits.tenant)) return 'tenant'
    const parts = await this.#read(octets, network)
    const { from: sender, address: client, greeting } = envelope
    const facts = { client, greeting, sender, from: parts.facts.from, signatures: parts.signatures ?? [] }
    const authentication = parts.signatures ? await authenticate(this.#deps, facts) : null
    for (const [tenantId, to] of byTenant) await this.#store(tenantId, to, { envelope, octets, parts, authentication })
    this.#networks.count(network, octets.length)
    return 'stored'
  }

  /** Undefined: no route; `later`: one that cannot receive mail now. */
  async #find(text: string): Promise<Destination | { later: true } | undefined> {
    const { domains, tenants } = this.#deps
    const wanted = routedAddress(text)
    const route = wanted && matchRoute(await this.#routes.get(wanted.domain), wanted.local)
    if (!route) return undefined
    const { tenantId, domain: name, domainId } = route
    const [domain, tenant] = await Promise.all([domains.find(tenantId, name), tenants.find(tenantId)])
    if (domain?.id !== domainId || !domain.verified || tenant?.status !== 'active') return { later: true }
    return { route, domain, address: `${wanted.local}@${wanted.domain}` }
  }

  /** Throws if a recipient was accepted and has no route now. */
  async #destinations(recipients: readonly string[]): Promise<Map<string, Destination[]>> {
    const byTenant = new Map<string, Destination[]>()
    for (const recipient of recipients) {
      const found = await this.#find(recipient)
      if (!found || 'later' in found) throw new Error('a route no longer accepts mail')
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

  /** Stores the message for one tenant, then forwards it. Repeated by the sender after a failure, it continues where it ended. */
  async #store(tenantId: string, to: readonly Destination[], mail: ReadMail): Promise<void> {
    const { db, clock, ids, log } = this.#deps
    const { envelope, octets, parts, authentication } = mail
    const receivedAt = new Date(clock.nowMs())
    const recipients: ReceivedRecipient[] = to.map((one) => ({ address: one.address, routeId: one.route.id }))
    const stored = await storeReceived(db, {
      tenantId,
      id: ids.emailId(receivedAt.getTime()),
      sender: envelope.from,
      recipients,
      client: envelope.address,
      sizeOctets: octets.length,
      facts: { ...parts.facts, authentication },
      text: parts.text,
      html: parts.html,
      replyToEmail: await this.#repliedTo(tenantId, parts.references),
      raw: octets,
      receivedAt,
    })
    if (!stored) throw new Error('a route was deleted meanwhile')
    const { id } = stored
    log.info({ tenant: tenantId, received: id, octets: octets.length, recipients: to.length }, 'received for a route')
    const known = new Set(stored.forwarded.map((one) => one.to))
    for (const { route, domain } of to) {
      const target = route.forwardTo
      if (target === null || known.has(target)) continue
      known.add(target)
      const { hostname } = this.#deps
      const routes = to.filter((one) => one.route.forwardTo === target).map((one) => one.route.id)
      const copy = forwardedCopy(octets, { hostname, client: envelope.address, id, routes, atMs: receivedAt.getTime() })
      const emailId = await this.#deps.forward(copy, target, { tenantId, domain, isBounce: envelope.from === '' })
      await recordForwarding(db, tenantId, id, { to: target, emailId })
    }
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
