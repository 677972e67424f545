/**
 * What comes back later: a report matched to its email by the return path it was sent to, or a complaint by the mark in the message that it
 * brings along, and what follows from it.
 * Owns: reports. Uses: base, mail, dkim, net, bounces, db, tenants, suppressions, events, emails, spool. Used by: housekeeping, main.
 * Promises: who could not have had our message changes nothing; the same report twice does everything once; when `take` resolves, what
 * follows is on disk.
 */
import { type Clock, type Ids, type Log, metrics, pause } from '#base'
import type { Db } from '#db'
import { type DkimVerdict, verify } from '#dkim'
import { findEmail, openReturnPaths } from '#emails'
import { markField, readMessage } from '#mail'
import type { Resolver } from '#net'
import type { Tenants } from '#tenants'
import { bounce, complain, type Effect, type EffectDeps, note, type Proof } from './effects.ts'
import { type Heading, headingOf, type Report } from './report.ts'

export { returnTables } from './records.ts'
export type { Report } from './report.ts'

export interface ReturnsDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  secrets: Parameters<typeof openReturnPaths>[0]
  tenants: Pick<Tenants, 'find'>
  /** For the keys of those who sign their reports. */
  resolver: Pick<Resolver, 'txt'>
  hostname: string
  readReport(octets: Uint8Array): Report
}

export interface Returns {
  /** Whether mail to this address is for us: a return path that we made, or the address of feedback loops. */
  accepts(address: string): Promise<'ours' | 'unknown'>
  /** Throws when it cannot be decided now: whoever reports should try again. */
  take(envelope: { recipients: readonly string[] }, octets: Uint8Array): Promise<void>
  /** One recipient's part of `take`; tells what came of it. */
  takeReport: (envelopeTo: string, octets: Uint8Array) => Promise<Effect>
}

const longestVerifyMs = 10_000
/** Of the report and of the message that it is about, one line each: what follows is folded nowhere that we know of. */
const namingFields = new RegExp(`^(?:Original-Mail-From|Return-Path|${markField}):[^\\r\\n]*`, 'gim')

/** Where mailbox providers send complaints: one address for the installation. */
export const feedbackAddress = (hostname: string) => `fbl@rp.${hostname.toLowerCase()}`

