/**
 * Applies a matched report in one transaction: status, attempt, event and suppression of a bounce (contract section 7.2); suppression and
 * event of a complaint. Each report takes effect once, and only on an email in the right state.
 */
import { type Clock, emailIdTimeMs, type Ids, pause } from '#base'
import { type ClassificationName, classification, suppresses } from '#bounces'
import { type Db, type Tx, withPartitions } from '#db'
import type { DkimVerdict } from '#dkim'
import { appendAttempt, changeStatus, type Email, findEmail, isErased, isForwardedCopy, queuedStatuses } from '#emails'
import { appendEvents, eventTables, simulatedAt } from '#events'
import { findQueued, getTestClockOffsetMs } from '#spool'
import { suppress } from '#suppressions'
import type { Tenants } from '#tenants'
import { type OwnFailure, ownFailure } from './own-recipient.ts'
import { addReport, complaintKey, hasReport, type ReportRecord, returnTables } from './processed-reports.ts'
import { type Heading, legible, type ReceivedReport, replyCodeOf } from './report-summary.ts'

export type Effect =
  | 'bounced'
  | 'complaint'
  | 'noted'
  /** The same report was applied before. */
  | 'repeated'
  /** The email is not `sent`, or the report has no effect. */
  | 'nothing follows'
  | 'no email found'
  | 'not ours'

export interface EffectDeps {
  db: Db
  clock: Clock
  ids: Ids
  tenants: Pick<Tenants, 'find'>
  nowMs: number
}

/** A report may arrive before the delivery's own outcome is recorded: it is then early, not invalid. */
const waitForRecordMs = 5000
const lookEveryMs = 100
const maxOutputLength = 4000
const maxHostLength = 255

/** A bounce of a sent email: for any reason, the message was not delivered. */
export async function bounce(
  deps: EffectDeps,
  emailId: string,
  report: ReceivedReport,
  heading: Heading & { to: string },
): Promise<Effect> {
  const email = await findRecorded(deps, emailId)
  if (!email) return 'no email found'
  const failure = ownFailure(report, email.recipient)
  if (!failure) return 'nothing follows'
  // Read here, after the delivery that was waited for.
  const nowMs = deps.clock.nowMs()
  const at = new Date(nowMs)
  const clockOffsetMs = await aheadOf(deps, email)
  const facts = factsOf(email, failure.report)
  const mustSuppress = isOwnFault(failure) && !isErased(email)
  const record: ReportRecord = { ...refOf(email), key: heading.key, kind: 'bounce', matchedBy: 'return path', at }
  return commit(deps, email, async (tx) => {
    if (await hasReport(tx, record)) return 'repeated'
    // Waiting for the email's row may take long, and another process may have applied the same report meanwhile, so it is looked up again.
    if (!(await changeStatus(tx, email, ['sent'], 'bounced')))
      return email.status === 'bounced' || (await hasReport(tx, record)) ? 'repeated' : 'nothing follows'
    await addReport(tx, record)
    await appendAttempt(tx, email, { ...facts, status: 'bounced', at: new Date(nowMs + clockOffsetMs), durationMs: 0, secure: false })
    const { details, output, enhanced, remoteHost } = facts
    await appendEvents(tx, [
      {
        ...refOf(email),
        kind: 'MessageBounced',
        at,
        data: {
          details: details.slice(0, 250).toWellFormed(),
          output: output.slice(0, 512).toWellFormed(),
          secure: false,
          seconds: 0,
          classification: facts.classification,
          classificationCode: classification(facts.classification),
          enhanced,
          remoteHost,
          suppressed: mustSuppress,
          was: 'sent',
          simulated: email.test,
          ...simulatedAt(nowMs, clockOffsetMs),
          bounce: {
            token: deps.ids.emailId(nowMs),
            messageId: heading.messageId,
            from: isErased(email) ? '' : heading.from,
            to: heading.to,
            subject: isErased(email) ? '' : heading.subject,
            timestamp: (nowMs + clockOffsetMs) / 1000,
          },
        },
      },
    ])
    if (mustSuppress) await suppress(tx, [{ ...recipientOf(email), reason: 'bounce', at, emailId }])
    return 'bounced'
  })
}

/** Only the failure of the recipient's own address suppresses it. */
const isOwnFault = ({ report: { permanent, classification: name, fault }, isOwn }: OwnFailure) =>
  isOwn && permanent && suppresses(nameOf(name)) && (fault === null || fault === 'recipient')

