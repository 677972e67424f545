/**
 * Adapts the limits of a provider to its refusals: down at once to the accepted rate, up again in small steps, and more slowly the more
 * often the same limit was met. Pure: takes the previous state, the event and the time; returns the next state.
 */

export interface AdaptiveLimits {
  /** Maximum open at once, over all processes. */
  connections: number
  /** Number of connections at which some were refused; null: not known. */
  connectionCeiling: number | null
  raiseConnectionsAtMs: number
  connectionWaitMs: number
  /** Messages a second, over all processes; null: unlimited. */
  rate: number | null
  /** Highest rate known to be accepted without a refusal; null: not known. */
  safeRate: number | null
  /** A rate at which some messages were refused. */
  rateCeiling: number | null
  raiseRateAtMs: number
  /** Size of the next step beyond the known range, as a fraction of the rate. */
  step: number
  /** Number of messages at an accepted rate before a higher one is probed. */
  messagesBeforeProbe: number
  /** Not lowered again before this time: refusals until then concern messages already on their way. */
  lowerAtMs: number
  /** Sending is suspended until then; null: not suspended. */
  backoffUntilMs: number | null
  backoffMs: number
  /** While the provider accepts no mail: half the previous rate, used when sending continues; null: the provider accepts mail. */
  rateAfterBackoff: number | null
}

/** The limits of a provider set by an operator or by the shipped rules. */
export interface ProviderLimits {
  connections: number
  rate: number | null
}

const minWaitMs = 10_000
/** A failed probe gets one or two messages refused: less than 1 % of this number. */
const minBeforeProbe = 300
const maxBeforeProbe = 1200
const firstConnectionWaitMs = 30_000
const maxWaitMs = 600_000
const maxConnectionWaitMs = 3_600_000
const firstBackoffMs = 30_000
const maxBackoffMs = 1_800_000
/** Each step must take effect before the next: slightly above the limit, only one message in many is refused. */
const minStepMs = 2_000
const messagesOfStep = 40
const messagesOfProbe = 100
const firstStep = 0.05
const stepGrowth = 1.5
const largestStep = 0.5
/** After a step this large the old limit no longer applies. */
const farStep = 0.2
/** Fraction of the rate that was accepted while some messages were refused. */
const safePart = 0.95
/** Fraction of a proven rate after a single refusal: receivers count in their own seconds, and messages arrive unevenly. */
const chancePart = 0.96
/** If less than this fraction of a proven rate is accepted, the limit has fallen; it is not chance. */
const fallenPart = 0.5
/** The same for a rate that was lowered a moment ago. */
const fallenAgainPart = 0.8
/**
 * Fraction of the rate: a ceiling closer than this is not worth another refusal. Larger than the first step and than the margin for
 * chance.
 */
const nearPart = 0.06
const usedPart = 0.7
const slowest = 1 / 60
/** Above this rate in messages a second, no limit is kept. */
const fastEnough = 2000
const settleMs = 1500
/** At low rates, one second may see this many messages above its share. */
const settledMessages = 3

export const initialLimits = (bounds: ProviderLimits): AdaptiveLimits => ({
  connections: bounds.connections,
  connectionCeiling: null,
  raiseConnectionsAtMs: 0,
  connectionWaitMs: firstConnectionWaitMs,
  rate: bounds.rate,
  safeRate: null,
  rateCeiling: null,
  raiseRateAtMs: 0,
  step: firstStep,
  messagesBeforeProbe: minBeforeProbe,
  lowerAtMs: 0,
  backoffUntilMs: null,
  backoffMs: 0,
  rateAfterBackoff: null,
})

/** A connection was refused while `otherConnections` others were open, over all processes. */
export function afterRefusedConnection(before: AdaptiveLimits, otherConnections: number, nowMs: number): AdaptiveLimits {
  if (otherConnections < 1) return backedOff({ ...before, connections: 1 }, nowMs)
  if (otherConnections >= before.connections && before.connectionCeiling !== null) return before
  const { connections: allowed, connectionCeiling: ceiling } = before
  // Connections open at that time may have ended before they were counted, so the known limit outweighs a single count.
  const isProbe = ceiling !== null && allowed >= ceiling
  const connections = isProbe ? allowed - 1 : ceiling === null ? otherConnections : Math.max(otherConnections, Math.ceil(allowed / 2))
  const again = ceiling !== null && connections + 1 >= ceiling
  const connectionWaitMs = again ? Math.min(maxConnectionWaitMs, before.connectionWaitMs * 2) : firstConnectionWaitMs
  return {
    ...before,
    connections,
    connectionCeiling: connections + 1,
    connectionWaitMs,
    raiseConnectionsAtMs: nowMs + connectionWaitMs,
  }
}

