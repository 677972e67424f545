/**
 * Dynamic updates of a DNS zone (RFC 2136) over TCP, signed with TSIG, and signed queries of the same server. Never rejects; an exchange takes at
 * most ten seconds and an answer at most 64 KiB. An answer counts only with a valid signature.
 */
import { connect, type Socket } from 'node:net'
import { type Clock, openSemaphore } from '#base'
import { anyType, soaType, type UpdateType, updateTypes, type WireRecord, wireMessage, wireRecord } from './dns-wire.ts'
import { rcodeName, readSignedAnswer, signMessage, type TsigKey } from './tsig.ts'

/** A condition under which the server makes the update (RFC 2136 section 2.4). */
export type Prerequisite =
  /** `any`: the name has no record at all. */
  | { kind: 'absent'; name: string; type: UpdateType | 'any' }
  /** The records of the name and type are exactly these. */
  | { kind: 'exactly'; name: string; type: UpdateType; data: readonly Buffer[] }

export interface RecordChange {
  kind: 'add' | 'remove'
  name: string
  type: UpdateType
  /** As `wireData` writes it, or as the server returned it. */
  data: Buffer
  ttlS: number
}

export interface ZoneUpdate {
  prerequisites: readonly Prerequisite[]
  changes: readonly RecordChange[]
}

export type UpdateResult = { kind: 'done' } | { kind: 'refused'; rcode: string } | { kind: 'trouble'; error: string }
export type ReadResult = { kind: 'found'; records: WireRecord[] } | { kind: 'trouble'; error: string }

export interface UpdateServer {
  /** The records of a name and type, or the CNAME that stands in their place. */
  read(name: string, type: UpdateType): Promise<ReadResult>
  update(update: ZoneUpdate): Promise<UpdateResult>
  close(): void
}

export interface UpdateServerDeps {
  host: string
  port: number
  zone: string
  key: TsigKey
  clock: Clock
  /** A message id, unpredictable. */
  newId: () => number
  /** For one exchange. */
  timeoutMs?: number
}

const usualTimeoutMs = 10_000
/** With room for the header and the signature, below the 65,535 octets of a message over TCP. */
export const maxUpdateOctets = 60_000

const none = Buffer.alloc(0)

function prerequisiteRecords(one: Prerequisite): Buffer[] {
  if (one.kind === 'absent') return [wireRecord(one.name, one.type === 'any' ? anyType : updateTypes[one.type], 'NONE', 0, none)]
  return one.data.map((data) => wireRecord(one.name, updateTypes[one.type], 'IN', 0, data))
}

/** Class NONE deletes exactly this record (section 2.5.4). */
const changeRecord = ({ kind, name, type, data, ttlS }: RecordChange): Buffer =>
  kind === 'add' ? wireRecord(name, updateTypes[type], 'IN', ttlS, data) : wireRecord(name, updateTypes[type], 'NONE', 0, data)

const encodeUpdate = (id: number, zone: string, { prerequisites, changes }: ZoneUpdate): Buffer =>
  wireMessage(id, 5, { name: zone, type: soaType }, [prerequisites.flatMap(prerequisiteRecords), changes.map(changeRecord)])

/** The octets that an update adds to a message. */
export const updateOctets = ({ prerequisites, changes }: ZoneUpdate): number =>
  [...prerequisites.flatMap(prerequisiteRecords), ...changes.map(changeRecord)].reduce((sum, { length }) => sum + length, 0)

export function openUpdateServer(deps: UpdateServerDeps): UpdateServer {
  const { zone, key, clock, newId } = deps
  const connection = new Connection(deps)
  // One exchange at a time, on one connection.
  const semaphore = openSemaphore(1)
  const exchange = (encode: (id: number) => Buffer) =>
    semaphore.run(async () => {
      const id = newId()
      const { octets, mac } = signMessage(encode(id), key, clock.nowMs())
      const answer = await connection.exchange(octets)
      if (typeof answer === 'string') return { kind: 'error' as const, error: answer }
      return readSignedAnswer(answer, { id, key, mac, nowMs: clock.nowMs() })
    })
  return {
    async read(name, type) {
      const answer = await exchange((id) => wireMessage(id, 0, { name, type: updateTypes[type] }))
      if (answer.kind === 'error') return { kind: 'trouble', error: answer.error }
      const { rcode, isTruncated, answers } = answer.message
      // NXDOMAIN has an empty list of answers.
      if (isTruncated || (rcode !== 0 && rcode !== 3))
        return { kind: 'trouble', error: isTruncated ? 'the answer is cut' : rcodeName(rcode) }
      const wanted: number[] = [updateTypes[type], updateTypes.CNAME]
      return { kind: 'found', records: answers.filter((one) => one.name === name.toLowerCase() && wanted.includes(one.type)) }
    },
    async update(update) {
      const answer = await exchange((id) => encodeUpdate(id, zone, update))
      // Knot DNS answers so if the key is known but may not make this change.
      if (answer.kind === 'error' && answer.refusal === 'BADKEY') return { kind: 'refused', rcode: answer.refusal }
      if (answer.kind === 'error') return { kind: 'trouble', error: answer.error }
      const { rcode } = answer.message
      return rcode === 0 ? { kind: 'done' } : { kind: 'refused', rcode: rcodeName(rcode) }
    },
    close: () => connection.close(),
  }
}

/** A TCP connection that opens again when the server has closed it. */
class Connection {
  readonly #deps: Pick<UpdateServerDeps, 'host' | 'port' | 'clock' | 'timeoutMs'>
  #socket: Socket | undefined

  constructor(deps: Pick<UpdateServerDeps, 'host' | 'port' | 'clock' | 'timeoutMs'>) {
    this.#deps = deps
  }

  /** Returns the answer, or the problem. A failed exchange ends the connection, and is not repeated: its outcome is unknown. */
  exchange(query: Buffer): Promise<Buffer | string> {
    const { host, port, clock, timeoutMs = usualTimeoutMs } = this.#deps
    return new Promise((resolve) => {
      const socket = this.#socket?.writable ? this.#socket : connect({ host, port })
      this.#socket = socket
      const pieces: Buffer[] = []
      let length = 0
      const end = (answer: Buffer | string) => {
        cancel()
        socket.removeAllListeners().on('error', () => {})
        if (typeof answer === 'string') this.close()
        resolve(answer)
      }
      const cancel = clock.after(timeoutMs, () => end(`no answer from ${host} port ${port} within ${timeoutMs / 1000} s`))
      socket.on('error', (error: NodeJS.ErrnoException) => end(`cannot reach ${host} port ${port} (${error.code ?? error.message})`))
      socket.on('close', () => end(`${host} port ${port} closed the connection`))
      socket.on('data', (octets) => {
        pieces.push(octets)
        length += octets.length
        if (length < 2) return
        // The length has 16 bits, so at most 64 KiB are kept; it stands in the first piece or the first two.
        const first = pieces[0] as Buffer
        const size = (first.length < 2 ? Buffer.concat(pieces) : first).readUInt16BE(0)
        if (length < 2 + size) return
        end(length > 2 + size ? 'the server sent more than one answer' : Buffer.concat(pieces).subarray(2))
      })
      socket.write(Buffer.concat([Buffer.from([query.length >> 8, query.length & 0xff]), query]))
    })
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }
}
