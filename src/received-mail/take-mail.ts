/**
 * Decides on mail for routes, at RCPT and after DATA, and stores it. Mail is accepted only for an address that a route of a verified domain
 * names, so there is no relaying.
 */
import { type Clock, cached, type Ids, type Log, networkOf, TookTooLong } from '#base'
import type { Db } from '#db'
import type { Domain, Domains } from '#domains'
import { findEmail, openReplyNames, type ReplyNames } from '#emails'
import type { ReadWith } from '#returns'
import type { Tenants } from '#tenants'
import { type AuthenticationDeps, authenticate } from './authenticate.ts'
import { type CopyIdentity, copyIdentity } from './copy-identity.ts'
import { forwardedCopy, passedRoutes } from './forward-mail.ts'
import {
  type Amount,
  hourMs,
  isOver,
  leavesRoom,
  maxTargets,
  NetworkUse,
  type ReceivingLimits,
  RecentUse,
  shareOf,
  usualLimits,
} from './limits.ts'
import { matchRoute, routedAddress, starText } from './match-route.ts'
import { type ReceivedParts, unreadParts } from './read-received-mail.ts'
import { listRoutesOfDomain, type MailRoute } from './route-records.ts'
import { extendableStatus, type SealedFacts, sealOf } from './seal-copy.ts'
import { type Forwarding, forwardedSince, type ReceivedRecipient, recordForwarding, storeReceived, usedBy } from './stored-messages.ts'

export interface ReceivingDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  domains: Pick<Domains, 'find' | 'signingKeys'>
  tenants: Pick<Tenants, 'find'>
  /** Of the names in reply addresses. */
  secrets: Parameters<typeof openReplyNames>[0]
  read: ReadWith<ReceivedParts>
  /** For the checks of SPF, DKIM and DMARC. */
  resolver: AuthenticationDeps['resolver']
  hostname: string
  /** Accepts a copy for other addresses as emails of the tenant: one of each received message for each address. */
  forward(octets: Buffer, to: readonly string[], by: ForwardedBy): Promise<unknown>
  /** Stricter limits for tests. */
  limits?: Partial<ReceivingLimits>
}

export interface ForwardedBy {
  tenantId: string
  domain: Domain
  /** Id of the received message. */
  received: string
  identity: CopyIdentity
  /** Called with the copies before they are accepted. */
  record: (copies: readonly Forwarding[]) => Promise<void>
}

/** `tenant`, `forwards`: over the limit of the tenant, or of its forwarded copies. `share`: the rest is for other networks than the client's. */
export type OverLimit = 'tenant' | 'share' | 'forwards'
/**
 * `later`: the domain is no longer verified, or the tenant suspended or archived. `many`: the other recipients of the message are forwarded to
 * as many addresses as it may be.
 */
export type RouteVerdict = 'routed' | 'later' | 'many' | 'unknown' | OverLimit
/** `network`: over the limit of the client's network. `loop`: all its routes have forwarded it before. */
export type Receipt = 'stored' | 'network' | 'loop' | OverLimit

export interface IncomingEnvelope {
  from: string
  recipients: readonly string[]
  /** The client's address, and the name in its EHLO. */
  address: string
  greeting: string
}

export interface Receiving {
  /** `client`: its address. `others`: the recipients of the message so far. */
  accepts(address: string, client: string, others?: readonly string[]): Promise<RouteVerdict>
  /** Once it resolves with `stored` the message is on disk, with an event for each tenant. Throws if the sender should retry. */
  take(envelope: IncomingEnvelope, octets: Buffer): Promise<Receipt>
}

interface Destination {
  route: MailRoute
  domain: Domain
  address: string
  /** The email to which its recipient replies, by the signed name in the address. */
  answered: string | undefined
}

/** A message with the results of its reading and its checks. */
interface ReadMail {
  envelope: IncomingEnvelope
  octets: Buffer
  /** Routes that have forwarded it before. */
  passed: ReadonlySet<string>
  parts: ReceivedParts
  authentication: Awaited<ReturnType<typeof authenticate>> | null
  /** For the ARC set of its copies; undefined: they get none. */
  sealed: SealedFacts | undefined
}

const dayMs = 86_400_000

/** Addresses to which these routes forward a message. */
const targetsOf = (to: readonly Destination[], passed: ReadonlySet<string>): string[] =>
  to.flatMap(({ route }) => (route.forwardTo === null || passed.has(route.id) ? [] : route.forwardTo))

export const openReceiving = (deps: ReceivingDeps): Receiving => new ReceivingService(deps)

class ReceivingService implements Receiving {
  readonly #deps: ReceivingDeps
  readonly #limits: ReceivingLimits
  readonly #names: ReplyNames
  readonly #networks: NetworkUse
  /** Of one client for one tenant in a day. */
  readonly #shares: RecentUse
  /** Of tenants. */
  readonly #forwards: RecentUse
  /** Of one network for one tenant. */
  readonly #networkForwards: NetworkUse
  readonly #routes: ReturnType<typeof cached<MailRoute[]>>
  readonly #used: ReturnType<typeof cached<Amount>>
  readonly #forwarded: ReturnType<typeof cached<number>>

