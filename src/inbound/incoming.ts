/**
 * The backend of the mail port: what comes back to return paths goes to the room of returns, mail for our postmaster goes on to the
 * operator, and all else is refused while its sender is still there. So there is no relay and no backscatter.
 */
import type { Accept } from '#accept'
import { type Clock, type Log, networkOf, pause } from '#base'
import { openRateLimiter } from '#limits'
import { parseAddress, readFields, readRaw } from '#mail'
import type { Backend, Visit } from './listener.ts'
import { Reply } from './reply.ts'
import { mostReceived } from './submission.ts'

/** Who takes what comes back. */
export interface Returns {
  /** `ours`: `take` wants mail for this address (lower case is not implied); all else is refused. */
  accepts(address: string): Promise<'ours' | 'unknown'>
  /** Once it resolves the message is safe; when it throws the sender is told to come back. May see a message again. */
  take(envelope: ReturnEnvelope, octets: Buffer): Promise<void>
}

export interface ReturnEnvelope {
  /** Empty: the null reverse-path. */
  from: string
  /** Those that are `ours`. */
  recipients: readonly string[]
  /** Of the client. */
  address: string
}

export interface IncomingDeps {
  returns: Returns
  accept: Pick<Accept, 'forward'>
  /** Whether mail for postmaster@ this domain is for our postmaster. */
  isOurName(domain: string): Promise<boolean>
  postmaster: string | undefined
  clock: Clock
  log: Log
}

/** Of one network; what is more waits, and after a while is told to come back. */
const transactionsPerSecond = 200
const waitMs = 100
const mostWaits = 80
/** What the world may make us send. */
const mostForwards = 20
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
    if (++forwards.count > mostForwards) throw new Reply(451, '4.7.1', 'Too much mail for the postmaster, try again in an hour')
    await accept.forward(octets, postmaster)
  }

  return {
    async sender({ address }) {
      for (let waits = 0; !rate(networkOf(address), transactionsPerSecond).allowed; waits++) {
        if (waits === mostWaits) throw new Reply(451, '4.7.1', 'Too many messages a second, try again later')
        await pause(clock, waitMs)
      }
    },

    async recipient(address) {
      if ((await returns.accepts(address)) === 'ours') return
      if (await isForPostmaster(address)) {
        if (postmaster !== undefined) return
        throw new Reply(550, '5.1.1', 'Nobody reads mail for the postmaster here')
      }
      throw new Reply(550, '5.1.1', 'No such address here')
    },

    async message(octets, visit) {
      refuseUnreadable(octets)
      const { back, forPostmaster } = await sorted(visit)
      // A report that comes again changes nothing; what is forwarded would arrive again.
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

/** A header that cannot be read is refused here, for nobody else could tell its sender. */
function refuseUnreadable(octets: Buffer): void {
  const fields = readFields(octets)
  if (!fields || fields.length === 0 || readRaw(octets) === 'header-line-malformed')
    throw new Reply(550, '5.6.0', 'Message has no header that can be read')
  if (fields.filter((field) => field.name.toLowerCase() === 'received').length > mostReceived)
    throw new Reply(554, '5.4.6', 'Message has been going around in circles')
}
