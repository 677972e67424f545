/**
 * Reports that receivers send about sending domains: DMARC aggregate reports and TLS reports. Receives them by mail at a signed address for
 * each domain, and counts them by day and source. Owns: domain_reports, dmarc_days, tls_days, tls_failures. Uses: base, mail, dkim, net, db,
 * domains, returns. Used by: reputation, housekeeping, doctor, http, main. Promises: a report counts once, when `take` resolves its figures
 * are on disk; one about the installation's own name is only logged, and one about another domain changes nothing; a hostile report costs a
 * bounded time and memory, on a thread of its own.
 */
import { type Clock, cached, type Log, metrics, networkOf, type Secrets } from '#base'
import type { Db } from '#db'
import { findDomainByUuid, returnPathDomainOf } from '#domains'
import type { Resolver } from '#net'
import { openReaderOf, type ReadWith, verifyInTime } from '#returns'
import { noteOwnReport } from './own-reports.ts'
import { type ReportMail, readReportMail } from './read-report-mail.ts'
import { openReportAddresses, platformUuid } from './report-addresses.ts'
import { type ReportEffect, takeAggregate, takeTls } from './take-report.ts'

export { compareDmarcDays, type DmarcShare, sumDmarc, sumDmarcBy } from './dmarc-shares.ts'
export { type DmarcSummary, type SourceKind, summariseDmarc } from './dmarc-summary.ts'
export { openReportAddresses, platformUuid } from './report-addresses.ts'
export { type ReportRecords, reportRecords } from './report-records.ts'
export { deleteOldReports } from './stored-reports.ts'
export { summariseTls } from './tls-summary.ts'

/** Reads with a thread. */
export const openReportMailReader = (deps: { clock: Clock; log: Log }) =>
  openReaderOf<ReportMail>(new URL('./report-mail-thread.ts', import.meta.url), deps)

/** Reads on this thread, for tests. */
export const readReportMailHere: ReadWith<ReportMail> = async (octets, { atMs }) => readReportMail(octets, atMs)

export interface DomainReportsDeps {
  db: Db
  clock: Clock
  log: Log
  secrets: Pick<Secrets, 'mac' | 'macs'>
  /** For the DKIM keys of signed reports. */
  resolver: Pick<Resolver, 'txt'>
  hostname: string
  read: ReadWith<ReportMail>
}

export interface DomainReports {
  /** Whether an address is that of a sending domain that exists, or of the installation. */
  accepts(address: string): Promise<'ours' | 'unknown'>
  /** Returns why the message is refused; undefined once its figures are on disk. Throws if the sender should retry. */
  take(envelope: { recipients: readonly string[]; address: string }, octets: Buffer): Promise<string | undefined>
}

/** The replies end with the reason for the reporting server's operator. */
const refusals: Partial<Record<ReportEffect, string>> = {
  foreign: 'The report is not about the domain of this address',
  'wrong period': 'The period of the report is longer than 8 days, in the future, or older than 60 days',
}

type ReadableMail = Exclude<ReportMail, { kind: 'forensic' | 'unreadable' }>

export function openDomainReports(deps: DomainReportsDeps): DomainReports {
  const { db, clock, log, resolver, read } = deps
  const ownName = returnPathDomainOf(deps.hostname.toLowerCase())
  const addresses = openReportAddresses(deps.secrets, ownName)
  const known = cached(clock, (uuid) => findDomainByUuid(db, uuid))
  const noteOwn = noteOwnReport({ log, clock, name: ownName })

  /** Whether the sender signed the mail; verified once, for all addresses. */
  const proofOf = ({ sender, dkim }: ReadableMail) => {
    let verdict: ReturnType<typeof verifyInTime> | undefined
    return async () => {
      if (sender === '') return false
      verdict ??= verifyInTime({ clock, resolver }, dkim)
      return (await verdict) === 'pass'
    }
  }

  const takeFor = async (uuid: string, mail: ReadableMail, isSigned: () => Promise<boolean>): Promise<ReportEffect> => {
    const isOwn = uuid === platformUuid
    const domain = isOwn ? undefined : await findDomainByUuid(db, uuid)
    if (!domain && !isOwn) return 'foreign'
    const authenticated = await isSigned()
    if (!domain) return mail.kind === 'tls' ? noteOwn(mail.report, { sender: mail.sender, authenticated }) : 'foreign'
    const origin = { sender: mail.sender, authenticated, nowMs: clock.nowMs() }
    const effect = await (mail.kind === 'dmarc' ? takeAggregate(db, domain, mail.report, origin) : takeTls(db, domain, mail.report, origin))
    log.info({ domain: domain.name, kind: mail.kind, reporter: mail.report.reporter, authenticated, effect }, 'domain report received')
    return effect
  }

  const note = (kind: string, effect: string) => metrics.reports.inc({ kind, effect })

  return {
    async accepts(address) {
      const uuid = addresses.read(address)
      return uuid !== undefined && (uuid === platformUuid || (await known.get(uuid))) ? 'ours' : 'unknown'
    },
    async take({ recipients, address }, octets) {
      const mail = await read(octets, { atMs: clock.nowMs(), network: networkOf(address) })
      if (mail.kind === 'forensic') {
        note('forensic', 'refused')
        return 'Only aggregate reports are accepted here: remove this address from ruf'
      }
      if (mail.kind === 'unreadable') {
        note('unread', 'refused')
        return `The report ${mail.why}`
      }
      const uuids = new Set(recipients.flatMap((one) => addresses.read(one) ?? []))
      const isSigned = proofOf(mail)
      let refused: string | undefined
      for (const uuid of uuids) {
        const effect = await takeFor(uuid, mail, isSigned)
        note(mail.kind, effect)
        if (effect === 'too many') throw new Error('too many reports about a domain in a day')
        refused ??= refusals[effect]
      }
      return refused
    },
  }
}