export interface ReportEvidence {
  matchedBy: 'return path' | 'trace header'
  /** The verdict on the report's own signature; recorded, but not required of a reporter that knows the email's name. */
  dkim: DkimVerdict
}

/** A complaint, applied once for each email: its recipient did not want it. The status does not change. */
export async function complain(deps: EffectDeps, emailId: string, proof: ReportEvidence): Promise<Effect> {
  const email = await findEmail(deps.db, emailId, null)
  if (!email) return 'no email found'
  const at = new Date(deps.nowMs)
  const data = {
    dkim: proof.dkim,
    matchedBy: proof.matchedBy,
    simulated: email.test,
    ...simulatedAt(deps.nowMs, await aheadOf(deps, email)),
  }
  // A complaint about a forwarded copy is about its author, a stranger, who could otherwise stop the route.
  const mustSuppress = !isErased(email) && !(await isForwardedCopy(deps.db, email))
  return commit(deps, email, async (tx) => {
    if (!(await addReport(tx, { ...refOf(email), key: complaintKey, kind: 'complaint', matchedBy: proof.matchedBy, at }))) return 'repeated'
    if (mustSuppress) await suppress(tx, [{ ...recipientOf(email), reason: 'complaint', at, emailId }])
    await appendEvents(tx, [{ ...refOf(email), kind: 'ComplaintReceived', at, data }])
    return 'complaint'
  })
}

/** Test mail uses its tenant's test clock. */
const aheadOf = ({ db }: EffectDeps, { test, tenantId }: Email) => (test ? getTestClockOffsetMs(db, tenantId) : 0)

/** A complaint without proof: recorded only. */
export function note(deps: EffectDeps, email: Email): Promise<Effect> {
  const record: ReportRecord = {
    ...refOf(email),
    key: 'complaint by message id',
    kind: 'complaint',
    matchedBy: 'message id',
    at: new Date(deps.nowMs),
  }
  return commit(deps, email, async (tx) => ((await addReport(tx, record)) ? 'noted' : 'repeated'))
}

const refOf = (email: Email) => ({ tenantId: email.tenantId, emailId: email.id })
const recipientOf = (email: Email) => ({ tenantId: email.tenantId, address: email.recipient })

/** The email, once no attempt for it is in flight. */
async function findRecorded({ db, clock }: EffectDeps, emailId: string): Promise<Email | undefined> {
  const untilMs = clock.monotonicMs() + waitForRecordMs
  for (;;) {
    const email = await findEmail(db, emailId, null)
    if (!email || !queuedStatuses.includes(email.status)) return email
    const queued = await findQueued(db, refOf(email))
    if (queued && queued.state !== 'sending') return email
    if (clock.monotonicMs() > untilMs) throw new Error(`the outcome of email ${emailId} is not yet recorded`)
    await pause(clock, lookEveryMs)
  }
}

/** Emails of a deleted tenant are ignored. */
async function commit(deps: EffectDeps, email: Email, work: (tx: Tx) => Promise<Effect>): Promise<Effect> {
  const { db, tenants } = deps
  if (!(await tenants.find(email.tenantId))) return 'nothing follows'
  // The email is older than the table of reports, or housekeeping is late.
  return withPartitions(db, () => db.transaction(work), [
    { tables: returnTables, timesMs: [emailIdTimeMs(email.id) ?? deps.nowMs] },
    { tables: eventTables, timesMs: [deps.nowMs] },
  ])
}

/** The classification by the reader's name; `unclassified` if the contract has no such name. */
const nameOf = (name: string | null): ClassificationName =>
  name !== null && typeof classification(name as ClassificationName) === 'number' ? (name as ClassificationName) : 'unclassified'

interface BounceDetails {
  details: string
  output: string
  code: number | null
  enhanced: string | null
  classification: ClassificationName
  remoteHost: string | null
}

/** The attempt's text for a report (contract section 7.8). For an erased recipient no text is kept. */
function factsOf(email: Email, report: ReceivedReport): BounceDetails {
  const output = isErased(email) ? '' : legible(report.reason ?? '', maxOutputLength)
  const code = replyCodeOf(output)
  const enhanced = /^[245]\.\d{1,3}\.\d{1,3}$/.test(report.status ?? '') ? report.status : null
  const name = nameOf(report.classification)
  const details = isErased(email)
    ? ''
    : `${code === null ? '' : `${code} `}${name.replaceAll('_', ' ')}: Delivery to ${email.recipient} failed after it had been accepted`
  const remoteHost = report.reportingMta == null ? null : legible(report.reportingMta, maxHostLength)
  return { details, output, code, enhanced, classification: name, remoteHost }
}
