/**
 * Adapts the limits of a provider to its refusals: down at once to the accepted rate, up again in small steps, and more slowly the more
 * often the same limit was met. Pure: takes the previous state, the event and the time; returns the next state.
 */

/**
 * Stored as JSON in the provider's row; `storedLimits` reads it. Times are clock times in ms. Another process may have stored them by a clock
 * that was ahead, so a time further away than its longest duration counts as past.
 */
export interface AdaptiveLimits {
  connections: ConnectionLimit
  rate: RateLimit
  backoff: Backoff
}

export interface ConnectionLimit {
  /** Maximum open at once, over all processes. */
  max: number
  /** Number of connections at which some were refused; null: not known. */
  ceiling: number | null
  /** Not raised before this time. */
  raiseAtMs: number
  /** Wait before the ceiling is probed. */
  probeWaitMs: number
}

export interface RateLimit {
  /** Messages a second, over all processes; null: unlimited. */
  perSecond: number | null
  /** Highest rate known to be accepted without a refusal; null: not known. */
  floor: number | null
  /** A rate at which some messages were refused; null: not known. */
  ceiling: number | null
  /** Not raised before this time. */
  raiseAtMs: number
  /** Size of the next step above the known range, as a fraction of the rate. */
  step: number
  /** Number of messages at an accepted rate before a higher one is probed. */
  messagesBeforeProbe: number
  /** Not lowered again before this time: refusals until then concern messages already on their way. */
  lowerAtMs: number
  /** While the provider accepts no mail: half the previous rate, used when sending continues; null: the provider accepts mail. */
  afterBackoff: number | null
}

export interface Backoff {
  /** Sending is suspended until then; null: not suspended. */
  untilMs: number | null
  durationMs: number
}

/** The limits of a provider set by an operator or by the shipped rules. */
export interface ProviderLimits {
  connections: number
  /** Messages a second; null: unlimited. */
  rate: number | null
}

/** Units: ms, messages, messages a second, and `part` for a fraction of a rate. */
const limits = {
  connectionProbe: { firstWaitMs: 30_000, maxWaitMs: 3_600_000 },
  backoff: { firstMs: 30_000, maxMs: 1_800_000 },
  /** A failed probe gets one or two messages refused: less than 1% of the messages before it. */
  rateProbe: { minWaitMs: 10_000, minMessagesBefore: 300, maxMessagesBefore: 1200 },
  /** Each step must take effect before the next: slightly above the ceiling, only one message in many is refused. */
  settle: { minMs: 2_000, maxMs: 600_000, messages: 40, messagesOfProbe: 100 },
  /** After a step of `farPart` the old ceiling no longer applies. */
  step: { firstPart: 0.05, growth: 1.5, farPart: 0.2, maxPart: 0.5 },
  /** Fraction of the rate that was accepted while some messages were refused. */
  safePart: 0.95,
  /** Fraction of a proven rate after a single refusal: receivers count in their own seconds, and messages arrive unevenly. */
  chancePart: 0.96,
  /** If less than this fraction of a proven rate is accepted, the ceiling has fallen; it is not chance. */
  fallenPart: 0.5,
  /** The same for a rate that was lowered a moment ago. */
  fallenAgainPart: 0.8,
  /** A ceiling closer than this is not worth another refusal. Larger than the first step and than the margin for chance. */
  nearPart: 0.06,
  /** A rate used less than this is not raised. */
  usedPart: 0.7,
  slowestPerSecond: 1 / 60,
  /** Above this rate, no limit is kept. */
  fastestPerSecond: 2000,
  /** Refusals this long after a lowering concern messages already on their way. */
  lowerAgainMs: 1500,
  /** At low rates, one second may see this many messages above its share. */
  unevenMessages: 3,
} as const

/** The step of a rate that was probed a moment ago. */
const stepAfterProbe = limits.step.firstPart * limits.step.growth

/** Clocks of two machines may differ by this much. */
export const clockToleranceMs = 300_000

/** Whether the time, set at most `longestMs` ahead, is still to come. */
const isAhead = (atMs: number, longestMs: number, nowMs: number) => nowMs < atMs && atMs - nowMs <= longestMs + clockToleranceMs

/** Ms until sending continues; 0: it is not suspended. */
export const backoffLeftMs = ({ untilMs, durationMs }: Backoff, nowMs: number): number =>
  untilMs !== null && isAhead(untilMs, durationMs, nowMs) ? untilMs - nowMs : 0

const noBackoff: Backoff = { untilMs: null, durationMs: 0 }

