/** Collects a message's bytes within a memory budget for all messages being received and accepted. */
import type { SMTPServerDataStream } from 'smtp-server/lib/types.js'
import type { MemoryBudget } from './memory-budget.ts'
import { ReplyError, tryLater } from './smtp-replies.ts'

/** Most messages are smaller. */
const firstOctets = 16_384

const noRoom = () => new ReplyError(452, '4.3.1', 'Insufficient storage for this message, try again later')

/**
 * Passes the whole message to `use`, and returns its memory to the budget when that has settled. `answerIn` may answer the client before: the
 * work then still has the message. Bytes above `largest` are discarded, and the message is refused (552). Without memory, or if it loses its
 * memory to another message, it is refused with 452. Rejects if the connection ends first, when no client can receive a reply.
 */
export async function collect<T>(
  stream: SMTPServerDataStream,
  { largest, budget, address }: { largest: number; budget: MemoryBudget; address: string },
  use: (octets: Buffer) => Promise<T>,
  answerIn: (work: Promise<T>) => Promise<T> = (work) => work,
): Promise<T> {
  let held = 0
  let kept = Buffer.alloc(0)
  let refused: ReplyError | undefined
  const drop = (reply: ReplyError) => {
    refused = reply
    kept = Buffer.alloc(0)
    held = 0
    memory.release()
  }
  const memory = budget.open(address, () => drop(noRoom()))
  /** One buffer: a client may send single octets, and a chunk for each would take a hundred times the memory. */
  const keep = (chunk: Buffer) => {
    const end = held + chunk.length
    if (end > kept.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(largest, Math.max(firstOctets, 2 * end)))
      kept.copy(larger, 0, 0, held)
      kept = larger
    }
    chunk.copy(kept, held)
    held = end
  }
  try {
    await new Promise<void>((resolve, reject) => {
      stream.on('data', (chunk: Buffer) => {
        if (refused) return
        if (held + chunk.length > largest) drop(new ReplyError(552, '5.3.4', `Message is larger than ${largest} octets`))
        else if (!memory.take(chunk.length)) drop(noRoom())
        else keep(chunk)
      })
      stream.once('end', resolve)
      for (const end of ['error', 'close']) stream.once(end, () => reject(tryLater()))
    })
    if (refused) throw refused
  } catch (error) {
    memory.release()
    throw error
  }
  memory.keep()
  const work = use(kept.subarray(0, held))
  const release = () => memory.release()
  work.then(release, release)
  return answerIn(work)
}
