/**
 * The thread that reads received messages, one after the other.
 */
import { serveTasks } from '#base'
import type { ToRead } from '#returns'
import { type ReceivedParts, readReceivedMail } from './read-received-mail.ts'

serveTasks(({ octets, atMs }: ToRead): { result: ReceivedParts } => ({
  result: readReceivedMail(Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength), atMs),
}))
