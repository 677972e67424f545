/**
 * Backend of the inbound mail port. Mail to return paths is processed as bounces and complaints, mail to report addresses as DMARC and TLS
 * reports, mail for routes is stored for their tenants, and mail to postmaster is forwarded to the operator. All other mail is refused
 * during the session. So there is no relaying and no backscatter.
 */
import type { Accept } from '#accept'
import { type Clock, type Log, networkOf, pause } from '#base'
import { openRateLimiter } from '#limits'
import { parseAddress, readFields } from '#mail'
import type { Backend, Visit } from './smtp-listener.ts'
import { ReplyError, tryLater } from './smtp-replies.ts'
import { maxReceivedFields } from './submission.ts'

/** Handles mail to return paths, or to report addresses. */
export interface ReturnHandler {
  /**
   * `ours`: `take` accepts mail for this address, which may contain upper case; otherwise it is refused. `former`: it reports on mail that
   * another program sent.
   */
  accepts(address: string): Promise<'ours' | 'former' | 'unknown'>
  /**
   * Once it resolves the message is stored, or refused for the reason that it returns; if it throws, the client gets a temporary failure.
   * May get a message twice.
   */
  take(envelope: ReturnEnvelope, octets: Buffer): Promise<string | void>
}

export interface ReturnEnvelope {
  /** Empty: the null reverse-path. */
  from: string
  /** Recipients that are `ours`. */
  recipients: readonly string[]
  /** The client's address. */
  address: string
}

/** Handles mail for routes of tenants. */
export interface RouteHandler {
  /**
   * `client`: its address. `later`: the route cannot receive mail now. `others`: the recipients of the message so far; `many`: this one needs
   * a message of its own.
   */
  accepts(address: string, client: string, others?: readonly string[]): Promise<'routed' | 'later' | 'unknown' | RouteRefusal>
  /** Once it resolves with `stored`, the message is stored; otherwise it names the limit that the message exceeds, or a loop. */
  take(envelope: ReturnEnvelope & { greeting: string }, octets: Buffer): Promise<'stored' | 'network' | 'loop' | RouteRefusal>
}

type RouteRefusal = 'tenant' | 'share' | 'forwards' | 'many'

export interface IncomingDeps {
  returns: ReturnHandler
  /** DMARC and TLS reports about sending domains. */
  reports?: ReturnHandler | undefined
  routes?: RouteHandler | undefined
  accept: Pick<Accept, 'forward'>
  /** Whether mail to postmaster@ this domain goes to this installation's operator. */
  isOurName(domain: string): Promise<boolean>
  postmaster: string | undefined
  clock: Clock
  log: Log
}

/** Per network. Further transactions wait, and after a timeout get a temporary failure. */
const transactionsPerSecond = 200
const waitMs = 100
const maxDeferrals = 80
/** Bounds the mail that outside senders can cause. */
const maxForwards = 20
/** Of these, mail from one network. An IPv6 /48 may be that of a large provider: it has four times this limit, which is the limit of all. */
const maxForwardsOfNetwork = 5
const forwardWindowMs = 3_600_000

type Destination = ReturnHandler | RouteHandler | 'former' | 'later' | undefined