export function openReturns(deps: ReturnsDeps): Returns {
  const { clock, db, log } = deps
  const returnPaths = openReturnPaths(deps.secrets)
  const feedback = feedbackAddress(deps.hostname)

  const decide = async (
    envelopeTo: string,
    octets: Uint8Array,
    dkim: (heading: Heading) => Promise<DkimVerdict>,
  ): Promise<{ report: Report | null; emailId: string | null; effect: Effect }> => {
    const nowMs = clock.nowMs()
    const named = returnPaths.read(envelopeTo, nowMs)
    const isFeedback = envelopeTo.toLowerCase() === feedback
    if (named === undefined && !isFeedback) return { report: null, emailId: null, effect: 'not ours' }
    const report = deps.readReport(octets)
    const heading = headingOf(octets)
    const facts: EffectDeps = { ...deps, nowMs }
    if (report.kind === 'complaint') {
      const complained = named === undefined ? nameIn(octets, nowMs) : ({ emailId: named, matchedBy: 'return path' } as const)
      if (complained !== undefined) {
        const { emailId, matchedBy } = complained
        return { report, emailId, effect: await complain(facts, emailId, { matchedBy, dkim: await dkim(heading) }) }
      }
      return { report, ...(await noteByMessageId(report.originalMessageId, facts)) }
    }
    if (named === undefined || report.kind !== 'bounce') return { report, emailId: named ?? null, effect: 'nothing follows' }
    return { report, emailId: named, effect: await bounce(facts, named, report, { ...heading, to: envelopeTo }) }
  }

  /**
   * The email whose return path, or else whose mark, stands in a complaint. The first field that says it is believed before the text, in
   * which a sender may have written others; of two there, none: it must be clear who complains.
   */
  const nameIn = (octets: Uint8Array, nowMs: number): { emailId: string; matchedBy: Proof['matchedBy'] } | undefined => {
    const texts = [...textsOf(octets)]
    for (const text of texts) {
      for (const [field] of text.matchAll(namingFields)) {
        const [named] = returnPaths.readAll(field, nowMs)
        if (named !== undefined) return { emailId: named, matchedBy: 'return path' }
        const [marked] = returnPaths.readMarks(field, nowMs)
        if (marked !== undefined) return { emailId: marked, matchedBy: 'mark' }
      }
    }
    for (const matchedBy of ['return path', 'mark'] as const) {
      for (const text of texts) {
        const [emailId, second] = matchedBy === 'mark' ? returnPaths.readMarks(text, nowMs) : returnPaths.readAll(text, nowMs)
        if (emailId !== undefined) return second === undefined ? { emailId, matchedBy } : undefined
      }
    }
    return undefined
  }

  const findTxt = async (name: string) => {
    const answer = await deps.resolver.txt(name)
    return answer.kind === 'found' ? answer.value : []
  }

  /** Whoever reports waits for us meanwhile, so not for ever. */
  const dkimOf = async ({ from }: Heading, octets: Uint8Array): Promise<DkimVerdict> => {
    const done = new AbortController()
    const message = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
    const inTime = pause(clock, longestVerifyMs, done.signal).then((): DkimVerdict => 'fail')
    const verdict = await Promise.race([verify(message, from.slice(from.lastIndexOf('@') + 1), findTxt, clock.nowMs()), inTime])
    done.abort()
    return verdict
  }

  /** Anybody can have seen a Message-ID, so it suppresses nobody. Ours begins with the email's id. */
  const noteByMessageId = async (messageId: string | null, facts: EffectDeps): Promise<{ emailId: string | null; effect: Effect }> => {
    const given = messageId?.replace(/^<|>$/g, '') ?? ''
    const [, id] = /^([0-9A-Za-z]{22})@/.exec(given) ?? []
    const email = id === undefined ? undefined : await findEmail(db, id, null)
    if (!email || email.messageId !== `<${given}>`) return { emailId: null, effect: 'no email found' }
    return { emailId: email.id, effect: await note(facts, email) }
  }

  /** Verified once, however many recipients the report has. */
  const verifierOf = (octets: Uint8Array) => {
    let verdict: Promise<DkimVerdict> | undefined
    return (heading: Heading) => {
      verdict ??= dkimOf(heading, octets)
      return verdict
    }
  }

  const takeReport = async (envelopeTo: string, octets: Uint8Array, dkim = verifierOf(octets)): Promise<Effect> => {
    const { report, emailId, effect } = await decide(envelopeTo, octets, dkim)
    const kind = report?.kind ?? 'unread'
    metrics.reports.inc({ kind, effect })
    log.info({ email: emailId, kind, effect, status: report?.status ?? null }, 'a report was taken')
    return effect
  }

  return {
    accepts: (address) =>
      Promise.resolve(returnPaths.read(address, clock.nowMs()) !== undefined || address.toLowerCase() === feedback ? 'ours' : 'unknown'),
    async take({ recipients }, octets) {
      const dkim = verifierOf(octets)
      // A return path is good at any domain: of its many forms one counts.
      const named = new Map(recipients.map((address) => [returnPaths.read(address, clock.nowMs()) ?? address.toLowerCase(), address]))
      for (const address of named.values()) await takeReport(address, octets, dkim)
    },
    takeReport,
  }
}

/** What a report says, as it stands and then decoded. */
function* textsOf(octets: Uint8Array): Generator<string> {
  const buffer = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
  yield buffer.toString('latin1').replace(/=\r?\n/g, '')
  const { text, html, attachments } = readMessage(buffer)
  yield [text ?? '', html ?? '', ...attachments.map(({ content }) => content.toString('latin1'))].join('\n')
}
