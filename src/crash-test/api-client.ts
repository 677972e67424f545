/** Queries the service over its API only: emails, their attempts, and the event log. */
import { type Clock, pause } from '#base'
import type { ReportedAttempt } from './ledger.ts'

const answerWithinMs = 20_000
const perPage = 100
const maxTries = 20
const tryAgainMs = 250
const asksAtOnce = 8
const unfinished = ['pending', 'softfail', 'held'] as const
const pollMs = 200
const eventNames = ['MessageSent', 'MessageDelayed', 'MessageDeliveryFailed', 'MessageHeld', 'MessageBounced']
const maxEventLength = 1_048_576
const quietMs = 17_000

interface ListedEmail {
  id: string
  to: string
  status: string
}

export interface ApiClientDeps {
  clock: Clock
  url: string
  key: string
}

export class ApiClient {
  readonly #deps: ApiClientDeps
  /** The last event read. */
  #position = '0-0'

  constructor(deps: ApiClientDeps) {
    this.#deps = deps
  }

  /** Resolves to true when no email is queued or in flight, to false after `withinMs`. */
  async untilQuiet(withinMs: number): Promise<boolean> {
    const { clock } = this.#deps
    const untilMs = clock.monotonicMs() + withinMs
    for (;;) {
      const counts = await Promise.all(unfinished.map((status) => this.#get<{ total: number }>(`/emails?status=${status}&perPage=1`)))
      if (counts.every(({ total }) => total === 0)) return true
      if (clock.monotonicMs() > untilMs) return false
      await pause(clock, pollMs)
    }
  }

  async listEmails(afterMs: number): Promise<ListedEmail[]> {
    const after = encodeURIComponent(new Date(afterMs).toISOString())
    const emails: ListedEmail[] = []
    for (let page = 1; ; page++) {
      const { data } = await this.#get<{ data: ListedEmail[] }>(`/emails?perPage=${perPage}&page=${page}&after=${after}`)
      emails.push(...data)
      if (data.length < perPage) return emails
    }
  }

  async attempts(emailIds: readonly string[]): Promise<Map<string, ReportedAttempt[]>> {
    const found = new Map<string, ReportedAttempt[]>()
    const left = [...emailIds]
    const askOne = async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        const { data } = await this.#get<{ data: { deliveries: Delivery[] } }>(`/emails/${id}/deliveries`)
        found.set(id, data.deliveries.sort((a, b) => Number(a.id) - Number(b.id)).map(attemptOf))
      }
    }
    await Promise.all(Array.from({ length: asksAtOnce }, askOne))
    return found
  }

  /** The events since the last call, by email: until `isComplete`, or until no event came for a while. */
  async events(isComplete: (byEmail: ReadonlyMap<string, string[]>) => boolean): Promise<Map<string, string[]>> {
    const { clock, url, key } = this.#deps
    const byEmail = new Map<string, string[]>()
    const stopped = new AbortController()
    let cancel = clock.after(quietMs, () => stopped.abort())
    try {
      const path = `/v1/events/stream?after=${this.#position}&events=${eventNames.join(',')}`
      const answer = await fetch(url + path, { headers: { authorization: `Bearer ${key}` }, signal: stopped.signal })
      if (answer.status !== 200 || !answer.body) throw new Error(`the event stream returned ${answer.status}`)
      for await (const block of blocksOf(answer.body)) {
        const { id, event, emailId } = eventIn(block)
        this.#position = id ?? this.#position
        if (event !== undefined) {
          byEmail.set(emailId, [...(byEmail.get(emailId) ?? []), event])
          cancel()
          cancel = clock.after(quietMs, () => stopped.abort())
        }
        if (block.startsWith(': quiet') || isComplete(byEmail)) break
      }
    } catch (error) {
      if (!stopped.signal.aborted) throw error
    } finally {
      cancel()
      stopped.abort()
    }
    return byEmail
  }

  /** Retries while the service cannot answer: it may be starting. */
  async #get<T>(path: string): Promise<T> {
    const { clock, url, key } = this.#deps
    let failure: unknown
    for (let attempt = 0; attempt < maxTries; attempt++) {
      const late = new AbortController()
      const cancel = clock.after(answerWithinMs, () => late.abort())
      try {
        const answer = await fetch(`${url}/v1${path}`, { headers: { authorization: `Bearer ${key}` }, signal: late.signal })
        const body = await answer.text()
        if (answer.status === 200) return JSON.parse(body) as T
        failure = body.slice(0, 300)
      } catch (error) {
        failure = error
      } finally {
        cancel()
      }
      await pause(clock, tryAgainMs)
    }
    throw new Error(`GET ${path}: no response`, { cause: failure })
  }
}

interface Delivery {
  id: string
  status: string
  timestampIso: string
  output: string
  outcomeUnknown?: boolean
}

interface EventBody {
  payload: { message?: { token: string }; original_message?: { token: string } }
}

const attemptOf = ({ status, output, outcomeUnknown, timestampIso }: Delivery): ReportedAttempt => ({
  status,
  output,
  outcomeUnknown: outcomeUnknown === true,
  atMs: Date.parse(timestampIso),
})

/** A block's position and event; without an event `emailId` is empty. */
function eventIn(block: string): { id: string | undefined; event: string | undefined; emailId: string } {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
  const event = field('event')
  if (event === undefined) return { id: field('id'), event, emailId: '' }
  const { payload } = JSON.parse(field('data') ?? '{}') as EventBody
  return { id: field('id'), event, emailId: (payload.message ?? payload.original_message)?.token ?? '' }
}

/** Splits server-sent events into blocks, each followed by an empty line. */
async function* blocksOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true })
    if (text.length > maxEventLength) throw new Error('an event in the stream is too long')
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    yield* blocks
  }
}