/** Long because the steps of a visit share the handlers and their limits. */
export function openIncoming(deps: IncomingDeps): Backend<undefined> {
  const { returns, reports, routes, accept, postmaster, clock, log } = deps
  const rate = openRateLimiter(clock)
  const noForwards = () => ({ count: 0, ofNetworks: new Map<string, number>(), sinceMs: clock.monotonicMs() })
  let forwards = noForwards()

  /** Throws for a route over a limit, so that a message to several tenants waits only for that recipient. */
  const destinationOf = async (address: string, client: string, others: readonly string[] = []): Promise<Destination> => {
    const verdict = await returns.accepts(address)
    if (verdict !== 'unknown') return verdict === 'ours' ? returns : verdict
    if (reports && (await reports.accepts(address)) === 'ours') return reports
    const routed = (await routes?.accepts(address, client, others)) ?? 'unknown'
    if (isRefusal(routed)) refuseUnstored(routed)
    return routed === 'routed' ? routes : routed === 'later' ? routed : undefined
  }

  const isForPostmaster = async (address: string): Promise<boolean> => {
    if (/^postmaster$/i.test(address)) return true
    const parsed = parseAddress(address)
    return parsed !== undefined && /^(?:postmaster|abuse)$/i.test(parsed.local) && (await deps.isOurName(parsed.domain))
  }

  const forward = async (octets: Buffer, client: string) => {
    if (postmaster === undefined) return
    if (clock.monotonicMs() - forwards.sinceMs > forwardWindowMs) forwards = noForwards()
    const network = networkOf(client)
    const ofNetwork = forwards.ofNetworks.get(network) ?? 0
    if (forwards.count >= maxForwards || ofNetwork >= maxForwardsOfNetwork)
      throw new ReplyError(451, '4.7.1', 'Too much mail for the postmaster, try again in an hour')
    forwards.count++
    forwards.ofNetworks.set(network, ofNetwork + 1)
    await accept.forward(octets, postmaster)
  }

  return {
    async sender({ address }) {
      for (let waits = 0; !rate(networkOf(address), transactionsPerSecond).allowed; waits++) {
        if (waits === maxDeferrals) throw new ReplyError(451, '4.7.1', 'Too many messages per second, try again later')
        await pause(clock, waitMs)
      }
    },

    async recipient(address, { address: client, recipients }) {
      const destination = await destinationOf(address, client, recipients)
      // RFC 3463 section 3.2: the destination mailbox has moved.
      if (destination === 'former')
        throw new ReplyError(550, '5.1.6', 'Return path of mail that another program sent before, not read here')
      if (destination === 'later') throw new ReplyError(450, '4.2.1', 'Mailbox disabled for now, try again later')
      if (destination) return
      if (await isForPostmaster(address)) {
        if (postmaster !== undefined) return
        throw new ReplyError(550, '5.1.1', 'No postmaster mailbox here')
      }
      throw new ReplyError(550, '5.1.1', 'No such address here')
    },

    async message(octets, visit) {
      refuseUnreadable(octets)
      const { back, about, routed, forPostmaster } = await sorted(visit)
      const envelope = (recipients: readonly string[]) => ({ from: visit.from, recipients, address: visit.address })
      // Reports and routes first: a message received again has no effect there, but a forwarded one would be sent twice.
      if (back.length > 0) await returns.take(envelope(back), octets)
      if (routes && routed.length > 0) refuseUnstored(await routes.take({ ...envelope(routed), greeting: visit.greeting }, octets))
      if (reports && about.length > 0) {
        const refused = await reports.take(envelope(about), octets)
        // A refusal is for all recipients of the message: those that have taken it must not lose it.
        if (refused && about.length === visit.recipients.length) throw new ReplyError(550, '5.7.1', refused)
        if (refused) log.info({ conversation: visit.id, refused }, 'not a report, for one of several recipients')
      }
      if (forPostmaster) await forward(octets, visit.address)
      const counts = { returned: back.length, reports: about.length, routed: routed.length, forPostmaster }
      log.info({ conversation: visit.id, octets: octets.length, ...counts }, 'received')
      return 'Ok'
    },
  }

  async function sorted({ address, recipients }: Visit<undefined>) {
    const destinations = await Promise.all(recipients.map((one) => destinationOf(one, address)))
    // Accepted at RCPT, but not now: the sender retries, and is then refused at RCPT.
    if (destinations.some((one) => one === 'later' || one === 'former')) throw tryLater()
    const of = (destination: Destination) => recipients.filter((_, index) => destinations[index] === destination)
    const others = of(undefined)
    if (!(await Promise.all(others.map(isForPostmaster))).every(Boolean)) throw tryLater()
    return {
      back: of(returns),
      about: reports ? of(reports) : [],
      routed: routes ? of(routes) : [],
      forPostmaster: others.length > 0,
    }
  }
}

const isRefusal = (verdict: string): verdict is RouteRefusal => /^(?:tenant|share|forwards|many)$/.test(verdict)

/** The sender keeps a message over a limit. */
function refuseUnstored(receipt: Awaited<ReturnType<RouteHandler['take']>>): void {
  if (receipt === 'loop') throw new ReplyError(554, '5.4.6', 'Mail loop detected')
  if (receipt === 'network') throw new ReplyError(451, '4.7.1', 'Too much mail from your network, try again in an hour')
  if (receipt === 'tenant') throw new ReplyError(452, '4.2.2', 'Mailbox is over its limit for a day, try again later')
  if (receipt === 'share') throw new ReplyError(452, '4.2.2', 'Mailbox has most of its mail of a day from your network, try again later')
  if (receipt === 'forwards') throw new ReplyError(452, '4.2.2', 'Mailbox forwards too much mail, try again in an hour')
  if (receipt === 'many') throw new ReplyError(452, '4.5.3', 'Too many forwarded recipients, send another message for this one')
}

/** Refuses an unreadable header during the session; later the sender could no longer be notified. */
function refuseUnreadable(octets: Buffer): void {
  const fields = readFields(octets)
  if (!fields || fields.length === 0 || fields.some((field) => field.value.includes('\0')))
    throw new ReplyError(550, '5.6.0', 'Message has no readable header')
  if (fields.filter((field) => field.name.toLowerCase() === 'received').length > maxReceivedFields)
    throw new ReplyError(554, '5.4.6', 'Mail loop detected')
}
