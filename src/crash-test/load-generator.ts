/**
 * Load generator: several clients send requests one after the other, some with an idempotency key, some in batches. Responses are recorded.
 * An unanswered request is repeated under its key until it is answered; without a key it is never repeated.
 */
import { createWriteStream, type WriteStream } from 'node:fs'
import { type Clock, pause } from '#base'
import type { SendRequest } from './ledger.ts'
import { type NewRequest, RequestMaker } from './load-requests.ts'
import type { SeededRandom } from './seeded-random.ts'

const clients = 4
const pauseBetweenMs = 100
const pauseAfterFailureMs = 150
const answerWithinMs = 20_000
/** Pauses sending while this many recipients are in flight. */
const maxInFlight = 300
const burstBatches = 4
const burstBatchSize = 60

export interface LoadDeps {
  clock: Clock
  chance: SeededRandom
  url: string
  key: string
  ledgerFile: string
  /** The number of recipients taken by the relay in this period. */
  arrived: () => number
}

/** Sends from construction until `stop`, except while paused; paused at first. */
export class LoadGenerator {
  /** Called with every accepting response. */
  onAnswer: (() => void) | undefined
  readonly #deps: LoadDeps
  readonly #maker: RequestMaker
  readonly #ledger: WriteStream
  readonly #running: Promise<void>[]
  #requests: SendRequest[] = []
  /** Recipients accepted in this period. */
  #expected = 0
  #isPaused = true
  #isStopped = false
  #open = 0
  #changedAnswers = 0
  #repeatedAnswers = 0

  constructor(deps: LoadDeps) {
    this.#deps = deps
    this.#maker = new RequestMaker(deps.chance)
    this.#ledger = createWriteStream(deps.ledgerFile, { flags: 'a' })
    this.#running = Array.from({ length: clients }, () => this.#runClient())
  }

  /** The requests of this period. */
  get requests(): readonly SendRequest[] {
    return this.#requests
  }

  /** Requests whose repetition under the same key got different bytes. */
  get changedAnswers(): number {
    return this.#changedAnswers
  }

  get repeatedAnswers(): number {
    return this.#repeatedAnswers
  }

  /** Sends many emails at once; resolves to their recipients once accepted. */
  async burst(): Promise<string[]> {
    const batches = Array.from({ length: burstBatches }, () => this.#maker.makeBatch(burstBatchSize))
    await Promise.all(batches.map((batch) => this.#send(batch)))
    return batches.flatMap(({ texts }) => [...texts.keys()])
  }

  resume(): void {
    this.#isPaused = false
  }

  /** Resolves when no request is open. */
  async pause(): Promise<void> {
    this.#isPaused = true
    while (this.#open > 0 && !this.#isStopped) await pause(this.#deps.clock, 10)
  }

  /** Starts a new period. */
  forget(): void {
    this.#requests = []
    this.#expected = 0
    this.#maker.beginPeriod()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#running)
    await new Promise<void>((resolve) => this.#ledger.end(() => resolve()))
  }

  async #runClient(): Promise<void> {
    const { clock, chance, arrived } = this.#deps
    while (!this.#isStopped) {
      if (this.#isPaused || this.#expected - arrived() > maxInFlight) {
        await pause(clock, pauseBetweenMs)
        continue
      }
      const { state } = await this.#send(this.#maker.make())
      if (state !== 'acknowledged') await pause(clock, pauseAfterFailureMs)
      else if (chance.random() < 0.1) await this.#repeatOne()
      await pause(clock, chance.random() * pauseBetweenMs)
    }
  }

  /** Resolves to the request when it is answered, or may not be repeated. */
  async #send(made: NewRequest): Promise<SendRequest> {
    const { clock } = this.#deps
    const request: SendRequest = { ...made, beganMs: clock.nowMs(), state: 'open', answeredMs: 0, emails: new Map(), answer: '' }
    this.#requests.push(request)
    this.#open++
    try {
      while (request.state === 'open') {
        const answer = await this.#post(request)
        if (answer?.status === 200) this.#acknowledge(request, answer.text)
        // 500 reports an unknown or failed outcome; any other error refuses a valid request.
        else if (answer && answer.status !== 500) {
          request.state = 'refused'
          request.answer = answer.text
        } else if (request.key === undefined || this.#isStopped) request.state = 'unanswered'
        else await pause(clock, pauseAfterFailureMs)
      }
      return request
    } finally {
      this.#open--
    }
  }

  #acknowledge(request: SendRequest, text: string): void {
    const { data } = JSON.parse(text) as { data: { messages: Record<string, { id: string }> } }
    request.emails = new Map(Object.entries(data.messages).map(([recipient, { id }]) => [recipient, id]))
    request.answer = text
    request.answeredMs = this.#deps.clock.nowMs()
    request.state = 'acknowledged'
    this.#expected += request.emails.size
    this.#ledger.write(`${JSON.stringify({ atMs: request.answeredMs, key: request.key, emails: data.messages })}\n`)
    this.onAnswer?.()
  }

  async #repeatOne(): Promise<void> {
    const last = this.#requests.length - 1
    const request = this.#requests[this.#deps.chance.between(Math.max(0, last - 49), last)]
    if (request?.key === undefined || request.state !== 'acknowledged') return
    const again = await this.#post(request)
    if (again?.status !== 200) return
    this.#repeatedAnswers++
    if (again.text !== request.answer) this.#changedAnswers++
  }

  /** undefined: no response in time. */
  async #post({ path, key, body }: NewRequest): Promise<{ status: number; text: string } | undefined> {
    const late = new AbortController()
    const cancel = this.#deps.clock.after(answerWithinMs, () => late.abort())
    try {
      const answer = await fetch(`${this.#deps.url}/v1${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.#deps.key}`,
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        body,
        signal: late.signal,
      })
      return { status: answer.status, text: await answer.text() }
    } catch {
      return undefined
    } finally {
      cancel()
    }
  }
}
