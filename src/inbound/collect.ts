/** The octets of a message, kept within what all messages being received and accepted together may occupy. */
import type { SMTPServerDataStream } from 'smtp-server/lib/types.js'
import { Reply, tryLater } from './reply.ts'

/** Room for all messages in the memory of this process. */
const roomOctets = 268_435_456

export interface Room {
  /** Whether there was room; to be given back. */
  take(octets: number): boolean
  giveBack(octets: number): void
}

export function openRoom(capacity = roomOctets): Room {
  let free = capacity
  return {
    take(octets) {
      if (octets > free) return false
      free -= octets
      return true
    },
    giveBack(octets) {
      free += octets
    },
  }
}

/**
 * Gives `use` the whole message and its room back afterwards. What is over `largest` is read and dropped, and refused (552); without
 * room the message is too (452). Rejects when the connection ends first, though nobody hears it.
 */
export async function collect<T>(
  stream: SMTPServerDataStream,
  { largest, room }: { largest: number; room: Room },
  use: (octets: Buffer) => Promise<T>,
): Promise<T> {
  let held = 0
  let chunks: Buffer[] = []
  let refused: Reply | undefined
  const drop = (reply: Reply) => {
    refused = reply
    chunks = []
    room.giveBack(held)
    held = 0
  }
  try {
    await new Promise<void>((resolve, reject) => {
      stream.on('data', (chunk: Buffer) => {
        if (refused) return
        if (held + chunk.length > largest) drop(new Reply(552, '5.3.4', `Message is larger than ${largest} octets`))
        else if (!room.take(chunk.length)) drop(new Reply(452, '4.3.1', 'No room for this message now, try again later'))
        else {
          chunks.push(chunk)
          held += chunk.length
        }
      })
      stream.once('end', resolve)
      for (const end of ['error', 'close']) stream.once(end, () => reject(tryLater()))
    })
    if (refused) throw refused
    return await use(Buffer.concat(chunks, held))
  } finally {
    room.giveBack(held)
  }
}