/** The limits of a provider without any refusal yet. */
export const initialLimits = (bounds: ProviderLimits): AdaptiveLimits => ({
  connections: { max: bounds.connections, ceiling: null, raiseAtMs: 0, probeWaitMs: limits.connectionProbe.firstWaitMs },
  rate: {
    perSecond: bounds.rate,
    floor: null,
    ceiling: null,
    raiseAtMs: 0,
    step: limits.step.firstPart,
    messagesBeforeProbe: limits.rateProbe.minMessagesBefore,
    lowerAtMs: 0,
    afterBackoff: null,
  },
  backoff: noBackoff,
})

/** A connection was refused while `otherConnections` others were open, over all processes. */
export function afterRefusedConnection(before: AdaptiveLimits, otherConnections: number, nowMs: number): AdaptiveLimits {
  const { connections, backoff } = before
  if (otherConnections < 1) return { ...before, connections: { ...connections, max: 1 }, backoff: lengthened(backoff, nowMs) }
  return { ...before, connections: loweredConnections(connections, otherConnections, nowMs) }
}

/** Messages were refused for their rate; `accepted` were accepted in the second before, as far as counted. */
export function afterThrottle(before: AdaptiveLimits, accepted: number, nowMs: number): AdaptiveLimits {
  const { rate, backoff } = before
  if (isAhead(rate.lowerAtMs, limits.lowerAgainMs, nowMs)) return before
  if (accepted > 0) return { ...before, rate: loweredRate(rate, accepted, nowMs) }
  // Halved each time, so that retries cost little; the duration of a block does not indicate the rate allowed afterwards.
  const half = Math.max(limits.slowestPerSecond, (rate.perSecond ?? 1) / 2)
  return {
    ...before,
    rate: { ...unprovenRate(justLowered(rate, nowMs), half, nowMs), afterBackoff: rate.afterBackoff ?? half },
    backoff: lengthened(backoff, nowMs),
  }
}

/**
 * The server ended its connections because it shuts down, and accepted `accepted` messages in the second before. It did not judge the rate,
 * which stays: a relay that restarts would otherwise get its mail at the lowest rate afterwards.
 */
export const afterShutdown = (before: AdaptiveLimits, accepted: number, nowMs: number): AdaptiveLimits =>
  accepted > 0 ? before : { ...before, backoff: lengthened(before.backoff, nowMs) }

/** All messages were accepted for a while, `accepted` of them in the last second. An unused rate is not raised. */
export function afterSuccess(before: AdaptiveLimits, bounds: ProviderLimits, accepted: number, nowMs: number): AdaptiveLimits {
  const { afterBackoff } = before.rate
  const rate = afterBackoff === null ? before.rate : { ...unprovenRate(before.rate, afterBackoff, nowMs), afterBackoff: null }
  const isInUse = rate.perSecond === null || accepted >= Math.floor(rate.perSecond * limits.usedPart)
  return {
    connections: raisedConnections(before.connections, bounds.connections, nowMs),
    rate: isInUse ? raisedRate(rate, bounds.rate, nowMs) : rate,
    backoff: noBackoff,
  }
}

/** The limits read from the provider's row; undefined if they were not stored or have another form. */
export function storedLimits(stored: unknown): AdaptiveLimits | undefined {
  const form = initialLimits({ connections: 1, rate: null })
  return hasForm(stored, form) ? stored : undefined
}

/** `value` has the fields of `form`: numbers, numbers or null where `form` has null, and objects of the same form. */
function hasForm<Form extends object>(value: unknown, form: Form): value is Form {
  if (typeof value !== 'object' || value === null) return false
  const fields = new Map(Object.entries(value))
  return Object.entries(form).every(([name, expected]) => {
    const field = fields.get(name)
    if (typeof expected === 'number') return typeof field === 'number'
    return expected === null ? field === null || typeof field === 'number' : hasForm(field, expected)
  })
}

function loweredConnections(before: ConnectionLimit, otherConnections: number, nowMs: number): ConnectionLimit {
  const { max: allowed, ceiling } = before
  if (otherConnections >= allowed && ceiling !== null) return before
  // Connections open at that time may have ended before they were counted, so the known limit outweighs a single count.
  const isProbe = ceiling !== null && allowed >= ceiling
  const max = isProbe ? allowed - 1 : ceiling === null ? otherConnections : Math.max(otherConnections, Math.ceil(allowed / 2))
  const isSameCeiling = ceiling !== null && max + 1 >= ceiling
  const { firstWaitMs, maxWaitMs } = limits.connectionProbe
  const probeWaitMs = isSameCeiling ? Math.min(maxWaitMs, before.probeWaitMs * 2) : firstWaitMs
  return { max, ceiling: max + 1, probeWaitMs, raiseAtMs: nowMs + probeWaitMs }
}

