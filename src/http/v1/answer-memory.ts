/** Memory of requests that read large contents, shared by all of a process so that one tenant cannot use all of it. */
import { type Clock, Refusal } from '#base'
import { type BodyMemory, ClientLeft, openBodyMemory } from './body-memory.ts'
import { type CallerConnection, releaseWhenGone } from './caller-connection.ts'
import { callerGone } from './tenant-turns.ts'

/** Shorter than the time limit of a request. */
const waitMs = 20_000
/** Smaller contents are read at once, and take no memory worth counting. */
const smallOctets = 262_144
const retryAfterSeconds = 5
/** For sending an answer, and a millisecond more for each 512 octets of its memory. */
const sendMs = 60_000
const sentOctetsPerMs = 512
const maxSendMs = 180_000

export interface LargeContent {
  tenantId: string
  octets: number
  /** Octets of memory for each octet of the content. */
  memoryFactor: number
  /** undefined: no connection waits for the answer. */
  connection: CallerConnection | undefined
}

const capacityOctets = 268_435_456

export class AnswerMemory {
  readonly #clock: Clock
  readonly #memory: BodyMemory = openBodyMemory(capacityOctets)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * The result of `work`, which becomes the answer. If the content is large, `work` begins when there is memory, which is kept until the
   * answer is sent, or without a connection until the work is done. The connection is closed if sending takes too long. Refuses
   * `rate_limit_exceeded` after 20 seconds of waiting.
   */
  async use<Result>(content: LargeContent, work: () => Promise<Result>): Promise<Result> {
    const { connection, octets, memoryFactor } = content
    if (octets <= smallOctets) return work()
    const release = await this.#reserve(content)
    try {
      const result = await work()
      // The answer would be made without memory.
      if (connection?.gone.aborted) throw callerGone()
      return result
    } finally {
      // Whole seconds, so that Node has few lists of timers.
      const withinMs = Math.min(maxSendMs, sendMs + Math.ceil((octets * memoryFactor) / sentOctetsPerMs / 1000) * 1000)
      if (connection) releaseWhenGone(connection, { clock: this.#clock, withinMs, release })
      else release()
    }
  }

  /** As `use`, for work whose answer is small: the memory is returned when it is done. */
  async during<Result>(content: LargeContent, work: () => Promise<Result>): Promise<Result> {
    if (content.octets <= smallOctets) return work()
    const release = await this.#reserve(content)
    try {
      return await work()
    } finally {
      release()
    }
  }

  /** Resolves with the function that returns the memory. */
  async #reserve({ tenantId, octets, memoryFactor, connection }: LargeContent): Promise<() => void> {
    const late = new AbortController()
    const cancel = this.#clock.after(waitMs, () => late.abort())
    const gone = connection ? AbortSignal.any([connection.gone, late.signal]) : late.signal
    try {
      // One answer of a tenant that reads it slowly leaves the other half to others.
      return await this.#memory.reserve(tenantId, Math.min(octets * memoryFactor, capacityOctets / 2), gone)
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
