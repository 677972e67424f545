/**
 * The health of a transport, from the results of the mail that took it. Pure: the caller passes the time. A transport that is down is
 * tried with one job at a time, at growing intervals, and is used again after the first success.
 */

/** `accepted`: it works. `refused`: it refused a message, perhaps all. `failed`: no connection, TLS or login. */
export type TransportSignal = 'accepted' | 'refused' | 'failed'

export type TransportHealth =
  /** `refusals`: in a row; `sinceMs`: the first of them. */
  | { kind: 'up'; refusals: number; sinceMs: number }
  | { kind: 'down'; untilMs: number; downForMs: number }
  /** One job is on its way; after `untilMs` it counts as lost, and another one may try. */
  | { kind: 'probing'; untilMs: number; downForMs: number }

export const healthyTransport: TransportHealth = { kind: 'up', refusals: 0, sinceMs: 0 }

/** Temporary refusals or blocks in a row, over any messages, after which the transport counts as down. */
export const maxRefusals = 10
/** As few are enough if they last as long as the first interval: limits that adapt to refusals leave only a few attempts a minute. */
const lastingRefusals = 3
export const minDownMs = 30_000
export const maxDownMs = 600_000
/** Longer than a transaction usually takes, with all its time limits met. */
const probeMs = 60_000

/**
 * Whether the next job may take the transport, and the health after that decision. `mayProbe`: it is the job's first attempt. An email that
 * failed there must not be the one that tries it again, or where mail is rare it would never take another transport.
 */
export function decideUse(health: TransportHealth, nowMs: number, mayProbe = true): { isUsable: boolean; health: TransportHealth } {
  if (health.kind === 'up') return { isUsable: true, health }
  if (nowMs < health.untilMs || !mayProbe) return { isUsable: false, health }
  return { isUsable: true, health: { kind: 'probing', untilMs: nowMs + probeMs, downForMs: health.downForMs } }
}

/** The health after a result; `firstDownMs`: the first interval. While it is down, results of jobs sent before do not prolong that time. */
export function healthAfter(health: TransportHealth, signal: TransportSignal, nowMs: number, firstDownMs = minDownMs): TransportHealth {
  const down = (downForMs: number): TransportHealth => ({ kind: 'down', untilMs: nowMs + downForMs, downForMs })
  if (signal === 'accepted') return healthyTransport
  switch (health.kind) {
    case 'up': {
      const refusals = health.refusals + 1
      const sinceMs = health.refusals === 0 ? nowMs : health.sinceMs
      const isLasting = refusals >= lastingRefusals && nowMs - sinceMs >= firstDownMs
      return signal === 'failed' || refusals >= maxRefusals || isLasting ? down(firstDownMs) : { kind: 'up', refusals, sinceMs }
    }
    case 'probing':
      return down(Math.min(maxDownMs, health.downForMs * 2))
    case 'down':
      return health
  }
}
