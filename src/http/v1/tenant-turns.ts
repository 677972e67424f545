/**
 * Bounds work that is heavy, in memory or on the database, by letting little of it run at once. Tenants take turns: many such requests of
 * one tenant delay that of another by one piece. The work of a request that is already answered, or whose connection has ended, never
 * begins.
 */
import { Refusal } from '#base'

export interface TurnTaker {
  /** null: the organisation, which takes turns as one more tenant. */
  tenantId: string | null
  /** Aborts when the request is answered or its connection ends; undefined: never. */
  gone: AbortSignal | undefined
}

export interface TenantTurns {
  /** Refuses `rate_limit_exceeded` if too many requests of the tenant wait. Throws `callerGone()` if `gone` aborts before the turn. */
  run<Result>(taker: TurnTaker, work: () => Promise<Result>): Promise<Result>
}

export interface TurnLimits {
  /** Pieces of work that run at once, and those of one tenant among them. */
  atOnce: number
  atOnceOfTenant: number
  /** Requests of one tenant. */
  maxWaiting: number
}

const retryAfterSeconds = 5

export const openTenantTurns = (limits: TurnLimits): TenantTurns => new QueuedTurns(limits)

class QueuedTurns implements TenantTurns {
  readonly #limits: TurnLimits
  /** Keyed by tenant, the next in turn first; no queue is empty. */
  readonly #queues = new Map<string, Set<() => void>>()
  /** By tenant, without zeros. */
  readonly #running = new Map<string, number>()
  #total = 0

  constructor(limits: TurnLimits) {
    this.#limits = limits
  }

  async run<Result>(taker: TurnTaker, work: () => Promise<Result>): Promise<Result> {
    await this.#turn(taker)
    try {
      return await work()
    } finally {
      this.#end(taker.tenantId ?? '')
    }
  }

  #turn({ tenantId, gone }: TurnTaker): Promise<void> {
    const whose = tenantId ?? ''
    return new Promise((resolve, reject) => {
      if (gone?.aborted) return reject(callerGone())
      const queue = this.#queues.get(whose) ?? new Set()
      if (queue.size === 0 && this.#mayBegin(whose)) {
        this.#begin(whose)
        return resolve()
      }
      if (queue.size >= this.#limits.maxWaiting) return reject(this.#tooMany())
      const begin = () => {
        gone?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        queue.delete(begin)
        if (queue.size === 0) this.#queues.delete(whose)
        reject(callerGone())
      }
      this.#queues.set(whose, queue.add(begin))
      gone?.addEventListener('abort', leave, { once: true })
    })
  }

  #mayBegin(whose: string): boolean {
    return this.#total < this.#limits.atOnce && (this.#running.get(whose) ?? 0) < this.#limits.atOnceOfTenant
  }

  #begin(whose: string): void {
    this.#total++
    this.#running.set(whose, (this.#running.get(whose) ?? 0) + 1)
  }

  /** The turn passes directly to the next request, so that a newcomer cannot take it. */
  #end(ended: string): void {
    this.#total--
    const left = (this.#running.get(ended) ?? 0) - 1
    if (left > 0) this.#running.set(ended, left)
    else this.#running.delete(ended)
    for (const [whose, queue] of this.#queues) {
      const [begin] = queue
      if (!begin || !this.#mayBegin(whose)) continue
      queue.delete(begin)
      // Moves to the end of the turn order.
      this.#queues.delete(whose)
      if (queue.size > 0) this.#queues.set(whose, queue)
      this.#begin(whose)
      return begin()
    }
  }

  #tooMany = () =>
    new Refusal('rate_limit_exceeded', {
      message: `${this.#limits.maxWaiting} such requests of this tenant wait already: repeat this one when they are answered`,
      retryAfterSeconds,
    })
}

/** For the request log: the caller does not read it. */
export const callerGone = (): Refusal =>
  new Refusal('rate_limit_exceeded', { message: 'the connection ended while the request waited for its turn', retryAfterSeconds })
