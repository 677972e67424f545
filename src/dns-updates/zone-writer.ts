/**
 * Writes record sets to a DNS server by RFC 2136, many in one message. A refused message is halved until the refused sets are alone, so that
 * one set does not keep the others back.
 */
import type { Clock, DnsUpdateTarget } from '#base'
import {
  maxUpdateOctets,
  openUpdateServer,
  textOfData,
  type UpdateServer,
  type UpdateType,
  updateOctets,
  updateTypes,
  type ZoneUpdate,
} from '#net'
import { changesOf, type FoundRecord, type RecordSet, type SetPlan } from './plan-record-set.ts'

export interface SetChange {
  set: RecordSet
  plan: Extract<SetPlan, { kind: 'change' }>
}

export interface ChangeResult {
  change: SetChange
  /** `repeat`: the set changed between reading and writing. `unknown`: the server may or may not have made the change. */
  kind: 'done' | 'refused' | 'repeat' | 'unknown'
  problem: string | null
}

/** The place where records are written. */
export interface RecordWriter {
  /** Whether it can write this name. */
  problemOf(name: string): string | undefined
  read(name: string, type: UpdateType): Promise<FoundRecord[] | { problem: string }>
  /** In any order. A change without a result was not sent. */
  write(changes: readonly SetChange[]): Promise<ChangeResult[]>
  /** Whether a record can be read back as soon as it is written. */
  readonly readsBack: boolean
  close(): void
}

const maxSetsInMessage = 250
/** So many refusals without any success are one problem, and the rest is not tried. */
const maxRefusals = 20
/** RFC 2136 section 2.2: a prerequisite does not hold. */
const raced = ['YXDOMAIN', 'YXRRSET', 'NXRRSET', 'NXDOMAIN']

const means: Record<string, string> = {
  BADKEY: 'the policy of the server does not allow the key to write it (BADKEY)',
  REFUSED: 'the policy of the server does not allow the key to write it (REFUSED)',
  NOTAUTH: 'the server does not serve the zone, or does not accept the key for it (NOTAUTH)',
  NOTZONE: 'the name is not in the zone of the server (NOTZONE)',
  SERVFAIL: 'the server cannot write its zone (SERVFAIL)',
  NOTIMP: 'the server does not take updates (NOTIMP)',
  FORMERR: 'the server does not understand the update (FORMERR)',
}

const byCode = new Map<number, UpdateType>(Object.entries(updateTypes).map(([type, code]) => [code, type as UpdateType]))

export function openZoneWriter(
  target: Extract<DnsUpdateTarget, { kind: 'rfc2136' }>,
  { clock, random }: { clock: Clock; random: () => number },
): RecordWriter {
  const { host, port, zone, key } = target
  const server = openUpdateServer({ host, port, zone, key, clock, newId: () => Math.floor(random() * 65_536) })
  return {
    readsBack: true,
    problemOf: (name) =>
      name === zone || name.endsWith(`.${zone}`) ? undefined : `the name is outside of the zone ${zone}: publish it by hand`,
    async read(name, type) {
      const answer = await server.read(name, type)
      if (answer.kind === 'trouble') return { problem: answer.error }
      return answer.records.map((one) => ({
        type: byCode.get(one.type) ?? type,
        text: textOfData(one.type, one.data) ?? '',
        data: one.data,
      }))
    },
    write: (changes) => new Batches(server).write(changes),
    close: () => server.close(),
  }
}

const updateOf = (changes: readonly SetChange[]): ZoneUpdate => ({
  prerequisites: changes.flatMap(({ plan }) => plan.prerequisites),
  changes: changes.flatMap(({ set, plan }) => changesOf(set.name, set.type, plan)),
})

/** The messages of one run. */
class Batches {
  readonly #server: UpdateServer
  readonly #results: ChangeResult[] = []
  #refusals = 0
  #successes = 0
  #isLost = false

  constructor(server: UpdateServer) {
    this.#server = server
  }

  async write(changes: readonly SetChange[]): Promise<ChangeResult[]> {
    let batch: SetChange[] = []
    let octets = 0
    for (const change of changes) {
      const more = updateOctets(updateOf([change]))
      if (batch.length > 0 && (octets + more > maxUpdateOctets || batch.length >= maxSetsInMessage)) {
        await this.#send(batch)
        batch = []
        octets = 0
      }
      batch.push(change)
      octets += more
    }
    if (batch.length > 0) await this.#send(batch)
    return this.#results
  }

  async #send(batch: readonly SetChange[]): Promise<void> {
    if (this.#isLost || (this.#successes === 0 && this.#refusals >= maxRefusals)) return
    const result = await this.#server.update(updateOf(batch))
    if (result.kind === 'done') {
      this.#successes++
      this.#end(batch, 'done', null)
    } else if (result.kind === 'trouble') {
      // A lost connection, a refused key: the next message would meet it too.
      this.#isLost = true
      this.#end(batch, 'unknown', result.error)
    } else if (batch.length > 1) {
      const half = Math.ceil(batch.length / 2)
      await this.#send(batch.slice(0, half))
      await this.#send(batch.slice(half))
    } else if (raced.includes(result.rcode)) {
      this.#end(batch, 'repeat', `another record appeared at the name, or the records changed (${result.rcode})`)
    } else {
      this.#refusals++
      this.#end(batch, 'refused', means[result.rcode] ?? `the server refuses the update (${result.rcode})`)
    }
  }

  #end(batch: readonly SetChange[], kind: ChangeResult['kind'], problem: string | null): void {
    for (const change of batch) this.#results.push({ change, kind, problem })
  }
}
