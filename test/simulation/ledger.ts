/**
 * What is known outside of the engine: what was asked of it and what it answered, what the mail servers took and said, what webhooks heard,
 * and what was done to its processes. The invariants compare this with what the engine says of itself.
 */
import { createHash } from 'node:crypto'
import type { Host } from './mail-servers.ts'
import type { Life, Time } from './virtual-time.ts'

export interface SubmittedRequest {
  tenantId: string
  key: string | undefined
  recipients: readonly string[]
  /** Stands in the text. */
  canary: string
  test: boolean
  /** `unanswered`: it may or may not have been accepted, and may not be asked again. */
  state: 'open' | 'acknowledged' | 'unanswered'
  answeredMs: number
  /** Email id of each recipient, when acknowledged. */
  emails: ReadonlyMap<string, string>
  answer: string
}

export interface AcceptedMessage {
  /** Stands in the reply, and so in the attempt that recorded it. */
  id: string
  recipient: string
  canary: string
  messageId: string
  atMs: number
  wallMs: number
  by: string
  /** The mail server saw to it that its answer was not heard. */
  isAnswerLost: boolean
}

export interface Heard {
  webhook: string
  eventId: string
  tenantId: string
  kind: string
  emailId: string
  attempt: number
  /** It answered well, and so it was. */
  isTaken: boolean
}

/** A process was struck; what it had in its hands may be repeated. */
export interface Strike {
  kind: string
  life: string
  atMs: number
}

export interface Ledger {
  readonly requests: SubmittedRequest[]
  readonly copies: Map<string, AcceptedMessage[]>
  readonly heard: Heard[]
  readonly faults: Strike[]
  /** Recipients that a mail server has refused for good, by chance. */
  readonly refusals: Set<string>
  /** For the history of a run: what happened, in order. */
  readonly history: string[]
  /** Grows with everything that crosses a connection. */
  readonly steps: number
  /** The most connections at once of lives that were well, by provider. */
  readonly maxOpen: Map<string, number>
  /** Times (monotonic) at which messages were begun, by provider. */
  readonly begun: Map<string, number[]>
  tell(what: string): void
  strike(kind: string, life: Life): void
  connected(host: Host, session: number, life: Life): void
  disconnected(host: Host, session: number): void
  openAt(host: Host): number
  began(host: Host, life: Life): void
  taken(message: { host: Host; recipients: string[]; text: string; session: number; life: Life; isAnswerLost: boolean }): string
  answered(id: string): void
  answerLost(id: string): void
  refused(recipient: string): void
}

export function openLedger(time: Time): Ledger {
  const open = new Map<string, Map<number, Life>>()
  const byId = new Map<string, AcceptedMessage[]>()
  let steps = 0
  let messages = 0
  const ledger: Ledger = {
    requests: [],
    copies: new Map(),
    heard: [],
    faults: [],
    refusals: new Set(),
    history: [],
    maxOpen: new Map(),
    begun: new Map(),
    get steps() {
      return steps
    },
    tell(what) {
      ledger.history.push(`${new Date(time.wallMs).toISOString()} ${Math.round(time.monotonicMs)} ${what}`)
    },
    strike(kind, life) {
      ledger.faults.push({ kind, life: life.name, atMs: time.monotonicMs })
      ledger.tell(`${kind}: ${life.name}`)
    },
    connected(host, session, life) {
      steps++
      const here = open.get(host.provider) ?? new Map<number, Life>()
      open.set(host.provider, here.set(session, life))
      const well = [...here.values()].filter((one) => !one.isFrozen && !one.isOver).length
      ledger.maxOpen.set(host.provider, Math.max(well, ledger.maxOpen.get(host.provider) ?? 0))
    },
    disconnected(host, session) {
      steps++
      open.get(host.provider)?.delete(session)
    },
    openAt: (host) => open.get(host.provider)?.size ?? 0,
    began(host) {
      steps++
      const times = ledger.begun.get(host.provider) ?? []
      times.push(time.monotonicMs)
      ledger.begun.set(host.provider, times)
    },
    taken({ host, recipients, text, life, isAnswerLost }) {
      steps++
      const id = `t${++messages}`
      const canary = /canary-[a-z0-9]+-end/.exec(text)?.[0] ?? createHash('sha1').update(text).digest('hex')
      const messageId = /^message-id:\s*(<[^>]*>)/im.exec(text)?.[1] ?? ''
      const facts = { id, canary, messageId, atMs: time.monotonicMs, wallMs: time.wallMs, by: life.name, isAnswerLost }
      const all = recipients.map((recipient) => ({ ...facts, recipient }))
      byId.set(id, all)
      for (const one of all) ledger.copies.set(one.recipient, [...(ledger.copies.get(one.recipient) ?? []), one])
      ledger.tell(`${host.name} took ${id} ${canary} for ${recipients.join(' ')}`)
      return id
    },
    answered() {
      steps++
    },
    answerLost(id) {
      for (const one of byId.get(id) ?? []) one.isAnswerLost = true
    },
    refused(recipient) {
      ledger.refusals.add(recipient)
    },
  }
  return ledger
}
