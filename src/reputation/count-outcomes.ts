/**
 * Counts the outcomes in the event log by day, sending domain, egress source and provider. The position in the log moves in the transaction
 * that adds the counts, so that each event counts once, also after a crash.
 */
import { type Clock, type Log, type Loop, startLoop } from '#base'
import { type Db, sql, type Tx } from '#db'
import { findSendingFacts, type SendingFacts, type WantedAttempt } from '#emails'
import { type LogPosition, nextEventAfter, type OutcomeEvent, readOutcomeEvents } from '#events'
import { simulatorDomain } from '#simulator'
import type { Wakefulness } from '#spool'
import { addDayRows, type DayRow, noCounts, type OutcomeCounts, utcDayOf } from './reputation-days.ts'

const maxEvents = 5000
const everyMs = 2000
/** The same while there was no mail lately. */
const asleepMs = 10_000

const nextEvent = nextEventAfter(sql.part`reputation_position`)

/** No row while another process counts. */
const lockPosition = sql<LogPosition>`
  select xact::text as xact, id
  from reputation_position
  for update skip locked`

const movePosition = sql`
  update reputation_position
  set xact = $1::text::xid8, id = $2`

/** The provider of a server by its name; `isDirect`: a rule of transports sent the mail there directly, not by POSTRIDER_RELAY. */
export type ProviderOf = (host: string, isDirect: boolean) => string

type OutcomeKind = 'MessageSent' | 'MessageDelayed' | 'MessageDeliveryFailed' | 'MessageBounced' | 'ComplaintReceived'
type CountedOutcome = OutcomeEvent & { kind: OutcomeKind; emailId: string }

const attemptKinds: readonly string[] = ['MessageSent', 'MessageDelayed', 'MessageDeliveryFailed']
const reportKinds: readonly string[] = ['MessageBounced', 'ComplaintReceived']

const isReport = ({ kind }: { kind: string }) => reportKinds.includes(kind)

/** An attempt without a mail server, such as one with a DNS failure, is not counted: it is no evidence of reputation. */
const isCounted = (event: OutcomeEvent): event is CountedOutcome =>
  event.emailId !== null && (isReport(event) || (attemptKinds.includes(event.kind) && event.remoteHost !== null))

/** The effect of one event on the counts. */
function changeOf({ kind, classification, secure }: Pick<CountedOutcome, 'kind' | 'classification' | 'secure'>): Partial<OutcomeCounts> {
  switch (kind) {
    case 'MessageSent':
      return { accepted: 1, secured: secure ? 1 : 0 }
    case 'MessageDelayed':
      return classification === 'spam_block' ? { blocked: 1 } : { deferred: 1 }
    case 'MessageDeliveryFailed':
      return classification === 'spam_block' ? { blocked: 1 } : { failed: 1 }
    case 'MessageBounced':
      return { bounced: 1 }
    case 'ComplaintReceived':
      return { complained: 1 }
  }
}

/** Counts the next events that no earlier event can precede any more; returns how many were read. */
export async function countOutcomes(db: Db, providerOf: ProviderOf): Promise<number> {
  return (await db.first(nextEvent)) ? db.transaction((tx) => countNext(tx, providerOf)) : 0
}

interface CountingDeps {
  db: Db
  clock: Clock
  log: Log
  providerOf: ProviderOf
  wakefulness: Pick<Wakefulness, 'delayMs'>
}

/** On a schedule of its own: after an upgrade it counts the kept log, which must not delay other tasks. */
export function startCountingOutcomes({ db, clock, log, providerOf, wakefulness }: CountingDeps): Loop {
  return startLoop({ clock, log, name: 'counting outcomes by domain, source and provider', everyMs }, async () =>
    (await countOutcomes(db, providerOf)) < maxEvents ? wakefulness.delayMs(everyMs, asleepMs) : 0,
  )
}

async function countNext(tx: Tx, providerOf: ProviderOf): Promise<number> {
  const from = await tx.first(lockPosition)
  if (!from) return 0
  const events = await readOutcomeEvents(tx, from, maxEvents)
  const last = events.at(-1)
  if (!last) return 0
  const counted = events.filter(isCounted)
  const facts = await findSendingFacts(tx, counted.map(attemptOf))
  await addDayRows(tx, sumsOf(counted, facts, providerOf))
  await tx.run(movePosition, [last.xact, last.id])
  return events.length
}

/** A report is about the attempt that delivered the email. */
const attemptOf = ({ tenantId, emailId, kind, at, simulatedAt }: CountedOutcome): WantedAttempt => ({
  tenantId,
  emailId,
  at: isReport({ kind }) ? null : simulatedAt === null ? at : new Date(simulatedAt),
})

function sumsOf(events: readonly CountedOutcome[], facts: ReadonlyMap<number, SendingFacts>, providerOf: ProviderOf): DayRow[] {
  const rows = new Map<string, DayRow>()
  events.forEach((event, index) => {
    const sending = facts.get(index)
    // The email is past its retention.
    if (!sending) return
    const place = {
      tenant_id: event.tenantId,
      day: utcDayOf(event.at.getTime()),
      test: isSimulated(sending),
      domain: sending.senderDomain,
      source: sending.source ?? '',
      // The host of a report may be another one.
      provider: providerOfAttempt(sending, isReport(event) ? sending.remoteHost : event.remoteHost, providerOf),
    }
    const key = JSON.stringify(place)
    const row = rows.get(key) ?? { ...place, ...noCounts() }
    for (const [name, count] of Object.entries(changeOf(event))) row[name as keyof OutcomeCounts] += count
    rows.set(key, row)
  })
  return [...rows.values()]
}

const isSimulated = ({ test, recipientDomain }: SendingFacts) => test || recipientDomain === simulatorDomain

/** A transport is the provider of its mail, because its relay accepts it. */
function providerOfAttempt(sending: SendingFacts, host: string | null, providerOf: ProviderOf): string {
  if (isSimulated(sending)) return 'simulator'
  const { transport } = sending
  if (transport !== null && transport !== 'mx') return transport
  return host === null ? '' : providerOf(host, transport === 'mx')
}
