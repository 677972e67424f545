/**
 * Retry schedule (contract 13.8) and receiver health. While a receiver fails, first attempts are made only at growing intervals. So its
 * backlog stays a position in the log and not a row per event (decision 010).
 */

const secondMs = 1000
const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const stepsMs = [5 * secondMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs, 14 * hourMs, 20 * hourMs, 24 * hourMs]
const jitter = 0.1
/** A retry that is due later was written by a clock that was ahead. */
export const maxRetryDelayMs = 24 * hourMs * (1 + jitter)

/**
 * Milliseconds from the failed attempt of this number to the next; undefined after the last. `random` in [0, 1) is the jitter. The
 * receiver's Retry-After is honoured up to twice the step, and up to one day.
 */
export function webhookRetryDelayMs(attempt: number, random: number, askedMs: number | null): number | undefined {
  const stepMs = stepsMs[attempt - 1]
  if (stepMs === undefined) return undefined
  const wishedMs = Math.min(askedMs ?? 0, stepMs * 2, dayMs)
  return Math.max(stepMs * (1 - jitter + 2 * jitter * random), wishedMs)
}

export interface Health {
  /** Failed attempts since the last success. */
  consecutiveFailures: number
  failingSince: Date | null
  /** The time of the next first attempt, after too many failures. */
  probeAt: Date | null
  /** The time at which the operator was notified. */
  alertedAt: Date | null
}

export const healthy: Health = { consecutiveFailures: 0, failingSince: null, probeAt: null, alertedAt: null }

/** After this many failures in a row the receiver counts as unavailable; fewer may be caused by one event. */
const awayFrom = 8
const firstProbeMs = 5 * secondMs
const maxProbeMs = 5 * minuteMs
/** Interval as a fraction of the time it has been failing: each interval is a fifth longer. */
const probePart = 0.2
const longFailureMs = dayMs

export const isAway = ({ consecutiveFailures }: Health): boolean => consecutiveFailures >= awayFrom

/** True when a first attempt to a receiver that is away is due. A probe beyond the longest interval was set by a clock that was ahead. */
export function mayProbe({ probeAt }: Health, nowMs: number): boolean {
  const inMs = (probeAt?.getTime() ?? 0) - nowMs
  return inMs <= 0 || inMs > maxProbeMs
}

/** `askedMs`: the pause that the receiver asked for (429). */
export function afterAttempt(health: Health, success: boolean, atMs: number, askedMs: number | null): Health {
  if (success) return healthy
  const failingSince = health.failingSince ?? new Date(atMs)
  const probeMs = Math.max(firstProbeMs, (atMs - failingSince.getTime()) * probePart, askedMs ?? 0)
  return {
    consecutiveFailures: askedMs === null ? health.consecutiveFailures + 1 : Math.max(awayFrom, health.consecutiveFailures + 1),
    failingSince,
    probeAt: new Date(atMs + Math.min(probeMs, maxProbeMs)),
    alertedAt: health.alertedAt,
  }
}

/** It has failed for a day, and the operator was not notified yet. */
export const isToBeAlerted = ({ failingSince, alertedAt }: Health, nowMs: number): boolean =>
  failingSince !== null && alertedAt === null && nowMs - failingSince.getTime() >= longFailureMs
