/**
 * TLS reports to other domains (RFC 8460): the sessions with the mail servers of a recipient domain that publishes MTA-STS or DANE, counted by
 * day, and sent to the addresses that the domain names. Owns: tls_reports. Uses: base, mail, net, db, domains, delivery. Used by:
 * housekeeping, cli, main. Promises: a report about a day and a domain is sent to each destination once; only a crash between the sending and
 * its record can repeat it, under the same id. One process sends at a time.
 */
import { type Clock, type Log, type Loop, startLoop, type TlsReporter } from '#base'
import { type Db, withProcessLock } from '#db'
import { type DayOfDomain, listTlsSessionDays } from '#delivery'
import type { Post, Resolver } from '#net'
import { type ReportDeps, reportDay } from './report-day.ts'
import type { SendReport } from './send-report.ts'
import { listReportsOf } from './sent-reports.ts'

export { deleteOldTlsReports, listRecentReports } from './sent-reports.ts'

const everyMs = 60_000
const dayMs = 86_400_000
/** Every process has added its counts of the day by then. */
const graceMs = 900_000
/** Reports leave over this time, so that their receivers do not get those of all senders at once (RFC 8460 section 4.1). */
const spreadMs = 14_400_000
const pairsAtOnce = 500
const maxPairs = 20_000
/** Reports in one turn of the loop; the others follow in the next. */
const maxReports = 200
const atOnce = 4
const sendLock = 7_305_081

export interface TlsReportsDeps {
  db: Db
  clock: Clock
  log: Log
  resolver: Resolver
  post: Pick<Post, 'post'>
  submit: SendReport['submit']
  reporter: TlsReporter
  /** The domain that signs the reports. */
  senderDomain: string
  hostname: string
}

/** Sends the reports that are due now, and returns the number of days that were handled without an error; undefined: another process is at it. */
export const sendDueReports = (deps: TlsReportsDeps, stopping?: AbortSignal): Promise<number | undefined> =>
  withProcessLock(deps.db, sendLock, () => sendAll(deps, stopping))

async function sendAll(deps: TlsReportsDeps, stopping: AbortSignal | undefined): Promise<number> {
  const due = await dueDays(deps)
  const report: ReportDeps = { ...deps, until: (day) => dueMs(day) + spreadMs + dayMs }
  const waiting = [...due]
  let handled = 0
  const worker = async () => {
    for (let one = waiting.shift(); one && !stopping?.aborted; one = waiting.shift()) {
      const { day, domain } = one
      try {
        await reportDay(one, report, stopping)
        handled++
      } catch (error) {
        deps.log.warn({ err: error, day, domain }, 'a TLS report failed; retrying')
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return handled
}

/** The days of domains whose reports are to be sent or repeated now. */
async function dueDays({ db, clock }: TlsReportsDeps): Promise<DayOfDomain[]> {
  const nowMs = clock.nowMs()
  const today = new Date(nowMs).toISOString().slice(0, 10)
  const due: DayOfDomain[] = []
  let after: DayOfDomain = { day: '0001-01-01', domain: '' }
  for (let seen = 0; seen < maxPairs && due.length < maxReports; ) {
    const page = await listTlsSessionDays(db, today, after, pairsAtOnce)
    const reports = Map.groupBy(await listReportsOf(db, page), ({ day, domain }) => `${day} ${domain}`)
    const isDue = (one: DayOfDomain) => {
      const open = (reports.get(`${one.day} ${one.domain}`) ?? []).filter(({ state }) => state === 'waiting')
      if (open.length > 0) return open.some(({ nextAt }) => nextAt.getTime() <= nowMs)
      return dueMs(one.day) + spreadMs * fractionOf(one.domain) <= nowMs
    }
    due.push(...page.filter(isDue).slice(0, maxReports - due.length))
    seen += page.length
    const last = page.at(-1)
    if (!last || page.length < pairsAtOnce) break
    after = last
  }
  return due
}

const dueMs = (day: string) => Date.parse(`${day}T00:00:00Z`) + dayMs + graceMs

/** The same for a domain each day, from 0 to 1. */
function fractionOf(domain: string): number {
  let sum = 0
  for (const character of domain) sum = (Math.imul(sum, 31) + (character.codePointAt(0) ?? 0)) >>> 0
  return sum / 2 ** 32
}

/** Sends reports as they become due. `lookEveryMs`: for tests. */
export function startTlsReports(deps: TlsReportsDeps, lookEveryMs = everyMs): Loop {
  const { clock, log } = deps
  return startLoop({ clock, log, name: 'sending TLS reports', everyMs: lookEveryMs }, async (stopping) => {
    const sent = await sendDueReports(deps, stopping)
    return sent === maxReports ? 0 : lookEveryMs
  })
}
