/**
 * Asynchronous reports: matches a bounce to its email by the return path, or a complaint by the trace header in the original message, and
 * applies it. Owns: reports. Uses: base, mail, dkim, net, bounces, db, tenants, suppressions, events, emails, spool. Used by:
 * domain-reports, received-mail, usage, housekeeping, http, main. Promises: a sender that cannot have received the message changes no data; the same report applied twice has one
 * effect; when `take` resolves, the effects are on disk.
 */
import { type Clock, cached, type Ids, type Log, metrics } from '#base'
import type { Db } from '#db'
import { findEmail, openReturnPaths } from '#emails'
import type { Resolver } from '#net'
import { listFormerReturnPaths, type Tenants } from '#tenants'
import { bounce, complain, type Effect, type EffectDeps, note } from './apply-report.ts'
import { type ComplainedEmail, complainedEmail } from './complained-email.ts'
import { ReceivedMessage, type ReportSender } from './received-message.ts'
import type { Read } from './report-reader.ts'
import type { ReceivedReport } from './report-summary.ts'

export { findComplained, findComplaint, findComplaints, listComplained, returnTables } from './processed-reports.ts'
export { verifyInTime } from './received-message.ts'
export { openReader, openReaderOf, type ReadWith, readHere, type ToRead } from './report-reader.ts'
export type { ReceivedReport } from './report-summary.ts'

export interface ReturnsDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  secrets: Parameters<typeof openReturnPaths>[0]
  tenants: Pick<Tenants, 'find'>
  /** For the DKIM keys of signed reports. */
  resolver: Pick<Resolver, 'txt'>
  hostname: string
  read: Read
}

export interface Returns {
  /**
   * Whether an address accepts reports: a return path that Postrider issued, or the feedback loop address. `former`: a return path of mail
   * that Postal sent before the move.
   */
  accepts(address: string): Promise<'ours' | 'former' | 'unknown'>
  /** Throws if the report cannot be decided now: the sender should retry. */
  take(envelope: { from: string; recipients: readonly string[]; address: string }, octets: Buffer): Promise<void>
  /** The part of `take` for one recipient; returns the effect. */
  takeReport: (envelopeTo: string, octets: Uint8Array) => Promise<Effect>
}

/** Of the simulator's reports, which come without a connection. */
const simulator: ReportSender = { address: '', hasNullSender: true }

/** The address to which mailbox providers send complaints; one for the installation. */
export const feedbackAddress = (hostname: string) => `fbl@rp.${hostname.toLowerCase()}`

export function openReturns(deps: ReturnsDeps): Returns {
  const { db, clock, ids, log, tenants } = deps
  const returnPaths = openReturnPaths(deps.secrets)
  const feedback = feedbackAddress(deps.hostname)
  // At most one query a second, however many unknown addresses come.
  const former = cached(clock, () => listFormerReturnPaths(db))

  const decide = async (envelopeTo: string, message: ReceivedMessage): Promise<Decided> => {
    const nowMs = clock.nowMs()
    const named = returnPaths.read(envelopeTo, nowMs)
    const isFeedback = envelopeTo.toLowerCase() === feedback
    if (named === undefined && !isFeedback) return { report: null, emailId: null, effect: 'not ours' }
    const { report, heading, complaint } = await message.reading()
    const facts: EffectDeps = { db, clock, ids, tenants, nowMs }
    if (complaint) {
      const complained: ComplainedEmail | undefined =
        named === undefined ? complainedEmail(complaint.names, returnPaths, nowMs) : { emailId: named, matchedBy: 'return path' }
      if (complained === undefined) return { report, ...(await recordByMessageId(facts, report.originalMessageId)) }
      const { emailId, matchedBy } = complained
      return { report, emailId, effect: await complain(facts, emailId, { matchedBy, dkim: await message.dkim(complaint.dkim) }) }
    }
    if (named === undefined || report.kind !== 'bounce') return { report, emailId: named ?? null, effect: 'nothing follows' }
    return { report, emailId: named, effect: await bounce(facts, named, report, { ...heading, to: envelopeTo }) }
  }

  const takeFrom = async (envelopeTo: string, message: ReceivedMessage): Promise<Effect> => {
    const { report, emailId, effect } = await decide(envelopeTo, message)
    const kind = report === null || report.unread ? 'unread' : report.kind
    metrics.reports.inc({ kind, effect })
    log.info({ email: emailId, kind, effect, status: report?.status ?? null }, 'report accepted')
    return effect
  }

  return {
    async accepts(address) {
      if (returnPaths.read(address, clock.nowMs()) !== undefined || address.toLowerCase() === feedback) return 'ours'
      return (await former.get('')).has(address.slice(0, Math.max(0, address.lastIndexOf('@'))).toLowerCase()) ? 'former' : 'unknown'
    },
    async take({ from, recipients, address: client }, octets) {
      const message = new ReceivedMessage(deps, octets, { address: client, hasNullSender: from === '' })
      // A return path is valid at any domain: of its spellings one counts.
      const named = new Map(recipients.map((address) => [returnPaths.read(address, clock.nowMs()) ?? address.toLowerCase(), address]))
      for (const address of named.values()) await takeFrom(address, message)
    },
    takeReport: (envelopeTo, { buffer, byteOffset, byteLength }) =>
      takeFrom(envelopeTo, new ReceivedMessage(deps, Buffer.from(buffer, byteOffset, byteLength), simulator)),
  }
}

interface Decided {
  /** null: not read. */
  report: ReceivedReport | null
  emailId: string | null
  effect: Effect
}

/** Message-IDs are public, so a match causes no suppression. Postrider's begin with the email's id. */
async function recordByMessageId(facts: EffectDeps, messageId: string | null): Promise<Omit<Decided, 'report'>> {
  const given = messageId?.replace(/^<|>$/g, '') ?? ''
  const [, id] = /^([0-9A-Za-z]{22})@/.exec(given) ?? []
  const email = id === undefined ? undefined : await findEmail(facts.db, id, null)
  if (!email || email.messageId !== `<${given}>`) return { emailId: null, effect: 'no email found' }
  return { emailId: email.id, effect: await note(facts, email) }
}
