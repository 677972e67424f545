/** Memory of requests that read large contents, shared by all of a process so that one tenant cannot use all of it. */
import { type Clock, Refusal } from '#base'
import { type BodyMemory, ClientLeft, openBodyMemory } from './body-memory.ts'
import type { CallerConnection } from './caller-connection.ts'
import { callerGone } from './tenant-turns.ts'

/** Shorter than the time limit of a request. */
const waitMs = 20_000
const retryAfterSeconds = 5
/** For sending an answer, and a millisecond more for each 512 octets of its memory. */
const sendMs = 60_000
const sentOctetsPerMs = 512
/** Smaller answers take no memory worth counting: those with contents that are read at once. */
const smallOctets = 3 * 262_144

export interface LargeAnswer {
  tenantId: string
  /** Its own octets, and those that it is made of. */
  octets: number
  connection: CallerConnection
}

const capacityOctets = 268_435_456

export class AnswerMemory {
  readonly #clock: Clock
  readonly #memory: BodyMemory = openBodyMemory(capacityOctets)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * The result of `work`, which becomes the answer. If it is large, `work` begins when there is memory, which is kept until the answer is
   * sent, or without a connection until the work is done. The connection is closed if sending takes too long. Refuses `rate_limit_exceeded`
   * after 20 seconds of waiting.
   */
  async use<Result>({ tenantId, octets, connection }: LargeAnswer, work: () => Promise<Result>): Promise<Result> {
    if (octets <= smallOctets) return work()
    const gone = connection.gone?.()
    const release = await this.#reserve(tenantId, octets, gone)
    try {
      return await work()
    } finally {
      if (!gone || gone.aborted) release()
      else {
        // Whole seconds, so that Node has few lists of timers.
        const withinMs = Math.ceil((sendMs + octets / sentOctetsPerMs) / 1000) * 1000
        const cancel = this.#clock.after(withinMs, () => connection.closeConnection?.())
        gone.addEventListener(
          'abort',
          () => {
            cancel()
            release()
          },
          { once: true },
        )
      }
    }
  }

  /** As `use`, for work whose answer is small: the memory is returned when it is done. */
  async during<Result>({ tenantId, octets, connection }: LargeAnswer, work: () => Promise<Result>): Promise<Result> {
    if (octets <= smallOctets) return work()
    const release = await this.#reserve(tenantId, octets, connection.gone?.())
    try {
      return await work()
    } finally {
      release()
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
    message: 'other requests use the memory for large contents: repeat this one later',
    retryAfterSeconds,
  })
