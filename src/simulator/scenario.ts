/**
 * Scenarios: replies of the mail servers in the simulated network, read from a small file. Random choices depend only on the seed, the
 * recipient and the attempt, so the same scenario always gives the same history, independent of concurrent work.
 */
import { createHash } from 'node:crypto'

/** Behaviour of one host for mail to its domain; absent fields have no effect. */
export interface HostScript {
  /** A reply for each attempt; the last one repeats. `timeout`: no reply. */
  replies?: string[]
  /** New mail is deferred until this long after its acceptance. */
  greylistMinutes?: number
  /** Reply delay in ms, from and to. */
  delayMs?: [number, number]
  /** Tried in order at every attempt, before `replies`, each with its probability. */
  sometimes?: { chance: number; reply: string }[]
  /** Events after accepted mail, each with its probability. */
  later?: { chance: number; kind: 'bounce' | 'complaint' | 'open' | 'click'; afterSeconds: [number, number] }[]
}

export interface Scenario {
  seed: number
  /** By recipient domain; `*` stands for all others. */
  hosts: Readonly<Record<string, HostScript>>
}

const maxCharacters = 1_000_000
const maxDelayMs = 20_000
const maxLaterSeconds = 30 * 86_400
const reply = /^(?:timeout|[245]\d\d [ -~]{1,500})$/
const kinds = ['bounce', 'complaint', 'open', 'click']

/** Throws an error that names the invalid position. */
export function readScenario(text: string): Scenario {
  if (text.length > maxCharacters) throw new Error('the scenario is longer than 1,000,000 characters')
  const given = fields(JSON.parse(text), 'the scenario', ['seed', 'hosts'])
  if (!Number.isSafeInteger(given.seed)) throw new Error('seed must be a whole number')
  const hosts = Object.entries(object(given.hosts, 'hosts')).map(([name, host]) => [name.toLowerCase(), readHost(host, `hosts.${name}`)])
  return { seed: given.seed as number, hosts: Object.fromEntries(hosts) }
}

function readHost(value: unknown, at: string): HostScript {
  const host = fields(value, at, ['replies', 'greylistMinutes', 'delayMs', 'sometimes', 'later'])
  for (const [n, one] of list(host.replies, `${at}.replies`).entries()) checkReply(one, `${at}.replies[${n}]`)
  if (host.greylistMinutes !== undefined) checkNumber(host.greylistMinutes, 43_200, `${at}.greylistMinutes`)
  if (host.delayMs !== undefined) checkRange(host.delayMs, maxDelayMs, `${at}.delayMs`)
  for (const [n, one] of list(host.sometimes, `${at}.sometimes`).entries()) {
    const { chance, reply } = fields(one, `${at}.sometimes[${n}]`, ['chance', 'reply'])
    checkNumber(chance, 1, `${at}.sometimes[${n}].chance`)
    checkReply(reply, `${at}.sometimes[${n}].reply`)
  }
  for (const [n, one] of list(host.later, `${at}.later`).entries()) {
    const { chance, kind, afterSeconds } = fields(one, `${at}.later[${n}]`, ['chance', 'kind', 'afterSeconds'])
    checkNumber(chance, 1, `${at}.later[${n}].chance`)
    if (!kinds.includes(String(kind))) throw new Error(`${at}.later[${n}].kind must be one of ${kinds.join(', ')}`)
    checkRange(afterSeconds, maxLaterSeconds, `${at}.later[${n}].afterSeconds`)
  }
  return host as HostScript
}

function object(value: unknown, at: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${at} must be an object`)
  return value as Record<string, unknown>
}

function fields(value: unknown, at: string, known: readonly string[]): Record<string, unknown> {
  const read = object(value, at)
  for (const name of Object.keys(read))
    if (!known.includes(name)) throw new Error(`${at} has an unknown field ${name}: allowed are ${known.join(', ')}`)
  return read
}

function list(value: unknown, at: string): unknown[] {
  if (value === undefined) return []
  if (!Array.isArray(value) || value.length === 0 || value.length > 1000) throw new Error(`${at} must be a list of 1 to 1000`)
  return value
}

function checkReply(value: unknown, at: string): void {
  if (typeof value !== 'string' || !reply.test(value)) throw new Error(`${at} must be "timeout" or a reply such as "451 4.7.1 Try later"`)
}

function checkNumber(value: unknown, maximum: number, at: string): void {
  if (typeof value !== 'number' || !(value >= 0 && value <= maximum)) throw new Error(`${at} must be a number from 0 to ${maximum}`)
}

function checkRange(value: unknown, maximum: number, at: string): void {
  if (!Array.isArray(value) || value.length !== 2) throw new Error(`${at} must be two numbers, from and to`)
  for (const one of value) checkNumber(one, maximum, at)
  if (value[0] > value[1]) throw new Error(`${at} must not end before it starts`)
}

export interface Step {
  recipient: string
  /** Counted from 1. */
  attempt: number
  /** Ms since the message was accepted. */
  elapsedMs: number
}

export interface ScriptedAnswer {
  /** undefined: no reply. */
  line: string | undefined
  delayMs: number
  followUps: { kind: 'bounce' | 'complaint' | 'open' | 'click'; afterMs: number }[]
}

const accepted = '250 2.0.0 Ok: simulated'
const greylisted = '451 4.7.1 Greylisted, come again later (simulated)'

/** Uniform in [0, 1), the same for the same arguments. */
const drawn = (seed: number, address: string, attempt: number, what: string): number =>
  createHash('sha256')
    .update(JSON.stringify([seed, address, attempt, what]))
    .digest()
    .readUIntBE(0, 6) /
  2 ** 48

/** The random part of the delay before the next attempt, in [0, 1). */
export const waitFraction = ({ seed }: Scenario, { recipient, attempt }: Pick<Step, 'recipient' | 'attempt'>): number =>
  drawn(seed, recipient.toLowerCase(), attempt, 'wait')

/** The behaviour of a scenario's host; undefined if it does not cover the recipient domain. */
export function playScenario({ seed, hosts }: Scenario, { recipient, attempt, elapsedMs }: Step): ScriptedAnswer | undefined {
  const address = recipient.toLowerCase()
  const domain = address.slice(address.lastIndexOf('@') + 1)
  const host = Object.hasOwn(hosts, domain) ? hosts[domain] : hosts['*']
  if (!host) return undefined
  const draw = (what: string) => drawn(seed, address, attempt, what)
  const within = ([from, to]: readonly [number, number], what: string) => Math.round(from + (to - from) * draw(what))
  const { replies = [accepted], greylistMinutes = 0, delayMs = [0, 0], sometimes = [], later = [] } = host
  const chosen =
    elapsedMs < greylistMinutes * 60_000
      ? greylisted
      : (sometimes.find(({ chance }, n) => draw(`sometimes ${n}`) < chance)?.reply ?? replies[Math.min(attempt, replies.length) - 1])
  const line = chosen === 'timeout' ? undefined : chosen
  return {
    line,
    delayMs: within(delayMs, 'delay'),
    followUps: line?.startsWith('2')
      ? later
          .filter(({ chance }, n) => draw(`later ${n}`) < chance)
          .filter(({ kind }, n, all) => all.findIndex((one) => one.kind === kind) === n)
          .map(({ kind, afterSeconds }) => ({ kind, afterMs: within(afterSeconds, `after ${kind}`) * 1000 }))
      : [],
  }
}
