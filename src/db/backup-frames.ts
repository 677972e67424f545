/**
 * Backup file format: a line with the format's name, then frames (a letter, a length, the data), the last of which holds the digest of
 * everything before it. Reads and writes one frame at a time, and detects a truncated or changed file.
 */
import { createHash } from 'node:crypto'

/** Header, table, data of the table, end of the table, data after the tables, digest. */
export type FrameKind = 'h' | 't' | 'd' | 'e' | 'a' | 'z'

export interface Frame {
  kind: FrameKind
  octets: Buffer
}

const firstLine = Buffer.from('POSTRIDER BACKUP 1\n')
const headOctets = 5
/** Postrider's frames are far smaller; a greater length means a damaged file. */
const maxFrameLength = 64 * 1024 * 1024
const kinds = 'htdeaz'

/** Writes are sequential; the digest comes last. */
export function openFrameWriter(write: (octets: Buffer) => Promise<void>) {
  const digest = createHash('sha256')
  let octetsWritten = 0
  const put = async (octets: Buffer) => {
    digest.update(octets)
    octetsWritten += octets.length
    await write(octets)
  }
  const frame = async (kind: FrameKind, octets: Buffer) => {
    const head = Buffer.alloc(headOctets)
    head.write(kind, 'latin1')
    head.writeUInt32BE(octets.length, 1)
    await put(Buffer.concat([head, octets]))
  }
  return {
    begin: () => put(firstLine),
    frame,
    json: (kind: FrameKind, value: unknown) => frame(kind, Buffer.from(JSON.stringify(value))),
    end: () => frame('z', digest.copy().digest()),
    get octetsWritten() {
      return octetsWritten
    },
  }
}

export type FrameWriter = ReturnType<typeof openFrameWriter>

/** Throws a message for the operator if the file is not a backup, or was truncated or changed. All frames read before are then invalid. */
export async function* readFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  const digest = createHash('sha256')
  const iterator = source[Symbol.asyncIterator]()
  let unread: Buffer = Buffer.alloc(0)
  const take = async (octets: number): Promise<Buffer | undefined> => {
    const pieces = [unread]
    let have = unread.length
    while (have < octets) {
      const next = await iterator.next()
      if (next.done) return undefined
      pieces.push(Buffer.from(next.value))
      have += next.value.length
    }
    const all = pieces.length === 1 ? unread : Buffer.concat(pieces)
    unread = all.subarray(octets)
    return all.subarray(0, octets)
  }
  const line = await take(firstLine.length)
  if (!line?.equals(firstLine)) throw new Error('not a backup of postrider backup, or a backup in another format')
  digest.update(line)
  for (;;) {
    const head = await take(headOctets)
    if (!head) throw new Error('the backup is truncated: nothing restored')
    const kind = head.toString('latin1', 0, 1) as FrameKind
    const length = head.readUInt32BE(1)
    if (!kinds.includes(kind) || length > maxFrameLength) throw new Error('the backup is damaged: nothing restored')
    const octets = await take(length)
    if (!octets) throw new Error('the backup is truncated: nothing restored')
    if (kind === 'z') {
      if (!digest.digest().equals(octets)) throw new Error('the backup is damaged (wrong digest): nothing restored')
      return
    }
    digest.update(head).update(octets)
    yield { kind, octets }
  }
}
