/**
 * Sends a fixed number of requests a second to several instances, independently of their answers. Every request has an idempotency key and is
 * repeated until it is accepted: at any instance, and after a connection error at another one, as a load balancer does.
 */
import { Agent, request as httpRequest } from 'node:http'
import { type Clock, pause } from '#base'
import type { SeededRandom } from '#crash-test'
import type { SendRequest } from '../../src/crash-test/ledger.ts'
import { textHashOf } from '../../src/crash-test/relay.ts'
import { sendingDomain } from '../../src/crash-test/service.ts'

const giveUpMs = 20_000
const repeatAfterMs = 500
const maxOpen = 4000
const domains = ['one.example', 'two.example', 'three.example', 'four.example']

/** A failed answer, for the report. */
export interface FailedAnswer {
  atMs: number
  /** 1 for the first time that the request was made. */
  times: number
  instance: number
  /** From sending the request to its answer or its error. */
  tookMs: number
  status: number | undefined
  text: string
}

export interface LoadOptions {
  clock: Clock
  chance: SeededRandom
  urls: readonly string[]
  key: string
  perSecond: number
}

export class PacedLoad {
  requests: SendRequest[] = []
  failures: FailedAnswer[] = []
  /** For each instance, when it accepted a request. */
  readonly accepted: number[][]
  changedAnswers = 0
  repeated = 0
  readonly #options: LoadOptions
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1000 })
  #number = 0
  #open = 0
  #isPaused = false
  #isStopped = false
  #running: Promise<void> | undefined

  constructor(options: LoadOptions) {
    this.#options = options
    this.accepted = options.urls.map(() => [])
  }

  start(): void {
    this.#running ??= this.#run()
  }

  resume(): void {
    this.#isPaused = false
  }

  /** Resolves when every request is accepted, to false after `withinMs`. */
  async pause(withinMs: number): Promise<boolean> {
    const { clock } = this.#options
    this.#isPaused = true
    const untilMs = clock.monotonicMs() + withinMs
    while (this.#open > 0 && clock.monotonicMs() < untilMs) await pause(clock, 20)
    return this.#open === 0
  }

  forget(): void {
    this.requests = []
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
    this.#agent.destroy()
  }

  async #run(): Promise<void> {
    const { clock, perSecond } = this.#options
    const everyMs = 1000 / perSecond
    let dueMs = clock.monotonicMs()
    while (!this.#isStopped) {
      const nowMs = clock.monotonicMs()
      if (this.#isPaused) dueMs = nowMs
      while (dueMs <= nowMs && !this.#isPaused && this.#open < maxOpen) {
        void this.#send(this.#newRequest())
        dueMs += everyMs
      }
      await pause(clock, Math.max(1, dueMs - clock.monotonicMs()))
    }
  }

  #newRequest(): SendRequest {
    const { clock, chance } = this.#options
    const recipient = `user-${++this.#number}@${chance.pick(domains)}`
    const text = `to ${recipient}\n${'lorem ipsum dolor sit amet\n'.repeat(chance.between(1, 20))}`
    return {
      path: '/emails',
      body: JSON.stringify({ from: `orders@${sendingDomain}`, to: [recipient], subject: 'Failover test', text }),
      key: `failover-${this.#number}`,
      texts: new Map([[recipient, textHashOf(text)]]),
      beganMs: clock.nowMs(),
      state: 'open',
      answeredMs: 0,
      emails: new Map(),
      answer: '',
    }
  }

  async #send(request: SendRequest): Promise<void> {
    const { clock, chance, urls } = this.#options
    this.requests.push(request)
    this.#open++
    try {
      let instance = chance.between(0, urls.length - 1)
      for (let times = 1; !this.#isStopped; times++) {
        const beganMs = clock.monotonicMs()
        const { status, text, shouldRetry } = await this.#post(urls[instance] as string, request)
        if (times > 1) this.repeated++
        if (status === 200) {
          this.#accept(request, instance, text)
          // Another instance must give the same answer to the same key.
          if (times > 1) await this.#compare(request)
          return
        }
        const tookMs = clock.monotonicMs() - beganMs
        this.failures.push({ atMs: clock.nowMs(), times, instance, tookMs, status, text: text.slice(0, 300) })
        if (status !== undefined && status < 500 && !shouldRetry) {
          request.state = 'refused'
          request.answer = text
          return
        }
        await pause(clock, repeatAfterMs)
        instance = status === undefined ? (instance + 1) % urls.length : chance.between(0, urls.length - 1)
      }
    } finally {
      this.#open--
    }
  }

  #accept(request: SendRequest, instance: number, text: string): void {
    const { data } = JSON.parse(text) as { data: { messages: Record<string, { id: string }> } }
    request.emails = new Map(Object.entries(data.messages).map(([recipient, { id }]) => [recipient, id]))
    request.answer = text
    request.answeredMs = this.#options.clock.nowMs()
    request.state = 'acknowledged'
    this.accepted[instance]?.push(request.answeredMs)
  }

  async #compare(request: SendRequest): Promise<void> {
    const { chance, urls } = this.#options
    const { status, text } = await this.#post(chance.pick(urls) as string, request)
    if (status === 200 && text !== request.answer) this.changedAnswers++
  }

  #post(url: string, request: SendRequest): Promise<{ status: number | undefined; text: string; shouldRetry: boolean }> {
    return new Promise((resolve) => {
      const sent = httpRequest(`${url}/v1${request.path}`, {
        method: 'POST',
        agent: this.#agent,
        timeout: giveUpMs,
        headers: {
          authorization: `Bearer ${this.#options.key}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(request.body),
          'idempotency-key': request.key ?? '',
        },
      })
      const failed = (error: Error) => resolve({ status: undefined, text: error.message, shouldRetry: true })
      sent.on('timeout', () => sent.destroy(new Error(`no answer within ${giveUpMs} ms`)))
      sent.on('error', failed)
      sent.on('response', (answer) => {
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', (part: string) => (text += part))
        answer.on('error', failed)
        answer.on('end', () => resolve({ status: answer.statusCode, text, shouldRetry: answer.headers['x-should-retry'] === 'true' }))
      })
      sent.end(request.body)
    })
  }
}
