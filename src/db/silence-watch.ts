/**
 * Gives up connections to a server that fell silent. A machine that dies or is cut off closes no socket, and the kernel retransmits for some
 * fifteen minutes. When a statement has no answer for some seconds, all hosts are asked. The connections end if another host was promoted,
 * or if the server answers no new connection either. A server that answers may take as long as it needs: a commit that waits for its
 * standby is never given up. A server that answers a new connection with an error, such as too many connections, answers too.
 */
import type { Clock, Log } from '#base'
import type { Connection } from './connection.ts'
import type { Host } from './database-hosts.ts'
import type { HostFault } from './errors.ts'

const lookEveryMs = 500
/** A pending statement without any octet from the server for this long is a reason to ask all hosts. */
const suspectAfterMs = 2000
const askEveryMs = 1000
/** Without another writable host, a server that is silent for this long, and answers no new connection, is given up. */
const giveUpAfterMs = 4000

/** A host's answer to a new connection. */
export interface HostAnswer {
  host: string
  state: 'writable' | HostFault
  /** 0 if unknown. */
  timeline: number
}

export interface SilenceWatchDeps {
  hosts: readonly Host[]
  clock: Clock
  log: Log
  connections: () => Iterable<Connection>
  ask: (host: Host) => Promise<HostAnswer>
  /** Called for each host that accepts writes. */
  onWritable: (host: Host, timeline: number) => void
}

/**
 * The reason to give up the connections to a server, or undefined. `silentMs`: since its last octet on any connection. `answers`: those of
 * all hosts, its own included.
 */
export function reasonToGiveUp(
  server: { host: string; timeline: number },
  silentMs: number,
  answers: readonly HostAnswer[],
): string | undefined {
  const promoted = answers.find(({ state, timeline }) => state === 'writable' && timeline > server.timeline && server.timeline > 0)
  if (promoted) return `${promoted.host} was promoted (timeline ${promoted.timeline})`
  const own = answers.find(({ host }) => host === server.host)
  if (!own || own.state === 'writable' || own.state === 'other') return undefined
  if (own.state === 'read-only') return `${server.host} accepts no writes any more`
  const other = answers.find(({ state }) => state === 'writable')
  if (other && silentMs >= suspectAfterMs) return `${server.host} does not answer, and ${other.host} accepts writes`
  return silentMs >= giveUpAfterMs ? `${server.host} does not answer` : undefined
}

export class SilenceWatch {
  readonly #deps: SilenceWatchDeps
  /** Octets at the last change, and when it was seen, of connections with a pending statement. */
  readonly #seen = new WeakMap<Connection, { octets: number; sinceMs: number }>()
  /** When each host last sent an octet to a connection. */
  readonly #heardMs = new Map<string, number>()
  #askedMs = Number.NEGATIVE_INFINITY
  #isAsking = false
  #cancel: (() => void) | undefined

  constructor(deps: SilenceWatchDeps) {
    this.#deps = deps
  }

  /** Called before a statement begins. The watch ends itself when none is pending, so that an idle process rests. */
  start(): void {
    if (this.#cancel) return
    // Nothing was asked until now, so that no server has been silent.
    const nowMs = this.#deps.clock.monotonicMs()
    for (const connection of this.#deps.connections()) {
      this.#seen.set(connection, { octets: connection.octetsRead, sinceMs: nowMs })
      this.#heardMs.set(connection.host.name, nowMs)
    }
    this.#lookLater()
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  #lookLater(): void {
    this.#cancel = this.#deps.clock.after(lookEveryMs, () => {
      this.#cancel = undefined
      this.#look()
    })
  }

  #look(): void {
    const { clock, connections } = this.#deps
    const nowMs = clock.monotonicMs()
    let isPending = false
    let isSuspect = false
    for (const connection of connections()) {
      isPending ||= connection.pending > 0
      isSuspect = this.#silentMs(connection, nowMs) >= suspectAfterMs || isSuspect
    }
    if (!isPending) return
    if (isSuspect && !this.#isAsking && nowMs - this.#askedMs >= askEveryMs) void this.#askAll()
    this.#lookLater()
  }

  #silentMs(connection: Connection, nowMs: number): number {
    const octets = connection.octetsRead
    const seen = this.#seen.get(connection)
    if (seen?.octets !== octets) this.#heardMs.set(connection.host.name, nowMs)
    if (connection.pending === 0 || seen?.octets !== octets) {
      this.#seen.set(connection, { octets, sinceMs: nowMs })
      return 0
    }
    return nowMs - seen.sinceMs
  }

  async #askAll(): Promise<void> {
    const { hosts, clock, ask, onWritable } = this.#deps
    this.#isAsking = true
    this.#askedMs = clock.monotonicMs()
    const answers = await Promise.all(hosts.map(ask))
    this.#isAsking = false
    for (const [index, host] of hosts.entries()) {
      const answer = answers[index] as HostAnswer
      if (answer.state === 'writable') onWritable(host, answer.timeline)
    }
    this.#giveUp(answers)
  }

  #giveUp(answers: readonly HostAnswer[]): void {
    const { clock, log, connections } = this.#deps
    const nowMs = clock.monotonicMs()
    const logged = new Set<string>()
    for (const connection of connections()) {
      const { name } = connection.host
      const silentMs = nowMs - (this.#heardMs.get(name) ?? nowMs)
      const reason = reasonToGiveUp({ host: name, timeline: connection.timeline }, silentMs, answers)
      if (reason === undefined) continue
      if (!logged.has(name)) log.warn({ host: name, reason }, 'closing all connections to a silent database server')
      logged.add(name)
      connection.destroy(`the database server is given up: ${reason}`)
    }
  }
}
