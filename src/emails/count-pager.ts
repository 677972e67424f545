/**
 * Finds a page of a list by counts instead of reading: days newest first, then the 15-minute intervals of one day, then the seconds of one
 * interval. The cost of a page does not grow with its number. All reads use one snapshot.
 */
import { sql, type Tx } from '#db'
import {
  addCounts,
  type CountSpan,
  countOf,
  dayMs,
  type EmailCounts,
  noEmailCounts,
  quarterHourMs,
  readTail,
  secondMs,
  sparsePerBucket,
} from './email-counts.ts'
import type { EmailStatus } from './status-transitions.ts'

/** `fromMs` inclusive, `toMs` exclusive; `tenantId` '' is all. */
export interface Range {
  tenantId: string
  status: EmailStatus | undefined
  /** Only without a status: test mail (true), or live mail. */
  test?: boolean | undefined
  fromMs: number
  toMs: number
}

/** A period with emails: the number of matches, and the number of emails with any status. */
export interface TimeRange {
  fromMs: number
  toMs: number
  count: number
  accepted: number
}

const countRows = sql<EmailCounts & { startsAt: Date }>`
  select starts_at as "startsAt", accepted, test, complained, sent, softfail, hardfail, bounced, held
  from email_counts
  where tenant_id = $1 and span = $2 and starts_at >= $3 and starts_at < $4
  order by starts_at desc`

const spanMs: Record<CountSpan, number> = { second: secondMs, '15min': quarterHourMs, day: dayMs }

export interface CountPager {
  total: number
  /** The segments from `offset` on, newest first; `skip` is the part of the first segment that lies before `offset`. */
  from(offset: number): AsyncGenerator<{ segment: TimeRange; skip: number }>
}

/** `countExactly` reads the emails of a range, where counts are too coarse. */
export async function openCountPager(
  tx: Tx,
  range: Range,
  countExactly: (fromMs: number, toMs: number) => Promise<number>,
): Promise<CountPager> {
  const { tenantId, status, test, fromMs, toMs } = range
  const tail = [...(await readTail(tx, tenantId))]

  /** Counts of whole spans between two borders of that span, newest first, without empty ones. */
  const spansOf = async (span: CountSpan, from: number, to: number): Promise<TimeRange[]> => {
    if (to <= from) return []
    const sums = new Map<number, EmailCounts>()
    for (const row of await tx.rows(countRows, [tenantId, span, new Date(from), new Date(to)])) sums.set(row.startsAt.getTime(), row)
    for (const [atMs, change] of tail) {
      if (atMs < from || atMs >= to) continue
      const startsMs = Math.floor(atMs / spanMs[span]) * spanMs[span]
      sums.set(startsMs, addCounts(sums.get(startsMs) ?? noEmailCounts(), change))
    }
    return [...sums]
      .map(([startsMs, counts]) => ({
        fromMs: startsMs,
        toMs: startsMs + spanMs[span],
        count: countOf(counts, status, test),
        accepted: counts.accepted,
      }))
      .filter(({ accepted }) => accepted > 0)
      .sort((a, b) => b.fromMs - a.fromMs)
  }
  const exactly = async (from: number, to: number): Promise<TimeRange[]> => {
    const count = to > from ? await countExactly(from, to) : 0
    return count > 0 ? [{ fromMs: from, toMs: to, count, accepted: count }] : []
  }

  /** Splits the range into the part covered by whole spans and the two edges. */
  const within = async (
    span: CountSpan,
    from: number,
    to: number,
    edge: (from: number, to: number) => Promise<TimeRange[]>,
  ): Promise<TimeRange[]> => {
    const size = spanMs[span]
    const [first, last] = [Math.ceil(from / size) * size, Math.floor(to / size) * size]
    if (last < first) return edge(from, to)
    return [...(await edge(last, to)), ...(await spansOf(span, first, last)), ...(await edge(from, first))]
  }
  /** The seconds of a busy 15-minute interval; undefined if some may have been deleted, which their sum shows. */
  const secondsOf = async ({ fromMs, toMs, count, accepted }: TimeRange): Promise<TimeRange[] | undefined> => {
    if (accepted < sparsePerBucket) return undefined
    const seconds = await spansOf('second', fromMs, toMs)
    const sum = (of: 'count' | 'accepted') => seconds.reduce((total, one) => total + one[of], 0)
    return sum('accepted') === accepted && sum('count') === count ? seconds : undefined
  }
  /** A part of one 15-minute interval. */
  const inQuarter = async (from: number, to: number): Promise<TimeRange[]> => {
    if (to <= from) return []
    const startsMs = Math.floor(from / quarterHourMs) * quarterHourMs
    const [whole] = await spansOf('15min', startsMs, startsMs + quarterHourMs)
    if (!whole || !(await secondsOf(whole))) return exactly(from, to)
    return within('second', from, to, exactly)
  }
  const inDay = (from: number, to: number) => (to <= from ? Promise.resolve([]) : within('15min', from, to, inQuarter))
  const all = await within('day', fromMs, toMs, inDay)

  const finer = async (segment: TimeRange): Promise<TimeRange[] | undefined> => {
    const size = segment.toMs - segment.fromMs
    if (size === dayMs) return spansOf('15min', segment.fromMs, segment.toMs)
    return size === quarterHourMs ? secondsOf(segment) : undefined
  }

  async function* descend(segments: readonly TimeRange[], offset: number): AsyncGenerator<{ segment: TimeRange; skip: number }> {
    let before = 0
    for (const segment of segments) {
      const skip = Math.max(0, offset - before)
      before += segment.count
      if (segment.count === 0 || skip >= segment.count) continue
      const parts = await finer(segment)
      if (parts) yield* descend(parts, skip)
      else yield { segment, skip }
    }
  }

  return { total: all.reduce((sum, { count }) => sum + count, 0), from: (offset) => descend(all, offset) }
}
