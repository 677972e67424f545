/**
 * The facts known outside the engine: its requests and answers, the mail servers' messages and replies, the webhooks' requests, and the
 * faults of its processes. The invariants compare them with the engine's own records.
 */
import { createHash } from 'node:crypto'
import type { Life, Time } from './virtual-time.ts'

/** The mail server of a connection or message. */
interface CountedHost {
  name: string
  provider: string
}

export interface SubmittedRequest {
  tenantId: string
  key: string | undefined
  recipients: readonly string[]
  /** A marker in the text of the message. */
  canary: string
  test: boolean
  /** `unanswered`: the request may or may not have been accepted, and cannot be repeated. */
  state: 'open' | 'acknowledged' | 'unanswered'
  answeredMs: number
  /** Email id of each recipient, once acknowledged. */
  emails: ReadonlyMap<string, string>
  answer: string
}

export interface AcceptedMessage {
  /** Part of the reply, and so of the attempt that recorded it. */
  id: string
  recipient: string
  canary: string
  messageId: string
  atMs: number
  wallMs: number
  by: string
  /** The mail server made sure that its reply was lost. */
  isAnswerLost: boolean
}

export interface Heard {
  webhook: string
  eventId: string
  tenantId: string
  kind: string
  emailId: string
  attempt: number
  /** The receiver answered with 200. */
  isTaken: boolean
}

/** A process was struck; its work in flight may be repeated. */
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
  /** Recipients that a mail server has permanently refused, by chance. */
  readonly refusals: Set<string>
  /** Appends to the history of a run, in order. */
  readonly history: string[]
  /** Grows with all traffic on the connections. */
  readonly steps: number
  /** The most concurrent connections of healthy lives, by provider. */
  readonly maxOpen: Map<string, number>
  /** Monotonic start times of messages, by provider. */
  readonly begun: Map<string, number[]>
  tell(what: string): void
  strike(kind: string, life: Life): void
  connected(host: CountedHost, session: number, life: Life): void
  disconnected(host: CountedHost, session: number): void
  openAt(host: CountedHost): number
  began(host: CountedHost, life: Life): void
  taken(message: { host: CountedHost; recipients: string[]; text: string; session: number; life: Life; isAnswerLost: boolean }): string
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
