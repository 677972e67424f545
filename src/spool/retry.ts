/**
 * The retry schedule (contract section 7.2): 1.3^n × 5 min after failure n, at most 6 h, ±10 %.
 */

export interface RetrySchedule {
  baseMs: number
  mostMs: number
  maxAttempts: number
}

const growth = 1.3
const jitter = 0.1

/** The delay after the `failures`th failed attempt; `fraction` is uniform in [0, 1). */
export function retryDelayMs(failures: number, schedule: RetrySchedule, fraction: number): number {
  const delayMs = Math.min(growth ** failures * schedule.baseMs, schedule.mostMs)
  return Math.round(delayMs * (1 - jitter + 2 * jitter * fraction))
}

/** Upper bound of any delay. */
export const longestRetryMs = ({ mostMs }: RetrySchedule): number => Math.ceil(mostMs * (1 + jitter))

/** Upper bound of the time for all attempts of the schedule, each made when it is due. */
export function wholeScheduleMs(schedule: RetrySchedule): number {
  let sumMs = 0
  for (let failures = 1; failures < schedule.maxAttempts; failures++) sumMs += retryDelayMs(failures, schedule, 1)
  return sumMs
}
