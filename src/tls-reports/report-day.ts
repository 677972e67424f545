/**
 * The report about one day of one domain, step by step: look up the destinations, send to each, and delete the counts when no destination is
 * left. Each step is stored, so that an interrupted one is repeated.
 */
import type { Clock, Log, TlsReporter } from '#base'
import type { Db } from '#db'
import { type DayOfDomain, deleteTlsSessions, listCountedPolicies } from '#delivery'
import { findTlsReportUris, type Resolver } from '#net'
import { makeReport, type TlsReportDocument } from './make-report.ts'
import { type SendReport, sendReport } from './send-report.ts'
import { addDestinations, listReportsOf, type SentReport, saveSentReport } from './sent-reports.ts'

export interface ReportDeps extends SendReport {
  db: Db
  clock: Clock
  log: Log
  resolver: Resolver
  reporter: TlsReporter
  senderDomain: string
  /** When the last try for the day is made. */
  until: (day: string) => number
}

const firstRetryMs = 1_800_000
const maxRetryMs = 14_400_000

/** `stopping`: no further destination is tried. */
export async function reportDay(day: DayOfDomain, deps: ReportDeps, stopping?: AbortSignal): Promise<void> {
  const { db, clock } = deps
  const known = await listReportsOf(db, [day])
  const isLookedUp = known.some(({ destination }) => destination !== '')
  if (!isLookedUp && !(await lookUp(day, known[0]?.tries ?? 0, deps))) return
  const open = (await listReportsOf(db, [day])).filter(({ state }) => state === 'waiting')
  const due = open.filter(({ nextAt }) => nextAt.getTime() <= clock.nowMs())
  const report = due.length > 0 ? makeReport(day, await listCountedPolicies(db, day), deps) : undefined
  let isDone = due.length === open.length
  for (const one of due) if (stopping?.aborted || (report && !(await send(one, report, deps)))) isDone = false
  if (isDone) await db.transaction((tx) => deleteTlsSessions(tx, day))
}

/** Returns false if no report is to be sent now: the domain asks for no reports, or the look-up failed. */
async function lookUp(day: DayOfDomain, tries: number, { db, clock, resolver, until }: ReportDeps): Promise<boolean> {
  const answer = await findTlsReportUris(day.domain, resolver)
  const nowMs = clock.nowMs()
  if (answer.kind === 'found') {
    await db.transaction((tx) => addDestinations(tx, day, answer.value, nowMs))
    return true
  }
  if (answer.kind === 'trouble' && nowMs < until(day.day)) {
    const problem = `lookup of _smtp._tls.${day.domain} failed (${answer.code})`
    const state = { state: 'waiting' as const, tries: tries + 1, nextAt: new Date(nowMs + retryMs(tries)), problem }
    await saveSentReport(db, { ...day, destination: '', ...state, successful: 0, failed: 0 })
    return false
  }
  await db.transaction(async (tx) => {
    await addDestinations(tx, day, [], nowMs)
    await deleteTlsSessions(tx, day)
  })
  return false
}

/** Whether the row is final now. */
async function send(row: SentReport, report: TlsReportDocument, deps: ReportDeps): Promise<boolean> {
  const { db, clock, log, until } = deps
  const { day, domain, destination } = row
  const outcome = await sendReport(destination, report, deps)
  const nowMs = clock.nowMs()
  const isOver = outcome.kind === 'failed' || nowMs >= until(day)
  const state = outcome.kind === 'sent' ? 'sent' : isOver ? 'failed' : 'waiting'
  const nextAt = new Date(state === 'waiting' ? nowMs + retryMs(row.tries) : nowMs)
  const problem = outcome.kind === 'sent' ? null : outcome.problem
  const { successful, failed } = report
  await saveSentReport(db, { ...row, state, tries: row.tries + 1, nextAt, problem, successful, failed })
  log.info({ day, domain, destination, state, problem, successful, failed }, 'TLS report')
  return state !== 'waiting'
}

const retryMs = (tries: number) => Math.min(firstRetryMs * 2 ** Math.min(tries, 10), maxRetryMs)
