/**
 * The retry schedule (contract section 7.2): 1.3^n × 5 min after failure n, at most 6 h, ±10%.
 */
import type { Config } from '#base'

export interface RetrySchedule {
  baseMs: number
  maxMs: number
  maxAttempts: number
}

export type RetrySettings = Pick<Config, 'maxAttempts' | 'retryBaseSeconds' | 'retryMaxSeconds'>

export const retryScheduleOf = ({ maxAttempts, retryBaseSeconds, retryMaxSeconds }: RetrySettings): RetrySchedule => ({
  maxAttempts,
  baseMs: retryBaseSeconds * 1000,
  maxMs: retryMaxSeconds * 1000,
})

const growth = 1.3
const jitter = 0.1

/** The delay after the `attempts`th failed attempt; `random` is uniform in [0, 1). */
export function retryDelayMs(attempts: number, schedule: RetrySchedule, random: number): number {
  const delayMs = Math.min(growth ** attempts * schedule.baseMs, schedule.maxMs)
  return Math.round(delayMs * (1 - jitter + 2 * jitter * random))
}

/** Upper bound of any delay. */
export const maxRetryMs = ({ maxMs }: RetrySchedule): number => Math.ceil(maxMs * (1 + jitter))

/** The expected time of the last attempt of an email with `attempts` failed ones, if only the schedule delays it. */
export function lastAttemptMs(attempts: number, nextMs: number, schedule: RetrySchedule): number {
  let atMs = nextMs
  for (let failed = attempts + 1; failed < schedule.maxAttempts; failed++) atMs += retryDelayMs(failed, schedule, 1 / 2)
  return atMs
}

/** Upper bound of the time for all attempts of the schedule, each made when it is due. */
export function wholeScheduleMs(schedule: RetrySchedule): number {
  let sumMs = 0
  for (let attempts = 1; attempts < schedule.maxAttempts; attempts++) sumMs += retryDelayMs(attempts, schedule, 1)
  return sumMs
}
