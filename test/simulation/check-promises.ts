/** Inspects the engine from outside, after every step and more closely when it is idle, and checks every guarantee. */
import type { Config } from '#base'
import { type Db, inSnapshot, sql } from '#db'
import { countsIn } from '#emails'
import {
  type Claim,
  type Email,
  g2Ends,
  g2Queue,
  g2Records,
  g2Waits,
  g3Copies,
  g3Reasons,
  g3Stale,
  g4Events,
  g4Webhooks,
  g6Connections,
  g6Slots,
  g7Turns,
  g8InFlight,
  openHistories,
} from './invariants.ts'
import type { Ledger } from './ledger.ts'
import { openObserver, type QueueState } from './observer.ts'
import type { Operators } from './operators.ts'
import { floodDeliversMs } from './operators.ts'
import type { Scenario } from './scenario.ts'
import { startMs, type Tenancy } from './seed-databases.ts'
import type { Gate } from './serial-database.ts'
import type { Time } from './virtual-time.ts'

type Note = (sentences: readonly string[]) => void

const hourMs = 3_600_000
const dayMs = 86_400_000
const maxConnections = 20
/** Reading all records each time the engine is idle would take longer than the idle time. */
const closelyEvery = 8

const allEmails = sql<Email>`
  select emails.id, emails.tenant_id as "tenantId", emails.recipient, status, spool.state as queued
  from emails
  left join spool on spool.tenant_id = emails.tenant_id and spool.email_id = emails.id`

const pausedReady = sql<{ paused: number }>`
  select count(*) as paused
  from spool
  where state = 'ready' and recipient_domain = any($1)`

const waits = sql<{ emailId: string; attempts: number; waitMs: number }>`
  select spool.email_id as "emailId", spool.attempt_count as "attempts", extract(epoch from spool.due_at - attempts.at)::double precision * 1000 as "waitMs"
  from spool
  join attempts on attempts.tenant_id = spool.tenant_id and attempts.email_id = spool.email_id and attempts.number = spool.attempt_count
  where spool.state = 'deferred' and spool.delay_reason is null and spool.attempt_count > 0 and not attempts.outcome_unknown`

const heldForTenants = sql<{ tenantId: string; held: number }>`
  select tenant_id as "tenantId", count(*) as held
  from spool
  where state = 'held' and hold_reason = 'tenant'
  group by tenant_id`

const waitingIds = sql<{ id: string }>`
  select email_id as id
  from spool
  where state = 'over_limit'`

const foreignRows = sql<{ rows: number }>`
  select count(*) as rows
  from emails
  left join spool on spool.email_id = emails.id
  left join attempts on attempts.email_id = emails.id
  left join contents on contents.id = emails.content_id
  where spool.tenant_id <> emails.tenant_id or attempts.tenant_id <> emails.tenant_id or contents.tenant_id <> emails.tenant_id`

/**
 * Each machine counts by its own clock (docs/scaling.md). With one that is ahead, mail also leaves in the capacity of the next hour, and with
 * one that is behind in the rest of the previous hour's. Machines more than an hour apart restart each other's counter.
 */
function hoursMoreOf(skewsMs: readonly number[]): number {
  const [behindMs, aheadMs] = [Math.min(0, ...skewsMs), Math.max(0, ...skewsMs)]
  return aheadMs - behindMs > hourMs ? Infinity : Number(behindMs < 0) + Number(aheadMs > 0)
}

export interface InspectionDeps {
  real: Db
  time: Time
  ledger: Ledger
  scenario: Scenario
  config: Config
  claims: readonly Claim[]
  tenants: readonly Tenancy[]
  operators: Operators
  gate: Gate
}

