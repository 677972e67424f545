/** The wait of a job that no egress path of its pool accepts now. Pure. */

/** Upper limit of a postponement, because an operator may remove its cause. */
export const maxPostponeMs = 900_000
/** A shorter backoff is waited out in the queue. */
export const minPostponeMs = 1500
/** Delay when this machine has no address of the pool; it may get one. */
const addresslessMs = 60_000

/** `postpone`: the job waits in the spool. `suspend`: it is requeued, and its lane is not claimed for `minPostponeMs`. */
export type Wait = { kind: 'postpone'; forMs: number; reason: string } | { kind: 'suspend' }

export interface WaitFacts {
  pool: string
  provider: string
  /** Milliseconds until the site that refused the job reconsiders it. */
  retryMs: number
  /** For each path of the pool on this machine: its backoff in ms, and the reason of a warm-up ceiling that it reached. */
  paths: readonly { backoffMs: number; warmUpReason: string | undefined }[]
}

/** Decides how a job waits that no path of its pool accepts now. Pure. */
export function decideWait({ pool, provider, retryMs, paths }: WaitFacts): Wait {
  if (paths.length === 0)
    return { kind: 'postpone', forMs: addresslessMs, reason: `no address of pool ${pool} is on the machine that has this mail` }
  const forMs = Math.min(retryMs, ...paths.map(({ backoffMs }) => backoffMs))
  if (forMs <= minPostponeMs) return { kind: 'suspend' }
  const warmUpReason = paths.find((path) => path.warmUpReason !== undefined)?.warmUpReason
  return {
    kind: 'postpone',
    forMs: Math.min(forMs, maxPostponeMs),
    reason: warmUpReason ?? `${provider} accepts no more mail from pool ${pool} at present`,
  }
}
