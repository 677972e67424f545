/**
 * When an attempt follows a failed one (contract 13.8), and what is thought of a receiver: one whose attempts all fail gets first attempts
 * at growing intervals only, so that its backlog stays a position in the log and not a row for each event (decision 010).
 */

const secondMs = 1000
const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const stepsMs = [5 * secondMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs, 14 * hourMs, 20 * hourMs, 24 * hourMs]
const jitter = 0.1
/** A retry that is due later was written by a clock that was ahead. */
export const longestRetryDelayMs = 24 * hourMs * (1 + jitter)

/**
 * Milliseconds from the failed attempt of this number to the next; undefined after the last. `fraction` in [0, 1) is the jitter; what the
 * receiver asks for is heeded up to twice the step, and a day.
 */
export function retryDelayMs(attempt: number, fraction: number, askedMs: number | null): number | undefined {
  const stepMs = stepsMs[attempt - 1]
  if (stepMs === undefined) return undefined
  const wishedMs = Math.min(askedMs ?? 0, stepMs * 2, dayMs)
  return Math.max(stepMs * (1 - jitter + 2 * jitter * fraction), wishedMs)
}

/** A Retry-After header (RFC 9110 section 10.2.3) in milliseconds from now; null for none, or one that is not understood. */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  if (/^\d{1,9}$/.test(header)) return Number(header) * secondMs
  const atMs = Date.parse(header)
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs)
}

export interface Health {
  /** Attempts that failed since one succeeded. */
  failures: number
  failingSince: Date | null
  /** When the next first attempt may be made, while too many have failed. */
  probeAt: Date | null
  /** When the operator was told. */
  toldAt: Date | null
}

export const healthy: Health = { failures: 0, failingSince: null, probeAt: null, toldAt: null }

/** So many attempts in a row have failed: the receiver is away, and not only one event too much for it. */
const awayFrom = 8
const firstProbeMs = 5 * secondMs
const longestProbeMs = 5 * minuteMs
/** Of the time that it has been failing: the intervals grow by a fifth each. */
const probePart = 0.2
const longFailureMs = dayMs

export const isAway = ({ failures }: Health): boolean => failures >= awayFrom

/** Whether a first attempt may be made to a receiver that is away. A probe further off than any interval was set by a clock that was ahead. */
export function mayProbe({ probeAt }: Health, nowMs: number): boolean {
  const inMs = (probeAt?.getTime() ?? 0) - nowMs
  return inMs <= 0 || inMs > longestProbeMs
}

/** `askedMs`: to be left alone for so long (429). */
export function afterAttempt(health: Health, success: boolean, atMs: number, askedMs: number | null): Health {
  if (success) return healthy
  const failingSince = health.failingSince ?? new Date(atMs)
  const probeMs = Math.max(firstProbeMs, (atMs - failingSince.getTime()) * probePart, askedMs ?? 0)
  return {
    failures: askedMs === null ? health.failures + 1 : Math.max(awayFrom, health.failures + 1),
    failingSince,
    probeAt: new Date(atMs + Math.min(probeMs, longestProbeMs)),
    toldAt: health.toldAt,
  }
}

/** It has failed for a day, and nobody was told. */
export const isToBeTold = ({ failingSince, toldAt }: Health, nowMs: number): boolean =>
  failingSince !== null && toldAt === null && nowMs - failingSince.getTime() >= longFailureMs