export function openInspection(deps: InspectionDeps) {
  const { real, time, ledger, scenario, config, claims, tenants, operators, gate } = deps
  const watch = openObserver(real, time)
  const histories = openHistories()
  const schedule = { baseMs: config.retryBaseSeconds * 1000, maxMs: config.retryMaxSeconds * 1000 }
  const canLoseAnswers = scenario.hosts.some(({ temper }) => temper.dropsAfterDot > 0 || temper.silentAfterDot > 0)
  let attempts = 0
  let changesSeen = -1
  let last: (QueueState & { paused: number; isEmpty: boolean }) | undefined
  let rests = 0
  let claimsSeen = 0
  let copiesSeen = 0
  let resumedAtMs = new Map<string, number>()
  const slots = new Map<number, number>()
  let hoursMore = 0
  let waiting = new Set<string>()
  const known = new Set<string>()

  const countSlots = async (queued: QueueState) => {
    if (scenario.sendLimit === null) return
    const now = new Set(queued.waiting > 0 ? (await real.rows(waitingIds)).map(({ id }) => id) : [])
    const accepted = ledger.requests.filter(({ test }) => !test).flatMap(({ emails }) => [...emails.values()])
    const hour = Math.floor(time.wallMs / hourMs)
    hoursMore = Math.max(hoursMore, hoursMoreOf(operators.processes().map(({ life }) => life.skewMs)))
    for (const id of accepted) {
      const isGone = !now.has(id) && (!known.has(id) || waiting.has(id))
      if (isGone) slots.set(hour, (slots.get(hour) ?? 0) + 1)
      known.add(id)
    }
    waiting = now
  }

  const checkCopies = (note: Note) => {
    const many = [...ledger.copies].filter(([, copies]) => copies.length > 1)
    if (many.length === copiesSeen && rests % closelyEvery !== 0) return
    copiesSeen = many.length
    const idOf = new Map(ledger.requests.flatMap(({ emails }) => [...emails]))
    for (const [recipient, copies] of many) {
      const id = idOf.get(recipient)
      if (id === undefined) continue
      const made = watch.attempts.get(id) ?? []
      note(g3Copies(recipient, copies, made))
      note(g3Stale(recipient, copies, made))
    }
  }

  const checkUsage = async (note: Note, emails: readonly Email[]) => {
    for (const tenantId of ['', ...tenants.map((one) => one.tenantId)]) {
      const mine = emails.filter((one) => tenantId === '' || one.tenantId === tenantId)
      const counts = await inSnapshot(real, (tx) => countsIn(tx, tenantId, startMs - 2 * dayMs, startMs + 40 * dayMs))
      const expected = {
        accepted: mine.length,
        ...Object.fromEntries(
          ['sent', 'softfail', 'hardfail', 'held'].map((status) => [status, mine.filter((one) => one.status === status).length]),
        ),
      }
      for (const [name, count] of Object.entries(expected)) {
        const told = counts[name as keyof typeof counts]
        if (told !== count) note([`G4: usage of ${tenantId || 'the organisation'} counts ${told} ${name}, and there are ${count}`])
      }
    }
  }

  return {
    get attempts() {
      return attempts
    },

    async atStep(note: Note) {
      if (last && changesSeen === gate.changes) return last
      changesSeen = gate.changes
      const fresh = await watch.look()
      attempts += fresh.attempts.length
      note(histories.take(fresh.events))
      note(g3Reasons(fresh.attempts, ledger, canLoseAnswers))
      const queue = await watch.queue()
      note(g2Queue(queue, { wallMs: time.wallMs, maxMs: Math.max(schedule.maxMs * 1.1, schedule.baseMs * 1.43) + 2 * hourMs }))
      for (; claimsSeen < claims.length; claimsSeen++)
        note(g8InFlight(claims[claimsSeen] as Claim, queue.sending, operators.processes().length + 4))
      await countSlots(queue)
      note(g6Slots(slots, scenario.sendLimit, hoursMore))
      note(g6Connections(ledger, maxConnections))
      const { pausedDomains } = operators
      const paused = pausedDomains.size > 0 && queue.ready > 0 ? ((await real.first(pausedReady, [[...pausedDomains]]))?.paused ?? 0) : 0
      const isEmpty = queue.ready + queue.sending + queue.waiting + queue.deferred + queue.held === 0
      last = { ...queue, paused, isEmpty }
      return last
    },

    async atRest(note: Note) {
      rests++
      note(g2Waits(await real.rows(waits), schedule))
      const held = await real.rows(heldForTenants)
      for (const { tenantId } of held) {
        if (operators.pausedTenants.has(tenantId)) resumedAtMs.delete(tenantId)
        else if (!resumedAtMs.has(tenantId)) resumedAtMs.set(tenantId, time.monotonicMs)
        else if (time.monotonicMs - (resumedAtMs.get(tenantId) as number) > 30_000)
          note([`G2: emails of ${tenantId} are held for their tenant, which sends again for half a minute`])
      }
      resumedAtMs = new Map([...resumedAtMs].filter(([tenantId]) => held.some((one) => one.tenantId === tenantId)))
      checkCopies(note)
      if (rests % closelyEvery !== 0) return
      const emails = await real.rows(allEmails)
      note(g2Records(emails, histories.states))
      if (rests % (closelyEvery * 4) === 0) await checkUsage(note, emails)
    },

    /** Each event of an email was accepted by its webhook. */
    isHeard: () => g4Webhooks(ledger, watch.events, new Map()).every((sentence) => !sentence.startsWith('G4')),

    async atEnd(note: Note) {
      const fresh = await watch.look()
      note(histories.take(fresh.events))
      rests = 0
      checkCopies(note)
      const emails = await real.rows(allEmails)
      note(g2Records(emails, histories.states))
      note(g2Ends(ledger, emails))
      await checkUsage(note, emails)
      note(g4Events(watch))
      note(g4Webhooks(ledger, watch.events, new Map(tenants.map(({ tenantId, url }) => [tenantId, url]))))
      if (((await real.first(foreignRows))?.rows ?? 0) > 0) note(['G5: rows of one email belong to several tenants'])
      if (scenario.floods) {
        const first = tenants[0]?.tenantId ?? ''
        const early = ledger.requests.filter(
          ({ answeredMs, tenantId }) => answeredMs > 0 && answeredMs < floodDeliversMs && tenantId !== first,
        )
        const others = new Map(early.flatMap(({ emails: ids, answeredMs }) => [...ids.values()].map((id) => [id, answeredMs] as const)))
        note(g7Turns(claims, first, others))
      }
    },
  }
}
