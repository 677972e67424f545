/**
 * The thread that reads reports, one message after the other.
 */
import { serveTasks } from '#base'
import { readReport } from '#bounces'
import { type Reading, readingOf } from './read-returned-mail.ts'
import type { ToRead } from './report-reader.ts'

serveTasks(({ octets, ...facts }: ToRead): { result: Reading } => ({
  result: readingOf(Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength), facts, readReport),
}))