  constructor(deps: ReceivingDeps) {
    const { db, clock, secrets } = deps
    this.#deps = deps
    this.#names = openReplyNames(secrets)
    this.#limits = { ...usualLimits, ...deps.limits }
    this.#networks = new NetworkUse(clock, this.#limits.network)
    this.#shares = new RecentUse(clock, dayMs)
    this.#forwards = new RecentUse(clock)
    this.#networkForwards = new NetworkUse(clock, { messages: this.#limits.networkForwards, octets: Number.POSITIVE_INFINITY })
    // At most one query a second for a domain, however many addresses a stranger tries.
    this.#routes = cached(clock, (domain) => listRoutesOfDomain(db, domain))
    this.#used = cached(clock, (tenantId) => usedBy(db, tenantId, new Date(clock.nowMs() - dayMs)))
    this.#forwarded = cached(clock, (tenantId) => forwardedSince(db, tenantId, new Date(clock.nowMs() - hourMs)))
  }

  async accepts(address: string, client: string, others: readonly string[] = []): Promise<RouteVerdict> {
    const found = await this.#find(address)
    if (!found) return 'unknown'
    if ('later' in found) return 'later'
    const { tenantId, forwardTo } = found.route
    const over = await this.#overLimit(tenantId, client, forwardTo !== null)
    if (over || forwardTo === null || others.length < maxTargets) return over ?? 'routed'
    const before = await Promise.all(others.map((one) => this.#find(one)))
    const targets = new Set(before.flatMap((one) => (one && 'route' in one ? (one.route.forwardTo ?? []) : [])))
    return targets.size < maxTargets || targets.has(forwardTo) ? 'routed' : 'many'
  }

  async take(envelope: IncomingEnvelope, octets: Buffer): Promise<Receipt> {
    const { address } = envelope
    const byTenant = await this.#destinations(envelope.recipients)
    const passed = passedRoutes(octets)
    const all = [...byTenant.values()].flat()
    if (all.every(({ route }) => passed.has(route.id))) return 'loop'
    if (!this.#networks.allows(address)) return 'network'
    const targets = new Map([...byTenant].map(([tenantId, to]) => [tenantId, new Set(targetsOf(to, passed)).size]))
    const copies = [...targets.values()].reduce((sum, one) => sum + one, 0)
    if (copies > maxTargets) throw new Error('routes forward to more addresses than before')
    for (const [tenantId, wanted] of targets) {
      const over = await this.#overLimit(tenantId, address, wanted > 0)
      if (over) return over
      if (wanted > 0 && !this.#networkForwards.allows(address, tenantId)) return 'forwards'
    }
    const places = targets.size + copies
    const countMessages = (messages: 1 | -1) => {
      this.#networks.count(address, { messages, octets: messages * octets.length * places })
      for (const [tenantId, wanted] of targets) {
        this.#shares.count(shareOf(address, tenantId), { messages, octets: messages * octets.length })
        this.#countCopies(address, tenantId, messages * wanted)
      }
    }
    // Before the reading and the checks, which take time: many messages at once must not each find the last place.
    countMessages(1)
    try {
      const mail = await this.#readMail(envelope, octets, passed, copies > 0)
      for (const [tenantId, to] of byTenant) {
        await this.#store(tenantId, to, mail, (newCopies) => {
          this.#countCopies(address, tenantId, newCopies - (targets.get(tenantId) ?? 0))
          targets.set(tenantId, newCopies)
        })
        targets.delete(tenantId)
      }
    } catch (error) {
      countMessages(-1)
      throw error
    }
    return 'stored'
  }

  #countCopies(client: string, tenantId: string, messages: number): void {
    this.#forwards.count(tenantId, { messages, octets: 0 })
    this.#networkForwards.count(client, { messages, octets: 0 }, tenantId)
  }

  async #readMail(envelope: IncomingEnvelope, octets: Buffer, passed: ReadonlySet<string>, isForwarded: boolean): Promise<ReadMail> {
    const parts = await this.#read(octets, networkOf(envelope.address))
    const { from: sender, address: client, greeting } = envelope
    const facts = { client, greeting, sender, from: parts.facts.from, signatures: parts.signatures ?? [] }
    const [authentication, status] = await Promise.all([
      parts.signatures ? authenticate(this.#deps, facts) : null,
      isForwarded ? extendableStatus(this.#deps, parts.arc) : undefined,
    ])
    const sealed = authentication && parts.arc && status && { arc: parts.arc, status, authentication, isBounce: sender === '' }
    return { envelope, octets, passed, parts, authentication, sealed: sealed ?? undefined }
  }

  async #overLimit(tenantId: string, client: string, forwards: boolean): Promise<OverLimit | undefined> {
    const used = await this.#used.get(tenantId)
    if (isOver(used, this.#limits.tenant)) return 'tenant'
    if (!leavesRoom(this.#shares.of(shareOf(client, tenantId)), used, this.#limits.tenant)) return 'share'
    if (!forwards) return undefined
    const copies = Math.max(await this.#forwarded.get(tenantId), this.#forwards.of(tenantId).messages)
    const isUsed = copies >= this.#limits.forwards
    return isUsed ? 'forwards' : undefined
  }

  /** Undefined: no route; `later`: one that cannot receive mail now. */
  async #find(text: string): Promise<Destination | { later: true } | undefined> {
    const { domains, tenants, clock } = this.#deps
    const wanted = routedAddress(text)
    const route = wanted && matchRoute(await this.#routes.get(wanted.domain), wanted.local)
    if (!route) return undefined
    const { tenantId, domain: name, domainId, replies } = route
    const answered = replies ? this.#names.read(starText(route.local, wanted.local), tenantId, clock.nowMs()) : undefined
    if (replies && answered === undefined) return undefined
    const [domain, tenant] = await Promise.all([domains.find(tenantId, name), tenants.find(tenantId)])
    if (domain?.id !== domainId || !domain.verified || tenant?.status !== 'active') return { later: true }
    return { route, domain, address: `${wanted.local}@${wanted.domain}`, answered }
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

  /** A message that takes too long twice is stored unread: once may be a busy machine. Rejects if there is no place to read it now. */
  async #read(octets: Buffer, network: string, isRepeated = false): Promise<ReceivedParts> {
    const { clock, read } = this.#deps
    try {
      return await read(octets, { atMs: clock.nowMs(), network })
    } catch (error) {
      if (!(error instanceof TookTooLong)) throw error
      return isRepeated ? unreadParts() : this.#read(octets, network, true)
    }
  }

  /**
   * Stores the message for one tenant, then forwards it. Repeated by the sender after a failure, it continues where it ended. `noteCopies` gets
   * the number of copies that no earlier attempt has made.
   */
  async #store(tenantId: string, to: readonly Destination[], mail: ReadMail, noteCopies: (copies: number) => void): Promise<void> {
    const { db, clock, ids, log } = this.#deps
    const { envelope, octets, parts, authentication } = mail
    const receivedAt = new Date(clock.nowMs())
    const recipients: ReceivedRecipient[] = to.map((one) => ({ address: one.address, routeId: one.route.id }))
    const answered = to.find((one) => one.answered !== undefined)?.answered
    const stored = await storeReceived(db, {
      tenantId,
      id: ids.emailId(receivedAt.getTime()),
      sender: envelope.from,
      recipients,
      client: envelope.address,
      sizeOctets: octets.length,
      facts: { ...parts.facts, authentication, isReplyProven: answered !== undefined },
      text: parts.text,
      html: parts.html,
      replyToEmail: answered ?? (await this.#repliedTo(tenantId, parts.references)),
      raw: octets,
      receivedAt,
    })
    if (!stored) throw new Error('a route was deleted meanwhile')
    const { id } = stored
    log.info({ tenant: tenantId, received: id, octets: octets.length, recipients: to.length }, 'received for a route')
    const known = new Set(stored.forwarded.map((one) => one.to))
    let copies = new Set(targetsOf(to, mail.passed).filter((target) => !known.has(target))).size
    noteCopies(copies)
    const forwarded = to.filter(({ route }) => route.forwardTo !== null)
    await this.#forward(id, forwarded, mail, (omitted) => {
      copies -= omitted.filter((target) => !known.has(target)).length
      noteCopies(copies)
    })
  }

  /** One copy for all addresses of the routes of a domain. `omit` gets addresses for which no copy can be made. */
  async #forward(id: string, to: readonly Destination[], mail: ReadMail, omit: (targets: readonly string[]) => void): Promise<void> {
    const { db, clock, log, hostname } = this.#deps
    const { envelope, octets, passed, sealed, authentication } = mail
    const { from } = mail.parts.facts
    const open = to.filter(({ route }) => !passed.has(route.id))
    const targets = new Set<string>()
    for (const [domain, some] of Map.groupBy(open, (one) => one.domain)) {
      const wanted = targetsOf(some, passed).filter((target) => !targets.has(target))
      for (const target of wanted) targets.add(target)
      if (wanted.length === 0) continue
      const identity = copyIdentity({ octets, from, authentication, isBounce: envelope.from === '', domain, hostname })
      if (!identity) {
        omit([...new Set(wanted)])
        log.warn({ tenant: domain.tenantId, received: id }, 'not forwarded: From names the organisation of this server without proof')
        continue
      }
      const routes = some.map(({ route }) => route.id)
      const seal = await sealOf(this.#deps, domain, sealed)
      const copy = forwardedCopy(octets, { hostname, client: envelope.address, id, routes, seal, atMs: clock.nowMs() })
      if (!copy) {
        omit([...new Set(wanted)])
        log.warn({ tenant: domain.tenantId, received: id }, 'not forwarded: the header of the copy would be too large')
        continue
      }
      const record = async (copies: readonly Forwarding[]) => {
        for (const one of copies)
          if ((await recordForwarding(db, domain.tenantId, id, one)) === 0) throw new Error('the message was deleted meanwhile')
      }
      await this.#deps.forward(copy, [...new Set(wanted)], { tenantId: domain.tenantId, domain, received: id, identity, record })
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