function raisedConnections(before: ConnectionLimit, bound: number, nowMs: number): ConnectionLimit {
  if (before.max >= bound || isAhead(before.raiseAtMs, limits.connectionProbe.maxWaitMs, nowMs)) return before
  const max = Math.min(bound, before.max + 1)
  const ceiling = before.ceiling ?? 0
  // The probed number of connections held: the limit was lifted.
  const probeWaitMs = before.max >= ceiling ? limits.connectionProbe.firstWaitMs : before.probeWaitMs
  const waitMs = max < ceiling ? limits.settle.minMs : probeWaitMs
  return { max, ceiling: Math.max(ceiling, max), probeWaitMs, raiseAtMs: nowMs + waitMs }
}

/** The rate after a throttle during which `accepted` messages a second were accepted, one at least. */
function loweredRate(before: RateLimit, accepted: number, nowMs: number): RateLimit {
  const { perSecond: rate, floor, step } = before
  const lowered = justLowered(before, nowMs)
  if (rate === null) return unprovenRate(lowered, accepted * limits.safePart, nowMs)
  // Far more than this rate permits: the refused messages were sent before the rate applied.
  if (accepted > 2 * rate + limits.unevenMessages) return { ...before, lowerAtMs: lowered.lowerAtMs }
  const isProbe = before.ceiling === null && step === stepAfterProbe
  const isProven = floor !== null && floor >= rate
  const { minMessagesBefore, maxMessagesBefore } = limits.rateProbe
  const messagesBeforeProbe = isProbe || isProven ? Math.min(maxMessagesBefore, before.messagesBeforeProbe * 2) : before.messagesBeforeProbe
  if (floor !== null && floor < rate)
    return { ...lowered, perSecond: floor, ceiling: rate, raiseAtMs: nowMs + settleMs(floor), messagesBeforeProbe }
  if (accepted >= rate * (isProven ? limits.fallenPart : limits.fallenAgainPart))
    return { ...unprovenRate(lowered, rate * limits.chancePart, nowMs), ceiling: rate, messagesBeforeProbe }
  const seen = Math.min(rate, Math.max(accepted, rate / 2))
  const fallen = Math.max(limits.slowestPerSecond, seen * limits.safePart)
  return { ...unprovenRate(lowered, fallen, nowMs), messagesBeforeProbe: minMessagesBefore }
}

function raisedRate(before: RateLimit, bound: number | null, nowMs: number): RateLimit {
  const { perSecond: rate, ceiling, step, messagesBeforeProbe } = before
  if (rate === null || isAhead(before.raiseAtMs, 2 * limits.settle.maxMs, nowMs) || rate === bound) return before
  const raised = { ...before, floor: rate, raiseAtMs: nowMs + settleMs(rate) }
  if (ceiling !== null && ceiling - rate > rate * limits.nearPart) return { ...raised, perSecond: (rate + ceiling) / 2 }
  const { firstPart, growth, farPart, maxPart } = limits.step
  if (ceiling !== null) {
    // The rate is as close to the ceiling as it gets.
    const waitMs = Math.max(limits.rateProbe.minWaitMs, settleMs(rate, messagesBeforeProbe))
    return { ...raised, ceiling: null, step: firstPart, raiseAtMs: nowMs + waitMs }
  }
  const next = rate * (1 + step)
  if (bound === null && next > limits.fastestPerSecond) return { ...raised, perSecond: null, floor: null, step: firstPart }
  return {
    ...raised,
    perSecond: Math.min(bound ?? next, next),
    step: Math.min(maxPart, step * growth),
    raiseAtMs: nowMs + settleMs(next, step === firstPart ? limits.settle.messagesOfProbe : limits.settle.messages),
    messagesBeforeProbe: step >= farPart ? limits.rateProbe.minMessagesBefore : messagesBeforeProbe,
  }
}

const justLowered = (before: RateLimit, nowMs: number): RateLimit => ({
  ...before,
  step: 2 * limits.step.firstPart,
  lowerAtMs: nowMs + limits.lowerAgainMs,
  afterBackoff: null,
})

/** The rate `perSecond`, of which it is not known yet whether the provider accepts it. */
const unprovenRate = (before: RateLimit, perSecond: number, nowMs: number): RateLimit => ({
  ...before,
  perSecond,
  floor: null,
  ceiling: null,
  raiseAtMs: nowMs + 2 * settleMs(perSecond),
})

/** The time in which the provider shows whether it accepts this rate: that of so many messages. */
const settleMs = (perSecond: number, messages: number = limits.settle.messages) =>
  Math.min(limits.settle.maxMs, Math.max(limits.settle.minMs, (messages / perSecond) * 1000))

/** A backoff twice as long as the last one, unless that has not ended. */
function lengthened(before: Backoff, nowMs: number): Backoff {
  if (backoffLeftMs(before, nowMs) > 0) return before
  const durationMs = Math.min(limits.backoff.maxMs, Math.max(limits.backoff.firstMs, before.durationMs * 2))
  return { durationMs, untilMs: nowMs + durationMs }
}
