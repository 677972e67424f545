/**
 * Backend of the inbound mail port. Mail to return paths is processed as bounces and complaints, and mail to postmaster is forwarded to the
 * operator. All other mail is refused during the session. So there is no relaying and no backscatter.
 */
import type { Accept } from '#accept'
import { type Clock, type Log, networkOf, pause } from '#base'
import { openRateLimiter } from '#limits'
import { parseAddress, readFields, readRaw } from '#mail'
import type { Backend, Visit } from './smtp-listener.ts'
import { ReplyError } from './smtp-replies.ts'
import { maxReceivedFields } from './submission.ts'

/** Handles mail to return paths. */
export interface ReturnHandler {
  /**
   * `ours`: `take` accepts mail for this address, which may contain upper case; otherwise it is refused. `former`: it reports on mail that
   * another program sent.
   */
  accepts(address: string): Promise<'ours' | 'former' | 'unknown'>
  /** Once it resolves the message is stored; if it throws, the client gets a temporary failure. May get a message twice. */
  take(envelope: ReturnEnvelope, octets: Buffer): Promise<void>
}

export interface ReturnEnvelope {
  /** Empty: the null reverse-path. */
  from: string
  /** Recipients that are `ours`. */
  recipients: readonly string[]
  /** The client's address. */
  address: string
}

export interface IncomingDeps {
  returns: ReturnHandler
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
const forwardWindowMs = 3_600_000

export function openIncoming(deps: IncomingDeps): Backend<undefined> {
  const { returns, accept, postmaster, clock, log } = deps
  const rate = openRateLimiter(clock)
  let forwards = { count: 0, sinceMs: clock.monotonicMs() }

  const isForPostmaster = async (address: string): Promise<boolean> => {
    if (/^postmaster$/i.test(address)) return true
    const parsed = parseAddress(address)
    return parsed !== undefined && /^(?:postmaster|abuse)$/i.test(parsed.local) && (await deps.isOurName(parsed.domain))
  }

  const forward = async (octets: Buffer) => {
    if (postmaster === undefined) return
    if (clock.monotonicMs() - forwards.sinceMs > forwardWindowMs) forwards = { count: 0, sinceMs: clock.monotonicMs() }
    if (++forwards.count > maxForwards) throw new ReplyError(451, '4.7.1', 'Too much mail for the postmaster, try again in an hour')
    await accept.forward(octets, postmaster)
  }

  return {
    async sender({ address }) {
      for (let waits = 0; !rate(networkOf(address), transactionsPerSecond).allowed; waits++) {
        if (waits === maxDeferrals) throw new ReplyError(451, '4.7.1', 'Too many messages per second, try again later')
        await pause(clock, waitMs)
      }
    },

    async recipient(address) {
      const verdict = await returns.accepts(address)
      if (verdict === 'ours') return
      // RFC 3463 section 3.2: the destination mailbox has moved.
      if (verdict === 'former') throw new ReplyError(550, '5.1.6', 'Return path of mail that another program sent before, not read here')
      if (await isForPostmaster(address)) {
        if (postmaster !== undefined) return
        throw new ReplyError(550, '5.1.1', 'No postmaster mailbox here')
      }
      throw new ReplyError(550, '5.1.1', 'No such address here')
    },

    async message(octets, visit) {
      refuseUnreadable(octets)
      const { back, forPostmaster } = await sorted(visit)
      // Reports first: a report received again has no effect, but a forwarded message would be sent twice.
      if (back.length > 0) await returns.take({ from: visit.from, recipients: back, address: visit.address }, octets)
      if (forPostmaster) await forward(octets)
      log.info({ conversation: visit.id, octets: octets.length, returned: back.length, forPostmaster }, 'received')
      return 'Ok'
    },
  }

  async function sorted({ recipients }: Visit<undefined>) {
    const verdicts = await Promise.all(recipients.map((one) => returns.accepts(one)))
    const back = recipients.filter((_, index) => verdicts[index] === 'ours')
    return { back, forPostmaster: back.length < recipients.length }
  }
}

/** Refuses an unreadable header during the session; later the sender could no longer be notified. */
function refuseUnreadable(octets: Buffer): void {
  const fields = readFields(octets)
  if (!fields || fields.length === 0 || readRaw(octets) === 'header-line-malformed')
    throw new ReplyError(550, '5.6.0', 'Message has no readable header')
  if (fields.filter((field) => field.name.toLowerCase() === 'received').length > maxReceivedFields)
    throw new ReplyError(554, '5.4.6', 'Mail loop detected')
}
