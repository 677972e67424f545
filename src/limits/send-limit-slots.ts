/**
 * Send-limit slots as one writer takes them, one take after the other. Slots taken for emails that were not accepted are returned exactly
 * once. Each take has a number, stored with the counters, so that a take or a return whose reply was lost is recognised, and a take that
 * was lost with its server.
 */
import { CommitUnknown, type Db, sql } from '#db'
import type { AppendLimitEvents } from './limit-notifications.ts'
import type { SendLimits } from './limit-overrides.ts'
import { type Demand, type SendLimitUsage, type Spent, takeAgain, takeSlots } from './send-limit.ts'
import { hourOf } from './send-limit-counters.ts'

/** Numbers only grow, so that a take that reaches the server after its return has no effect. */
const takeBack = sql`
  update send_limit_usage
  set used = case when (takes ->> $1)::bigint = $2 or hour = $3 then greatest(0, used - back.count) else used end,
      takes = takes || jsonb_build_object($1::text, $2::bigint + 1)
  from unnest($4::text[], $5::boolean[], $6::bigint[]) as back (scope, test, count)
  where send_limit_usage.scope = back.scope and send_limit_usage.test = back.test and coalesce((takes ->> $1)::bigint, 0) <= $2`

export interface GrantedSlots {
  /** For each demand in order. */
  granted: number[]
  sendLimitUsage: (test: boolean) => SendLimitUsage
  /** The slots each demand took from each counter. */
  spent: Spent[][]
  hour: Date
  /** The writer's number of this take. */
  nth: number
  /** `db.interruptions` before the take. */
  interruptions: number
}

export interface Slots {
  take(demands: readonly Demand[], limits: SendLimits, nowMs: number, append: AppendLimitEvents): Promise<GrantedSlots>
  /**
   * Called once the emails of a take are stored, or may be. Takes the slots again if the server that gave them was lost with that commit:
   * now, or before the next take if the database is unavailable. Never rejects.
   */
  confirm(taken: GrantedSlots): Promise<void>
  /** Returns the slots of some demands of a take: now, or before the next take if the database is unavailable. Never rejects. */
  giveBack(taken: GrantedSlots, demands: readonly number[]): Promise<void>
}

/** Work on the counters that is still to be done. */
interface Owed {
  kind: 'take again' | 'give back'
  nth: number
  /** The hour of a take that is known to have happened, perhaps not the last one; null: that of the last one, if it happened. */
  hour: Date | null
  spent: readonly Spent[]
}

/** `writer`: a unique name. */
export function openSlots(db: Db, writer: string): Slots {
  let nth = 0
  let owed: Owed[] = []
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }

  const settle = async () => {
    for (const one of owed) {
      const columns = [one.spent.map(({ scope }) => scope), one.spent.map(({ test }) => test), one.spent.map(({ count }) => count)]
      if (one.kind === 'give back') await db.run(takeBack, [writer, one.nth, one.hour, ...columns])
      else await db.run(takeAgain, [one.hour, writer, one.nth, ...columns, one.spent.map(({ waiting }) => waiting)])
      owed = owed.filter((other) => other !== one)
    }
  }

  return {
    take: (demands, limits, nowMs, append) =>
      inTurn(async () => {
        await settle()
        nth += 2
        const tried: Spent[][] = []
        const { interruptions } = db
        try {
          const { granted, sendLimitUsage } = await takeSlots(db, demands, limits, nowMs, append, { writer, nth, tried })
          return { granted, sendLimitUsage, spent: tried, hour: hourOf(nowMs), nth, interruptions }
        } catch (error) {
          if (error instanceof CommitUnknown) {
            owed.push({ kind: 'give back', nth, hour: null, spent: together(tried.flat()) })
            await settle().catch(() => undefined)
          }
          throw error
        }
      }),
    confirm: (taken) =>
      db.interruptions === taken.interruptions
        ? Promise.resolve()
        : inTurn(async () => {
            owed.push(again(taken))
            await settle()
          }).catch(() => undefined),
    giveBack: (taken, demands) =>
      inTurn(async () => {
        const spent = together(demands.flatMap((index) => taken.spent[index] ?? []))
        if (spent.length === 0) return
        if (db.interruptions !== taken.interruptions) owed.push(again(taken))
        nth += 2
        owed.push({ kind: 'give back', nth, hour: taken.hour, spent })
        await settle()
      }).catch(() => undefined),
  }
}

const again = ({ nth, hour, spent }: GrantedSlots): Owed => ({ kind: 'take again', nth, hour, spent: together(spent.flat()) })

/** Merges the slots to one entry for each counter. */
function together(spent: readonly Spent[]): Spent[] {
  const sums = new Map<string, Spent>()
  for (const { scope, test, count, waiting } of spent) {
    if (count + waiting === 0) continue
    const key = `${scope} ${test}`
    const sum = sums.get(key)
    sums.set(key, { scope, test, count: (sum?.count ?? 0) + count, waiting: (sum?.waiting ?? 0) + waiting })
  }
  return [...sums.values()]
}
