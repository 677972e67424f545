/** Memory of large answers, shared by all requests of a process so that one tenant cannot use all of it. */
import { type Clock, Refusal } from '#base'
import { type BodyMemory, ClientLeft, openBodyMemory } from './body-memory.ts'
import { callerGone } from './tenant-turns.ts'

/** Shorter than the time limit of a request. */
const waitMs = 20_000
const retryAfterSeconds = 5
/** Smaller answers take no memory worth counting: those with contents that are read at once. */
const smallOctets = 3 * 262_144

export interface LargeAnswer {
  tenantId: string
  /** Its own octets, and those that it is made of. */
  octets: number
  /** Aborts when the request is answered or its connection ends; undefined: no connection waits for the answer. */
  gone: AbortSignal | undefined
}

const capacityOctets = 268_435_456

export class AnswerMemory {
  readonly #clock: Clock
  readonly #memory: BodyMemory = openBodyMemory(capacityOctets)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * The result of `work`. A large answer begins it when there is memory, which it keeps until `gone` aborts, or without `gone` until the work is
   * done. Refuses `rate_limit_exceeded` after 20 seconds of waiting.
   */
  async use<Result>({ tenantId, octets, gone }: LargeAnswer, work: () => Promise<Result>): Promise<Result> {
    if (octets <= smallOctets) return work()
    const release = await this.#reserve(tenantId, octets, gone)
    try {
      return await work()
    } finally {
      if (!gone || gone.aborted) release()
      else gone.addEventListener('abort', release, { once: true })
    }
  }

  /** Resolves with the function that returns the memory. */
  async #reserve(tenantId: string, octets: number, gone: AbortSignal | undefined): Promise<() => void> {
    if (gone?.aborted) throw callerGone()
    const late = new AbortController()
    const cancel = this.#clock.after(waitMs, () => late.abort())
    try {
      // One answer of a tenant that reads it slowly leaves the other half to others.
      return await this.#memory.reserve(
        tenantId,
        Math.min(octets, capacityOctets / 2),
        gone ? AbortSignal.any([gone, late.signal]) : late.signal,
      )
    } catch (error) {
      if (!(error instanceof ClientLeft)) throw error
      throw late.signal.aborted ? tooMany() : callerGone()
    } finally {
      cancel()
    }
  }
}

const tooMany = () =>
  new Refusal('rate_limit_exceeded', {
    message: 'other large answers use the memory for them: repeat the request later',
    retryAfterSeconds,
  })
