/**
 * Runs work that needs much memory one piece at a time. Tenants take turns: many such requests of one tenant delay that of another by one
 * piece. The work of a request that is already answered, or whose connection has ended, never begins.
 */
import type { ServerResponse } from 'node:http'
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

const retryAfterSeconds = 5

/** `maxWaiting`: requests of one tenant. */
export const openTenantTurns = (maxWaiting: number): TenantTurns => new QueuedTurns(maxWaiting)

class QueuedTurns implements TenantTurns {
  readonly #maxWaiting: number
  /** Keyed by tenant, the next in turn first; no queue is empty. */
  readonly #queues = new Map<string, Set<() => void>>()
  #isBusy = false

  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting
  }

  async run<Result>(taker: TurnTaker, work: () => Promise<Result>): Promise<Result> {
    await this.#turn(taker)
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  #turn({ tenantId, gone }: TurnTaker): Promise<void> {
    const whose = tenantId ?? ''
    return new Promise((resolve, reject) => {
      if (gone?.aborted) return reject(callerGone())
      if (!this.#isBusy) {
        this.#isBusy = true
        return resolve()
      }
      const queue = this.#queues.get(whose) ?? new Set()
      if (queue.size >= this.#maxWaiting) return reject(this.#tooMany())
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

  /** The turn passes directly to the next request, so that a newcomer cannot take it. */
  #next(): void {
    const [first] = this.#queues
    this.#isBusy = first !== undefined
    if (!first) return
    const [whose, queue] = first
    const [begin] = queue
    if (!begin) return
    queue.delete(begin)
    // Moves to the end of the turn order.
    this.#queues.delete(whose)
    if (queue.size > 0) this.#queues.set(whose, queue)
    begin()
  }

  #tooMany = () =>
    new Refusal('rate_limit_exceeded', {
      message: `${this.#maxWaiting} large requests of this tenant wait already: repeat this one when they are answered`,
      retryAfterSeconds,
    })
}

/** For the request log: the caller does not read it. */
export const callerGone = (): Refusal =>
  new Refusal('rate_limit_exceeded', { message: 'the connection ended while the request waited for its turn', retryAfterSeconds })

/** Aborts when the request is answered or its connection ends. */
export function endOf(response: ServerResponse): AbortSignal {
  const ended = new AbortController()
  if (response.closed) ended.abort()
  else response.once('close', () => ended.abort())
  return ended.signal
}
