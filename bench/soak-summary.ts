/** The judgement of a soak's measurements. Pure. */

import { type Figures, fixedComputation, memoryInAll, processorTimeInAll, sharedBuffers } from './soak-samples.ts'
import { driftOf } from './trend.ts'

/** A figure may grow by so much along its line in the second half. */
const maxDriftPercent = 2
/** And afterwards exceed its idle value by so much. */
const maxIdleRatio = 1.1
/** An idle service uses 1 to 2% of a core, so that a tenth of it is less than the clock's ticks can show. */
const idleProcessorSlack = 1
/** Minutes of load before the second idle figures. Their emails count in the totals. */
export const warmUpMinutes = 1

export interface Trend {
  name: string
  level: number
  driftPercent: number
  /** Two standard errors of the drift. */
  uncertainty: number
  /** `unclear`: it grew, but by less than its uncertainty; a longer soak has less of it. `-`: not judged. */
  verdict: 'pass' | 'unclear' | 'FAIL' | '-'
}

export interface IdleAgain {
  /** Undefined: some figure was not idle again in time. */
  afterMinutes: number | undefined
  figures: { name: string; fresh: number; warm: number; after: number; isIdle: boolean }[]
}

export interface SoakResult {
  minutes: number
  rate: number
  /** One for each minute of load. */
  samples: Figures[]
  idle: IdleAgain
  totals: {
    accepted: number
    failedRequests: number
    delivered: number
    deferred: number
    /** Left in the queue at the end. */
    queued: number
    opened: number
    failedOpens: number
    recordedOpens: number
    webhooks: number
    /** Of the program's processes at the start, those that ended. */
    endedProcesses: number
  }
}

/** The drift of every figure over the second half. A figure that falls passes. */
export function trendsOf(samples: readonly Figures[]): Trend[] {
  const half = samples.slice(Math.floor(samples.length / 2))
  return Object.keys(half[0] ?? {}).map((name) => {
    const { level, percent, uncertainty } = driftOf(half.map((figures) => figures[name] ?? 0))
    return { name, level, driftPercent: percent, uncertainty, verdict: name === fixedComputation ? '-' : verdictOf(percent, uncertainty) }
  })
}

function verdictOf(percent: number, uncertainty: number): Trend['verdict'] {
  if (percent <= maxDriftPercent) return 'pass'
  return percent <= uncertainty ? 'unclear' : 'FAIL'
}

const isMemory = (name: string) => name.startsWith('memory of') || name === memoryInAll

/**
 * Compares with the idle figures after the start (`fresh`): memory, processor time, the queue. Not the shared buffers, which PostgreSQL
 * keeps, and so not the sum of all memory. The figures after a minute of load (`warm`) are only shown: compiled code stays.
 */
export function idleAgain({ fresh, warm }: { fresh: Figures; warm: Figures }, after: Figures, minute: number): IdleAgain {
  const names = Object.keys(fresh).filter(
    (name) => (isMemory(name) && name !== sharedBuffers && name !== memoryInAll) || name === processorTimeInAll || name.startsWith('queue'),
  )
  const figures = names.map((name) => {
    const [was, is] = [fresh[name] ?? 0, after[name] ?? 0]
    const slack = name === processorTimeInAll ? idleProcessorSlack : 0
    return { name, fresh: was, warm: warm[name] ?? 0, after: is, isIdle: is <= was * maxIdleRatio + slack }
  })
  return { afterMinutes: figures.every(({ isIdle }) => isIdle) ? minute : undefined, figures }
}

/** One sentence for each failed check. */
export function failuresOf({ samples, idle, totals, minutes, rate }: SoakResult): string[] {
  const lost = totals.accepted - totals.delivered
  const wanted = (minutes + warmUpMinutes) * 60 * rate
  return [
    ...trendsOf(samples)
      .filter(({ verdict }) => verdict === 'FAIL')
      .map(({ name, driftPercent }) => `${name} grew by ${driftPercent.toFixed(1)}% in the second half`),
    ...idle.figures
      .filter(({ isIdle }) => !isIdle)
      .map(({ name, fresh, after }) => `${name} is not idle again: ${after.toFixed(1)}, before the load ${fresh.toFixed(1)}`),
    ...(lost > 0 ? [`${lost} accepted emails were not delivered; ${totals.queued} of them are queued`] : []),
    ...(totals.failedRequests > 0 ? [`${totals.failedRequests} requests failed`] : []),
    ...(totals.accepted < wanted * 0.99 ? [`the rate was not reached: ${totals.accepted} of ${wanted} emails`] : []),
    ...(totals.failedOpens > 0 ? [`${totals.failedOpens} opens failed`] : []),
    ...(totals.recordedOpens < totals.opened ? [`${totals.opened - totals.recordedOpens} opens were not recorded`] : []),
    // Each email has at least the event MessageSent, and each open one of its own.
    ...(totals.webhooks < totals.delivered + totals.opened ? [`${totals.webhooks} webhooks are fewer than the events`] : []),
    ...(totals.endedProcesses > 0 ? [`${totals.endedProcesses} processes ended during the soak`] : []),
  ]
}

const shown = (value: number) => (Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(1))

export function summaryLines(result: SoakResult): string[] {
  const { minutes, rate, samples, idle, totals } = result
  const failures = failuresOf(result)
  return [
    `| figure | level in the second half | drift, % (±) | at most ${maxDriftPercent}% |`,
    '|---|---|---|---|',
    ...trendsOf(samples).map(
      ({ name, level, driftPercent, uncertainty, verdict }) =>
        `| ${name} | ${shown(level)} | ${driftPercent.toFixed(1)} (${uncertainty.toFixed(1)}) | ${verdict} |`,
    ),
    '',
    `| figure | idle after the start | idle after a minute of load | idle after the load | at most ${maxIdleRatio} times the first |`,
    '|---|---|---|---|---|',
    ...idle.figures.map(
      ({ name, fresh, warm, after, isIdle }) =>
        `| ${name} | ${shown(fresh)} | ${shown(warm)} | ${shown(after)} | ${isIdle ? 'pass' : 'FAIL'} |`,
    ),
    '',
    idle.afterMinutes === undefined
      ? 'The service was not idle again in time.'
      : `The service was idle again ${idle.afterMinutes} min after the queue was empty.`,
    `${minutes} min at ${rate} messages a second after a first of ${warmUpMinutes}, all together: ${Object.entries(totals)
      .map(([name, count]) => `${name} ${count.toLocaleString('en')}`)
      .join(', ')}`,
    ...(failures.length === 0 ? ['All checks pass.'] : ['Failed:', ...failures.map((one) => `- ${one}`)]),
  ]
}
