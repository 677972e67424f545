/**
 * Load generator: several clients send requests one after the other, some with an idempotency key, some in batches. Responses are recorded.
 * An unanswered request is repeated under its key until it is answered; without a key it is never repeated.
 */
import { createWriteStream } from 'node:fs'
import { type Clock, pause } from '#base'
import type { SendRequest } from './ledger.ts'
import { textHashOf } from './relay.ts'
import type { SeededRandom } from './seeded-random.ts'
import { sendingDomain } from './service.ts'

const clients = 4
const pauseBetweenMs = 100
const pauseAfterFailureMs = 150
const answerWithinMs = 20_000
/** Pauses sending while this many recipients are in flight. */
const maxInFlight = 300
const burstBatches = 4
const burstBatchSize = 60
const destinations = ['one.example', 'two.example', 'three.example', 'four.example']

export interface Load {
  /** The requests of this period. */
  readonly requests: readonly SendRequest[]
  /** Requests whose repetition under the same key got different bytes. */
  readonly changedAnswers: number
  readonly repeatedAnswers: number
  /** Called with every accepting response. */
  onAnswer: (() => void) | undefined
  /** Sends many emails at once; resolves to their recipients once accepted. */
  burst(): Promise<string[]>
  resume(): void
  /** Resolves when no request is open. */
  pause(): Promise<void>
  /** Starts a new period. */
  forget(): void
  stop(): Promise<void>
}

export interface LoadDeps {
  clock: Clock
  chance: SeededRandom
  url: string
  key: string
  ledgerFile: string
  /** The number of recipients taken by the relay in this period. */
  arrived: () => number
}

export function startLoad(deps: LoadDeps): Load {
  const { clock, chance } = deps
  const ledger = createWriteStream(deps.ledgerFile, { flags: 'a' })
  let requests: SendRequest[] = []
  let number = 0
  let period = 0
  let expected = 0
  let isPaused = true
  let isStopped = false
  let open = 0
  let changedAnswers = 0
  let repeatedAnswers = 0

  const post = async (request: SendRequest): Promise<{ status: number; text: string } | undefined> => {
    const late = new AbortController()
    const cancel = clock.after(answerWithinMs, () => late.abort())
    try {
      const answer = await fetch(`${deps.url}/v1${request.path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${deps.key}`,
          'content-type': 'application/json',
          ...(request.key === undefined ? {} : { 'idempotency-key': request.key }),
        },
        body: request.body,
        signal: late.signal,
      })
      return { status: answer.status, text: await answer.text() }
    } catch {
      return undefined
    } finally {
      cancel()
    }
  }

  const send = async (request: SendRequest): Promise<void> => {
    requests.push(request)
    open++
    try {
      for (;;) {
        const answer = await post(request)
        if (answer?.status === 200) return acknowledge(request, answer.text)
        // 500 reports an unknown or failed outcome; any other error refuses a valid request.
        if (answer && answer.status !== 500) {
          request.state = 'refused'
          request.answer = answer.text
          return
        }
        if (request.key === undefined || isStopped) {
          request.state = 'unanswered'
          return
        }
        await pause(clock, pauseAfterFailureMs)
      }
    } finally {
      open--
    }
  }

  const acknowledge = (request: SendRequest, text: string) => {
    const { data } = JSON.parse(text) as { data: { messages: Record<string, { id: string }> } }
    request.emails = new Map(Object.entries(data.messages).map(([recipient, { id }]) => [recipient, id]))
    request.answer = text
    request.answeredMs = clock.nowMs()
    request.state = 'acknowledged'
    expected += request.emails.size
    ledger.write(`${JSON.stringify({ atMs: request.answeredMs, key: request.key, emails: data.messages })}\n`)
    load.onAnswer?.()
  }

  const repeatOne = async () => {
    const request = requests[chance.between(Math.max(0, requests.length - 50), requests.length - 1)]
    if (request?.key === undefined || request.state !== 'acknowledged') return
    const again = await post(request)
    if (again?.status !== 200) return
    repeatedAnswers++
    if (again.text !== request.answer) changedAnswers++
  }

  const newRecipient = () => {
    const kind = chance.random()
    const name = kind < 0.03 ? 'refused' : kind < 0.06 ? 'later' : 'user'
    return `${name}-${period}-${++number}@${chance.pick(destinations)}`
  }

  const newText = (recipient: string) => {
    const size = chance.random()
    const lines = size < 0.002 ? 8000 : size < 0.03 ? 800 : chance.between(1, 30)
    return Array.from({ length: lines }, (_, line) =>
      `${line} to ${recipient} ${'lorem ipsum dolor sit amet '.repeat(2)}`.slice(0, 76),
    ).join('\n')
  }

  const newRequest = (): SendRequest => {
    const key = chance.random() < 0.6 ? `crash-test-${++number}` : undefined
    if (chance.random() < 0.25) return batchOf(chance.between(2, 12), key)
    const to = Array.from({ length: chance.random() < 0.3 ? chance.between(2, 5) : 1 }, newRecipient)
    const text = newText(to[0] ?? '')
    const body = JSON.stringify({ from: `orders@${sendingDomain}`, to, subject: 'Crash test', text })
    return requestOf('/emails', body, key, new Map(to.map((recipient) => [recipient, textHashOf(text)])))
  }

  const batchOf = (size: number, key: string | undefined): SendRequest => {
    const emails = Array.from({ length: size }, () => {
      const recipient = newRecipient()
      return { to: [recipient], subject: 'Crash test', text: newText(recipient) }
    })
    const texts = new Map(emails.map(({ to, text }) => [to[0] ?? '', textHashOf(text)]))
    return requestOf('/emails/batch', JSON.stringify({ from: `orders@${sendingDomain}`, emails }), key, texts)
  }

  const requestOf = (path: SendRequest['path'], body: string, key: string | undefined, texts: SendRequest['texts']): SendRequest => ({
    path,
    body,
    key,
    texts,
    beganMs: clock.nowMs(),
    state: 'open',
    answeredMs: 0,
    emails: new Map(),
    answer: '',
  })

  const client = async () => {
    while (!isStopped) {
      if (isPaused || expected - deps.arrived() > maxInFlight) {
        await pause(clock, pauseBetweenMs)
        continue
      }
      const request = newRequest()
      await send(request)
      if (request.state !== 'acknowledged') await pause(clock, pauseAfterFailureMs)
      else if (chance.random() < 0.1) await repeatOne()
      await pause(clock, chance.random() * pauseBetweenMs)
    }
  }
  const running = Array.from({ length: clients }, client)

  const load: Load = {
    get requests() {
      return requests
    },
    get changedAnswers() {
      return changedAnswers
    },
    get repeatedAnswers() {
      return repeatedAnswers
    },
    onAnswer: undefined,
    async burst() {
      const batches = Array.from({ length: burstBatches }, () => batchOf(burstBatchSize, `crash-test-${++number}`))
      await Promise.all(batches.map(send))
      return batches.flatMap(({ texts }) => [...texts.keys()])
    },
    resume() {
      isPaused = false
    },
    async pause() {
      isPaused = true
      while (open > 0 && !isStopped) await pause(clock, 10)
    },
    forget() {
      requests = []
      expected = 0
      period++
    },
    async stop() {
      isStopped = true
      await Promise.all(running)
      await new Promise<void>((resolve) => ledger.end(() => resolve()))
    },
  }
  return load
}
