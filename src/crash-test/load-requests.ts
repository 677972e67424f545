/** Makes the requests of the load: random recipients, sizes and texts, all different within a crash test. */
import type { SendRequest } from './ledger.ts'
import { textHashOf } from './relay.ts'
import type { SeededRandom } from './seeded-random.ts'
import { sendingDomain } from './service.ts'

const domains = ['one.example', 'two.example', 'three.example', 'four.example']

/** A request before it is sent. */
export type NewRequest = Pick<SendRequest, 'path' | 'body' | 'key' | 'texts'>

export class RequestMaker {
  readonly #chance: SeededRandom
  #number = 0
  #period = 0

  constructor(chance: SeededRandom) {
    this.#chance = chance
  }

  /** The recipients of the next requests carry another number. */
  beginPeriod(): void {
    this.#period++
  }

  /** One email with up to five recipients, or a batch; with a key or without. */
  make(): NewRequest {
    const chance = this.#chance
    const key = chance.random() < 0.6 ? this.#newKey() : undefined
    if (chance.random() < 0.25) return this.#batchOf(chance.between(2, 12), key)
    const to = Array.from({ length: chance.random() < 0.3 ? chance.between(2, 5) : 1 }, () => this.#newRecipient())
    const text = this.#newText(to[0] ?? '')
    const body = JSON.stringify({ from: `orders@${sendingDomain}`, to, subject: 'Crash test', text })
    return { path: '/emails', body, key, texts: new Map(to.map((recipient) => [recipient, textHashOf(text)])) }
  }

  /** A batch of `size` emails, with a key. */
  makeBatch(size: number): NewRequest {
    return this.#batchOf(size, this.#newKey())
  }

  #batchOf(size: number, key: string | undefined): NewRequest {
    const emails = Array.from({ length: size }, () => {
      const recipient = this.#newRecipient()
      return { to: [recipient], subject: 'Crash test', text: this.#newText(recipient) }
    })
    const texts = new Map(emails.map(({ to, text }) => [to[0] ?? '', textHashOf(text)]))
    return { path: '/emails/batch', body: JSON.stringify({ from: `orders@${sendingDomain}`, emails }), key, texts }
  }

  #newKey(): string {
    return `crash-test-${++this.#number}`
  }

  #newRecipient(): string {
    const kind = this.#chance.random()
    const name = kind < 0.03 ? 'refused' : kind < 0.06 ? 'later' : 'user'
    return `${name}-${this.#period}-${++this.#number}@${this.#chance.pick(domains)}`
  }

  #newText(recipient: string): string {
    const size = this.#chance.random()
    const lines = size < 0.002 ? 8000 : size < 0.03 ? 800 : this.#chance.between(1, 30)
    return Array.from({ length: lines }, (_, line) =>
      `${line} to ${recipient} ${'lorem ipsum dolor sit amet '.repeat(2)}`.slice(0, 76),
    ).join('\n')
  }
}
