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
  /** Undefined: all. */
  statuses: readonly EmailStatus[] | undefined
  /** Only without statuses: test mail (true), or live mail. */
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

/** Emails that another program sent; they are neither test mail nor have a complaint. */
const importedRows = sql<Pick<EmailCounts, 'accepted' | 'sent' | 'hardfail' | 'bounced'> & { startsAt: Date }>`
  select starts_at as "startsAt", accepted, sent, hardfail, bounced
  from imported_counts
  where tenant_id = $1 and span = $2 and starts_at >= $3 and starts_at < $4`

const spanMs: Record<CountSpan, number> = { second: secondMs, '15min': quarterHourMs, day: dayMs }

type CountExactly = (fromMs: number, toMs: number) => Promise<number>

/** A change of the counts in one second of acceptance, in milliseconds. */
export type CountChange = readonly [atMs: number, change: EmailCounts]

/** `countExactly` reads the emails of a range, where counts are too coarse. `changes`: such as those of emails that are left out. */
export async function openCountPager(
  tx: Tx,
  range: Range,
  countExactly: CountExactly,
  changes: readonly CountChange[] = [],
): Promise<CountPager> {
  const spans = new SpanCounts(tx, range, [...(await readTail(tx, range.tenantId)), ...changes], countExactly)
  return new CountPager(spans, await spans.segments())
}

export class CountPager {
  readonly total: number
  readonly #spans: SpanCounts
  readonly #segments: readonly TimeRange[]

  /** `segments` of the whole range, newest first. */
  constructor(spans: SpanCounts, segments: readonly TimeRange[]) {
    this.total = segments.reduce((sum, { count }) => sum + count, 0)
    this.#spans = spans
    this.#segments = segments
  }

  /** The segments from `offset` on, newest first; `skip` is the part of the first segment that lies before `offset`. */
  from(offset: number): AsyncGenerator<{ segment: TimeRange; skip: number }> {
    return this.#descend(this.#segments, offset)
  }

  async *#descend(segments: readonly TimeRange[], offset: number): AsyncGenerator<{ segment: TimeRange; skip: number }> {
    let before = 0
    for (const segment of segments) {
      const skip = Math.max(0, offset - before)
      before += segment.count
      if (segment.count === 0 || skip >= segment.count) continue
      const parts = await this.#spans.finer(segment)
      if (parts) yield* this.#descend(parts, skip)
      else yield { segment, skip }
    }
  }
}

/** The counts of one range, in the largest spans that fit, and the parts of each span. */
class SpanCounts {
  readonly #tx: Tx
  readonly #range: Range
  /** Changes that the counts do not contain yet. */
  readonly #tail: readonly CountChange[]
  readonly #countExactly: CountExactly

  constructor(tx: Tx, range: Range, tail: readonly CountChange[], countExactly: CountExactly) {
    this.#tx = tx
    this.#range = range
    this.#tail = tail
    this.#countExactly = countExactly
  }

  /** The whole range, newest first: days, and at its edges shorter spans. */
  segments(): Promise<TimeRange[]> {
    const { fromMs, toMs } = this.#range
    return this.#within('day', fromMs, toMs, (from, to) => this.#inDay(from, to))
  }

  /** The parts of a day or of a busy 15-minute interval; undefined if its emails must be read. */
  async finer(segment: TimeRange): Promise<TimeRange[] | undefined> {
    const size = segment.toMs - segment.fromMs
    if (size === dayMs) return this.#spansOf('15min', segment.fromMs, segment.toMs)
    return size === quarterHourMs ? this.#secondsOf(segment) : undefined
  }

  /** Splits a range into the part covered by whole spans and the two edges. */
  async #within(span: CountSpan, from: number, to: number, edge: (from: number, to: number) => Promise<TimeRange[]>): Promise<TimeRange[]> {
    const size = spanMs[span]
    const [first, last] = [Math.ceil(from / size) * size, Math.floor(to / size) * size]
    if (last < first) return edge(from, to)
    return [...(await edge(last, to)), ...(await this.#spansOf(span, first, last)), ...(await edge(from, first))]
  }

  /** A part of one day. */
  async #inDay(from: number, to: number): Promise<TimeRange[]> {
    return to <= from ? [] : this.#within('15min', from, to, (first, last) => this.#inQuarterHour(first, last))
  }

  /** A part of one 15-minute interval. */
  async #inQuarterHour(from: number, to: number): Promise<TimeRange[]> {
    if (to <= from) return []
    const startsMs = Math.floor(from / quarterHourMs) * quarterHourMs
    const [whole] = await this.#spansOf('15min', startsMs, startsMs + quarterHourMs)
    if (!whole || !(await this.#secondsOf(whole))) return this.#exactly(from, to)
    return this.#within('second', from, to, (first, last) => this.#exactly(first, last))
  }

  async #exactly(from: number, to: number): Promise<TimeRange[]> {
    const count = to > from ? await this.#countExactly(from, to) : 0
    return count > 0 ? [{ fromMs: from, toMs: to, count, accepted: count }] : []
  }

  /** The seconds of a busy 15-minute interval; undefined if some may have been deleted, which their sum shows. */
  async #secondsOf({ fromMs, toMs, count, accepted }: TimeRange): Promise<TimeRange[] | undefined> {
    if (accepted < sparsePerBucket) return undefined
    const seconds = await this.#spansOf('second', fromMs, toMs)
    const sum = (of: 'count' | 'accepted') => seconds.reduce((total, one) => total + one[of], 0)
    return sum('accepted') === accepted && sum('count') === count ? seconds : undefined
  }

  /** Counts of whole spans between two borders of that span, newest first, without empty ones. */
  async #spansOf(span: CountSpan, from: number, to: number): Promise<TimeRange[]> {
    if (to <= from) return []
    const { tenantId, statuses, test } = this.#range
    const sums = new Map<number, EmailCounts>()
    const within = [tenantId, span, new Date(from), new Date(to)]
    for (const row of await this.#tx.rows(countRows, within)) sums.set(row.startsAt.getTime(), row)
    for (const { startsAt, ...counts } of await this.#tx.rows(importedRows, within)) {
      const startsMs = startsAt.getTime()
      sums.set(startsMs, addCounts(sums.get(startsMs) ?? noEmailCounts(), { ...noEmailCounts(), ...counts }))
    }
    for (const [atMs, change] of this.#tail) {
      if (atMs < from || atMs >= to) continue
      const startsMs = Math.floor(atMs / spanMs[span]) * spanMs[span]
      sums.set(startsMs, addCounts(sums.get(startsMs) ?? noEmailCounts(), change))
    }
    return [...sums]
      .map(([startsMs, counts]) => ({
        fromMs: startsMs,
        toMs: startsMs + spanMs[span],
        count: countOf(counts, statuses, test),
        accepted: counts.accepted,
      }))
      .filter(({ accepted }) => accepted > 0)
      .sort((a, b) => b.fromMs - a.fromMs)
  }
}
