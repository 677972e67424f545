/**
 * The health of a transport, from the results of the mail that took it. Pure: the caller passes the time. A transport that is down is
 * tried with one job at a time, at growing intervals, and is used again after the first success.
 */

/** `accepted`: it works. `refused`: it refused a message, perhaps all. `failed`: no connection, TLS or login. */
export type TransportSignal = 'accepted' | 'refused' | 'failed'

export type TransportHealth =
  | { kind: 'up'; refusals: number }
  | { kind: 'down'; untilMs: number; downForMs: number }
  /** One job is on its way; after `untilMs` it counts as lost, and another one may try. */
  | { kind: 'probing'; untilMs: number; downForMs: number }

export const healthyTransport: TransportHealth = { kind: 'up', refusals: 0 }

/** Temporary refusals or blocks in a row, over any messages, after which the transport counts as down. */
export const maxRefusals = 10
export const minDownMs = 30_000
export const maxDownMs = 600_000
/** Longer than a transaction usually takes, with all its time limits met. */
const probeMs = 60_000

/** Whether the next job may take the transport, and the health after that decision. */
export function decideUse(health: TransportHealth, nowMs: number): { isUsable: boolean; health: TransportHealth } {
  if (health.kind === 'up') return { isUsable: true, health }
  if (nowMs < health.untilMs) return { isUsable: false, health }
  return { isUsable: true, health: { kind: 'probing', untilMs: nowMs + probeMs, downForMs: health.downForMs } }
}

/** The health after a result; `firstDownMs`: the first interval. While it is down, results of jobs sent before do not prolong that time. */
export function healthAfter(health: TransportHealth, signal: TransportSignal, nowMs: number, firstDownMs = minDownMs): TransportHealth {
  const down = (downForMs: number): TransportHealth => ({ kind: 'down', untilMs: nowMs + downForMs, downForMs })
  if (signal === 'accepted') return healthyTransport
  switch (health.kind) {
    case 'up': {
      const refusals = health.refusals + 1
      return signal === 'failed' || refusals >= maxRefusals ? down(firstDownMs) : { kind: 'up', refusals }
    }
    case 'probing':
      return down(Math.min(maxDownMs, health.downForMs * 2))
    case 'down':
      return health
  }
}
