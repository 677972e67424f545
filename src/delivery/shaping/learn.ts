/**
 * What a provider allows, learnt from what it refuses: down at once to what it was seen to take, up again in small steps, and slower the
 * more often the same limit has been met. Pure: the state before, what happened and when; the state after.
 */

export interface Learned {
  /** Open at once, over all processes. */
  connections: number
  /** More connections than this have been refused. */
  connectionCeiling: number | null
  raiseConnectionsAtMs: number
  connectionWaitMs: number
  /** Messages a second, over all processes; null: as fast as it takes them. */
  rate: number | null
  /** At this rate nothing was refused; null: not known. */
  safeRate: number | null
  /** At this rate some were refused. */
  rateCeiling: number | null
  raiseRateAtMs: number
  /** What the next step past all that is known adds, as a part of the rate. */
  step: number
  /** So many messages go at a rate that holds before a higher one is dared. */
  messagesBeforeDare: number
  /** Not lowered again before: what is refused until then was on its way. */
  lowerAtMs: number
  /** Nothing is sent until then; null: it may. */
  backoffUntilMs: number | null
  backoffMs: number
  /** While nothing at all is taken: half the rate before that, at which it goes on; null: something is. */
  rateAfterRest: number | null
}

/** What an operator or the shipped rules say of a provider. */
export interface Bounds {
  connections: number
  rate: number | null
}

const shortestWaitMs = 10_000
/** A dare that fails has one or two refused: less than a hundredth of these. */
const leastBeforeDare = 300
const mostBeforeDare = 1200
const firstConnectionWaitMs = 30_000
const longestWaitMs = 600_000
const longestConnectionWaitMs = 3_600_000
const firstBackoffMs = 30_000
const longestBackoffMs = 1_800_000
/** A step must be felt before the next: little above what is allowed, only one message in many is refused. */
const leastStepMs = 2_000
const messagesOfStep = 40
const messagesOfDare = 100
const firstStep = 0.05
const stepGrowth = 1.5
const largestStep = 0.5
/** After so large a step the limit known before is history. */
const farStep = 0.2
/** Of what was taken while some was refused. */
const safePart = 0.95
/** Of a rate that held and then had one refused: receivers count in seconds of their own, and messages arrive unevenly. */
const chancePart = 0.96
/** Less than this taken of a rate that held: not chance, the limit has fallen. */
const fallenPart = 0.5
/** The same, of a rate that was lowered a moment ago. */
const fallenAgainPart = 0.8
/** Of a rate: a ceiling nearer than that is not worth another refusal. More than the first step, and than what chance takes away. */
const nearPart = 0.06
const usedPart = 0.7
const slowest = 1 / 60
/** Faster than this nobody counts. */
const fastEnough = 2000
const settleMs = 1500
/** Of low rates a second may see a few more than its share. */
const settledMessages = 3

export const unlearned = (bounds: Bounds): Learned => ({
  connections: bounds.connections,
  connectionCeiling: null,
  raiseConnectionsAtMs: 0,
  connectionWaitMs: firstConnectionWaitMs,
  rate: bounds.rate,
  safeRate: null,
  rateCeiling: null,
  raiseRateAtMs: 0,
  step: firstStep,
  messagesBeforeDare: leastBeforeDare,
  lowerAtMs: 0,
  backoffUntilMs: null,
  backoffMs: 0,
  rateAfterRest: null,
})

/** A connection was refused while `standing` others were open, over all processes. */
export function afterRefusedConnection(before: Learned, standing: number, nowMs: number): Learned {
  if (standing < 1) return backedOff({ ...before, connections: 1 }, nowMs)
  if (standing >= before.connections && before.connectionCeiling !== null) return before
  const { connections: allowed, connectionCeiling: ceiling } = before
  // Connections that stood then may have ended before they were counted: what was learnt before is believed more than one count.
  const isDare = ceiling !== null && allowed >= ceiling
  const connections = isDare ? allowed - 1 : ceiling === null ? standing : Math.max(standing, Math.ceil(allowed / 2))
  const again = ceiling !== null && connections + 1 >= ceiling
  const connectionWaitMs = again ? Math.min(longestConnectionWaitMs, before.connectionWaitMs * 2) : firstConnectionWaitMs
  return {
    ...before,
    connections,
    connectionCeiling: connections + 1,
    connectionWaitMs,
    raiseConnectionsAtMs: nowMs + connectionWaitMs,
  }
}

