/**
 * Finds the host that accepts writes. The host of the last connection is asked first; the others are asked as soon as it fails or hesitates,
 * all at once. A host whose timeline is behind the newest one seen is a server that a failover left behind (reliability finding 8). It is
 * used only if no reachable host has the newest timeline.
 */
import { type Clock, type Log, pause } from '#base'
import type { Connection } from './connection.ts'
import type { Host } from './database-hosts.ts'
import { DatabaseUnreachable, HostUnusable } from './errors.ts'

/** Delay before the other hosts are asked as well. */
const hesitationMs = 300
/** While some host does not answer, it may have the newest timeline; after this time it is taken for lost. */
const forgetAfterMs = 5000

export interface HostFinderDeps {
  hosts: readonly Host[]
  connect: (host: Host) => Promise<Connection>
  clock: Clock
  log: Log
  /** Called when a newer timeline is seen: connections of older ones must end. */
  onNewTimeline: () => void
}

export class HostFinder {
  readonly #deps: HostFinderDeps
  /** Index of the host of the last connection. */
  #current = 0
  #newestTimeline = 0
  /** Since when only hosts with an older timeline accept writes. */
  #olderSinceMs: number | undefined

  constructor(deps: HostFinderDeps) {
    this.#deps = deps
  }

  get newestTimeline(): number {
    return this.#newestTimeline
  }

  /** Records that a host accepts writes, so that it is asked first. */
  note(host: Host, timeline: number): void {
    const { hosts, log, onNewTimeline } = this.#deps
    if (timeline < this.#newestTimeline) return
    this.#olderSinceMs = undefined
    const index = hosts.findIndex(({ name }) => name === host.name)
    if (index >= 0 && index !== this.#current) {
      log.warn({ host: host.name }, 'switched to another database host')
      this.#current = index
    }
    if (timeline === this.#newestTimeline) return
    if (this.#newestTimeline > 0) log.warn({ host: host.name, timeline }, 'the database has a new timeline')
    this.#newestTimeline = timeline
    onNewTimeline()
  }

  /** Connects to a host that accepts writes. Rejects with `DatabaseUnreachable`, which names the fault of every host. */
  async connect(): Promise<Connection> {
    const found = await firstFit(this.#ask(), (connection) => this.#isFit(connection))
    if (found.fit) {
      this.note(found.fit.host, found.fit.timeline)
      return found.fit
    }
    const older = this.#mayForget(found) ? found.unfit.shift() : undefined
    for (const connection of found.unfit) void connection.end()
    if (older) return this.#forget(older)
    const sentences = [
      ...found.unfit.map(({ host, timeline }) => `${host.name}: timeline ${timeline} is older than ${this.#newestTimeline}, seen before`),
      ...found.faults.map((fault) => (fault as Error).message),
    ]
    throw new DatabaseUnreachable(`the database is unreachable: ${sentences.join('; ')}`, found.faults[0])
  }

  /** The connections to all hosts, as they are being made, the current host first. The others are not asked if it answers well in time. */
  #ask(): Promise<Connection>[] {
    const { hosts, connect, clock } = this.#deps
    const decided = new AbortController()
    let isFound = false
    const first = connect(hosts[this.#current] as Host)
    first.then(
      (connection) => {
        isFound = this.#isFit(connection)
        decided.abort()
      },
      () => decided.abort(),
    )
    const hesitated = pause(clock, hesitationMs, decided.signal)
    const others = [...hosts.slice(this.#current + 1), ...hosts.slice(0, this.#current)].map(async (host) => {
      await hesitated
      if (isFound) throw new NotAsked()
      return connect(host)
    })
    return [first, ...others]
  }

  #isFit(connection: Connection): boolean {
    return connection.timeline >= this.#newestTimeline
  }

  /** Whether the newest timeline seen is gone: no other host has it, and every host that could have it answered or was silent for long. */
  #mayForget({ unfit, faults }: Found): boolean {
    if (unfit.length === 0) {
      // While every host is down, the one with the newest timeline may be the next to start.
      this.#olderSinceMs = undefined
      return false
    }
    const nowMs = this.#deps.clock.monotonicMs()
    this.#olderSinceMs ??= nowMs
    const others = faults.map((fault) => (fault instanceof HostUnusable ? fault : undefined))
    if (others.some((one) => one && one.timeline >= this.#newestTimeline)) return false
    if (others.every((one) => one?.fault === 'read-only' && one.timeline > 0)) return true
    return nowMs - this.#olderSinceMs >= forgetAfterMs
  }

  #forget(older: Connection): Connection {
    this.#deps.log.error(
      { host: older.host.name, timeline: older.timeline, forgotten: this.#newestTimeline },
      `no reachable database host has timeline ${this.#newestTimeline} any more; continuing on timeline ${older.timeline}. Writes acknowledged on timeline ${this.#newestTimeline} may be lost`,
    )
    this.#newestTimeline = 0
    this.note(older.host, older.timeline)
    return older
  }
}

/** The host was not asked, because the current one answered in time. */
class NotAsked extends Error {}

interface Found {
  fit: Connection | undefined
  /** Connections that are not fit; the caller ends them. */
  unfit: Connection[]
  faults: unknown[]
}

/** The first fit connection as soon as it exists, and late ones are ended; or, once all are settled, the rest. */
function firstFit(answers: readonly Promise<Connection>[], isFit: (connection: Connection) => boolean): Promise<Found> {
  return new Promise((resolve) => {
    const unfit: Connection[] = []
    const faults = new Map<number, unknown>()
    let left = answers.length
    let isDone = false
    const settle = (found: Found) => {
      isDone = true
      resolve(found)
    }
    const settled = () => {
      left--
      if (left === 0 && !isDone) settle({ fit: undefined, unfit, faults: [...faults].sort(([a], [b]) => a - b).map(([, fault]) => fault) })
    }
    for (const [index, answer] of answers.entries()) {
      answer.then(
        (connection) => {
          if (isDone) void connection.end()
          else if (isFit(connection)) {
            for (const one of unfit.splice(0)) void one.end()
            settle({ fit: connection, unfit: [], faults: [] })
          } else unfit.push(connection)
          settled()
        },
        (fault: unknown) => {
          if (!(fault instanceof NotAsked)) faults.set(index, fault)
          settled()
        },
      )
    }
  })
}