/** Messages were refused for their rate; `accepted` were accepted in the second before, as far as counted. */
export function afterThrottle(before: AdaptiveLimits, accepted: number, nowMs: number): AdaptiveLimits {
  if (nowMs < before.lowerAtMs) return before
  const lowered = { ...before, step: 2 * firstStep, lowerAtMs: nowMs + settleMs, rateAfterBackoff: null }
  if (accepted === 0) {
    // Halved each time, so that retries cost little; the duration of a block does not indicate the rate allowed afterwards.
    const half = Math.max(slowest, (before.rate ?? 1) / 2)
    return backedOff({ ...lowered, ...at(half, nowMs), rateAfterBackoff: before.rateAfterBackoff ?? half }, nowMs)
  }
  if (before.rate === null) return { ...lowered, ...at(accepted * safePart, nowMs) }
  const { rate, safeRate } = before
  // Far more than this rate permits: the refused messages were sent before the rate applied.
  if (accepted > 2 * rate + settledMessages) return { ...before, lowerAtMs: nowMs + settleMs }
  const isProbe = before.rateCeiling === null && before.step === firstStep * stepGrowth
  const isHeld = safeRate !== null && safeRate >= rate
  const messagesBeforeProbe = isProbe || isHeld ? Math.min(maxBeforeProbe, before.messagesBeforeProbe * 2) : before.messagesBeforeProbe
  if (safeRate !== null && safeRate < rate)
    return { ...lowered, rate: safeRate, rateCeiling: rate, raiseRateAtMs: nowMs + stepMs(safeRate), messagesBeforeProbe }
  if (accepted >= rate * (isHeld ? fallenPart : fallenAgainPart))
    return { ...lowered, ...at(rate * chancePart, nowMs), rateCeiling: rate, messagesBeforeProbe }
  const seen = Math.min(rate, Math.max(accepted, rate / 2))
  return { ...lowered, ...at(Math.max(slowest, seen * safePart), nowMs), messagesBeforeProbe: minBeforeProbe }
}

/** A rate without any experience yet. */
const at = (rate: number, nowMs: number) => ({ rate, safeRate: null, rateCeiling: null, raiseRateAtMs: nowMs + 2 * stepMs(rate) })

const stepMs = (rate: number, messages = messagesOfStep) => Math.min(maxWaitMs, Math.max(minStepMs, (messages / rate) * 1000))

function backedOff(before: AdaptiveLimits, nowMs: number): AdaptiveLimits {
  if (before.backoffUntilMs !== null && nowMs < before.backoffUntilMs) return before
  const backoffMs = Math.min(maxBackoffMs, Math.max(firstBackoffMs, before.backoffMs * 2))
  return { ...before, backoffMs, backoffUntilMs: nowMs + backoffMs }
}

/** All messages were accepted for a while, `accepted` of them in the last second. An unused rate is not raised. */
export function afterSuccess(before: AdaptiveLimits, bounds: ProviderLimits, accepted: number, nowMs: number): AdaptiveLimits {
  const { rateAfterBackoff } = before
  const resumed = rateAfterBackoff === null ? before : { ...before, ...at(rateAfterBackoff, nowMs), rateAfterBackoff: null }
  const after = raisedConnections({ ...resumed, backoffUntilMs: null, backoffMs: 0 }, bounds, nowMs)
  const isInUse = after.rate === null || accepted >= Math.floor(after.rate * usedPart)
  return isInUse ? raisedRate(after, bounds, nowMs) : after
}

function raisedConnections(before: AdaptiveLimits, bounds: ProviderLimits, nowMs: number): AdaptiveLimits {
  if (before.connections >= bounds.connections || nowMs < before.raiseConnectionsAtMs) return before
  const connections = Math.min(bounds.connections, before.connections + 1)
  const ceiling = before.connectionCeiling ?? 0
  // The probed number of connections held: the limit was lifted.
  const connectionWaitMs = before.connections >= ceiling ? firstConnectionWaitMs : before.connectionWaitMs
  return {
    ...before,
    connections,
    connectionCeiling: Math.max(ceiling, connections),
    connectionWaitMs,
    raiseConnectionsAtMs: nowMs + (connections < ceiling ? minStepMs : connectionWaitMs),
  }
}

function raisedRate(before: AdaptiveLimits, bounds: ProviderLimits, nowMs: number): AdaptiveLimits {
  const { rate, rateCeiling } = before
  if (rate === null || nowMs < before.raiseRateAtMs || rate === bounds.rate) return before
  const raised = { ...before, safeRate: rate, raiseRateAtMs: nowMs + stepMs(rate) }
  if (rateCeiling !== null && rateCeiling - rate > rate * nearPart) return { ...raised, rate: (rate + rateCeiling) / 2 }
  if (rateCeiling !== null) {
    // The rate is as close to the ceiling as it gets.
    const waitMs = Math.max(minWaitMs, stepMs(rate, before.messagesBeforeProbe))
    return { ...raised, rateCeiling: null, step: firstStep, raiseRateAtMs: nowMs + waitMs }
  }
  const next = rate * (1 + before.step)
  if (bounds.rate === null && next > fastEnough) return { ...raised, rate: null, safeRate: null, step: firstStep }
  return {
    ...raised,
    rate: Math.min(bounds.rate ?? next, next),
    step: Math.min(largestStep, before.step * stepGrowth),
    raiseRateAtMs: nowMs + stepMs(next, before.step === firstStep ? messagesOfProbe : messagesOfStep),
    messagesBeforeProbe: before.step >= farStep ? minBeforeProbe : before.messagesBeforeProbe,
  }
}
