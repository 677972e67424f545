/**
 * Asynchronous reports: matches a bounce to its email by the return path, or a complaint by the trace header in the original message, and
 * applies it. Owns: reports. Uses: base, mail, dkim, net, bounces, db, tenants, suppressions, events, emails, spool. Used by: usage,
 * housekeeping, main. Promises: a sender that cannot have received the message changes no data; the same report applied twice has one
 * effect; when `take` resolves, the effects are on disk.
 */
import { type Clock, type Ids, type Log, metrics, networkOf, pause } from '#base'
import type { Db } from '#db'
import { type DkimVerdict, type Unjudged, verifySignatures } from '#dkim'
import { findEmail, openReturnPaths } from '#emails'
import type { Resolver } from '#net'
import type { Tenants } from '#tenants'
import { bounce, complain, type Effect, type EffectDeps, note, type ReportEvidence } from './apply-report.ts'
import type { Names, Reading } from './read-returned-mail.ts'
import type { Read } from './report-reader.ts'
import type { ReceivedReport } from './report-summary.ts'

export { findComplained, returnTables } from './processed-reports.ts'
export { openReader, readHere } from './report-reader.ts'
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
  /** Whether an address accepts reports: a return path that Postrider issued, or the feedback loop address. */
  accepts(address: string): Promise<'ours' | 'unknown'>
  /** Throws if the report cannot be decided now: the sender should retry. */
  take(envelope: { recipients: readonly string[]; address: string }, octets: Buffer): Promise<void>
  /** The part of `take` for one recipient; returns the effect. */
  takeReport: (envelopeTo: string, octets: Uint8Array) => Promise<Effect>
}

const maxVerifyMs = 10_000
/** The network of reports without a connection: the simulator's. */
const noClientAddress = ''

/** The address to which mailbox providers send complaints; one for the installation. */
export const feedbackAddress = (hostname: string) => `fbl@rp.${hostname.toLowerCase()}`

export function openReturns(deps: ReturnsDeps): Returns {
  const { clock, db, log } = deps
  const returnPaths = openReturnPaths(deps.secrets)
  const feedback = feedbackAddress(deps.hostname)

  const decide = async (
    envelopeTo: string,
    message: Message,
  ): Promise<{ report: ReceivedReport | null; emailId: string | null; effect: Effect }> => {
    const nowMs = clock.nowMs()
    const named = returnPaths.read(envelopeTo, nowMs)
    const isFeedback = envelopeTo.toLowerCase() === feedback
    if (named === undefined && !isFeedback) return { report: null, emailId: null, effect: 'not ours' }
    const { report, heading, complaint } = await message.reading()
    const facts: EffectDeps = { ...deps, nowMs }
    if (complaint) {
      const complained = named === undefined ? nameIn(complaint.names, nowMs) : ({ emailId: named, matchedBy: 'return path' } as const)
      if (complained !== undefined) {
        const { emailId, matchedBy } = complained
        return { report, emailId, effect: await complain(facts, emailId, { matchedBy, dkim: await message.dkim(complaint.dkim) }) }
      }
      return { report, ...(await recordByMessageId(report.originalMessageId, facts)) }
    }
    if (named === undefined || report.kind !== 'bounce') return { report, emailId: named ?? null, effect: 'nothing follows' }
    return { report, emailId: named, effect: await bounce(facts, named, report, { ...heading, to: envelopeTo }) }
  }

  /**
   * The email whose return path or trace header stands in a complaint. The first naming field outweighs the text, in which a sender may
   * have written other names. If that field names two emails, neither counts, because the complainant must be clear.
   */
  const nameIn = ({ fields, texts }: Names, nowMs: number): { emailId: string; matchedBy: ReportEvidence['matchedBy'] } | undefined => {
    for (const field of fields) {
      const [named] = returnPaths.readAll(field, nowMs)
      if (named !== undefined) return { emailId: named, matchedBy: 'return path' }
      const [traced] = returnPaths.readTraceHeaders(field, nowMs)
      if (traced !== undefined) return { emailId: traced, matchedBy: 'trace header' }
    }
    for (const matchedBy of ['return path', 'trace header'] as const) {
      for (const text of texts) {
        const [emailId, second] =
          matchedBy === 'trace header' ? returnPaths.readTraceHeaders(text, nowMs) : returnPaths.readAll(text, nowMs)
        if (emailId !== undefined) return second === undefined ? { emailId, matchedBy } : undefined
      }
    }
    return undefined
  }

  const findTxt = async (name: string) => {
    const answer = await deps.resolver.txt(name)
    return answer.kind === 'found' ? answer.value : []
  }

  /** Limited in time, because the reporting server waits. */
  const dkimOf = async (signatures: Unjudged): Promise<DkimVerdict> => {
    const done = new AbortController()
    const inTime = pause(clock, maxVerifyMs, done.signal).then((): DkimVerdict => 'fail')
    const verdict = await Promise.race([verifySignatures(signatures, findTxt), inTime])
    done.abort()
    return verdict
  }

  /** Message-IDs are public, so a match causes no suppression. Postrider's begin with the email's id. */
  const recordByMessageId = async (messageId: string | null, facts: EffectDeps): Promise<{ emailId: string | null; effect: Effect }> => {
    const given = messageId?.replace(/^<|>$/g, '') ?? ''
    const [, id] = /^([0-9A-Za-z]{22})@/.exec(given) ?? []
    const email = id === undefined ? undefined : await findEmail(db, id, null)
    if (!email || email.messageId !== `<${given}>`) return { emailId: null, effect: 'no email found' }
    return { emailId: email.id, effect: await note(facts, email) }
  }

  /** Read once and verified once, however many recipients it has. */
  const messageOf = (octets: Buffer, address: string): Message => {
    let reading: Promise<Reading> | undefined
    let verdict: Promise<DkimVerdict> | undefined
    return {
      reading() {
        reading ??= deps.read(octets, { atMs: clock.nowMs(), network: networkOf(address) })
        return reading
      },
      dkim(signatures) {
        verdict ??= dkimOf(signatures)
        return verdict
      },
    }
  }

  const takeFrom = async (envelopeTo: string, message: Message): Promise<Effect> => {
    const { report, emailId, effect } = await decide(envelopeTo, message)
    const kind = report === null || report.unread ? 'unread' : report.kind
    metrics.reports.inc({ kind, effect })
    log.info({ email: emailId, kind, effect, status: report?.status ?? null }, 'report accepted')
    return effect
  }

  return {
    accepts: (address) =>
      Promise.resolve(returnPaths.read(address, clock.nowMs()) !== undefined || address.toLowerCase() === feedback ? 'ours' : 'unknown'),
    async take({ recipients, address: from }, octets) {
      const message = messageOf(octets, from)
      // A return path is valid at any domain: of its spellings one counts.
      const named = new Map(recipients.map((address) => [returnPaths.read(address, clock.nowMs()) ?? address.toLowerCase(), address]))
      for (const address of named.values()) await takeFrom(address, message)
    },
    takeReport: (envelopeTo, { buffer, byteOffset, byteLength }) =>
      takeFrom(envelopeTo, messageOf(Buffer.from(buffer, byteOffset, byteLength), noClientAddress)),
  }
}

interface Message {
  reading(): Promise<Reading>
  dkim(signatures: Unjudged): Promise<DkimVerdict>
}