/** Messages were refused for their number; `accepted` were taken in the second before, as far as they were counted. */
export function afterThrottle(before: Learned, accepted: number, nowMs: number): Learned {
  if (nowMs < before.lowerAtMs) return before
  const lowered = { ...before, step: 2 * firstStep, lowerAtMs: nowMs + settleMs, rateAfterRest: null }
  if (accepted === 0) {
    // Slower each time, so that asking again costs little; that a block lasts says nothing of the rate it will allow.
    const half = Math.max(slowest, (before.rate ?? 1) / 2)
    return backedOff({ ...lowered, ...at(half, nowMs), rateAfterRest: before.rateAfterRest ?? half }, nowMs)
  }
  if (before.rate === null) return { ...lowered, ...at(accepted * safePart, nowMs) }
  const { rate, safeRate } = before
  // Far more than this rate gives: what was refused went before it was in force.
  if (accepted > 2 * rate + settledMessages) return { ...before, lowerAtMs: nowMs + settleMs }
  const isDare = before.rateCeiling === null && before.step === firstStep * stepGrowth
  const isHeld = safeRate !== null && safeRate >= rate
  const messagesBeforeDare = isDare || isHeld ? Math.min(mostBeforeDare, before.messagesBeforeDare * 2) : before.messagesBeforeDare
  if (safeRate !== null && safeRate < rate)
    return { ...lowered, rate: safeRate, rateCeiling: rate, raiseRateAtMs: nowMs + stepMs(safeRate), messagesBeforeDare }
  if (accepted >= rate * (isHeld ? fallenPart : fallenAgainPart))
    return { ...lowered, ...at(rate * chancePart, nowMs), rateCeiling: rate, messagesBeforeDare }
  const seen = Math.min(rate, Math.max(accepted, rate / 2))
  return { ...lowered, ...at(Math.max(slowest, seen * safePart), nowMs), messagesBeforeDare: leastBeforeDare }
}

/** A rate of which nothing is known yet. */
const at = (rate: number, nowMs: number) => ({ rate, safeRate: null, rateCeiling: null, raiseRateAtMs: nowMs + 2 * stepMs(rate) })

const stepMs = (rate: number, messages = messagesOfStep) => Math.min(longestWaitMs, Math.max(leastStepMs, (messages / rate) * 1000))

function backedOff(before: Learned, nowMs: number): Learned {
  if (before.backoffUntilMs !== null && nowMs < before.backoffUntilMs) return before
  const backoffMs = Math.min(longestBackoffMs, Math.max(firstBackoffMs, before.backoffMs * 2))
  return { ...before, backoffMs, backoffUntilMs: nowMs + backoffMs }
}

/** All was taken for a while, `accepted` messages in the last second: a rate that is not in use is not raised. */
export function afterSuccess(before: Learned, bounds: Bounds, accepted: number, nowMs: number): Learned {
  const { rateAfterRest } = before
  const rested = rateAfterRest === null ? before : { ...before, ...at(rateAfterRest, nowMs), rateAfterRest: null }
  const after = raisedConnections({ ...rested, backoffUntilMs: null, backoffMs: 0 }, bounds, nowMs)
  const isInUse = after.rate === null || accepted >= Math.floor(after.rate * usedPart)
  return isInUse ? raisedRate(after, bounds, nowMs) : after
}

function raisedConnections(before: Learned, bounds: Bounds, nowMs: number): Learned {
  if (before.connections >= bounds.connections || nowMs < before.raiseConnectionsAtMs) return before
  const connections = Math.min(bounds.connections, before.connections + 1)
  const ceiling = before.connectionCeiling ?? 0
  // The one dared before has stood: the limit was lifted.
  const connectionWaitMs = before.connections >= ceiling ? firstConnectionWaitMs : before.connectionWaitMs
  return {
    ...before,
    connections,
    connectionCeiling: Math.max(ceiling, connections),
    connectionWaitMs,
    raiseConnectionsAtMs: nowMs + (connections < ceiling ? leastStepMs : connectionWaitMs),
  }
}

function raisedRate(before: Learned, bounds: Bounds, nowMs: number): Learned {
  const { rate, rateCeiling } = before
  if (rate === null || nowMs < before.raiseRateAtMs || rate === bounds.rate) return before
  const raised = { ...before, safeRate: rate, raiseRateAtMs: nowMs + stepMs(rate) }
  if (rateCeiling !== null && rateCeiling - rate > rate * nearPart) return { ...raised, rate: (rate + rateCeiling) / 2 }
  if (rateCeiling !== null) {
    // As near as it gets.
    const waitMs = Math.max(shortestWaitMs, stepMs(rate, before.messagesBeforeDare))
    return { ...raised, rateCeiling: null, step: firstStep, raiseRateAtMs: nowMs + waitMs }
  }
  const next = rate * (1 + before.step)
  if (bounds.rate === null && next > fastEnough) return { ...raised, rate: null, safeRate: null, step: firstStep }
  return {
    ...raised,
    rate: Math.min(bounds.rate ?? next, next),
    step: Math.min(largestStep, before.step * stepGrowth),
    raiseRateAtMs: nowMs + stepMs(next, before.step === firstStep ? messagesOfDare : messagesOfStep),
    messagesBeforeDare: before.step >= farStep ? leastBeforeDare : before.messagesBeforeDare,
  }
}
