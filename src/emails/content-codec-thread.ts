/**
 * The thread that encodes and decodes large contents.
 */
import { serveTasks } from '#base'
import { type Content, decodeContent, encodeContent } from './content.ts'
import type { CodecTask } from './content-codec.ts'

serveTasks<CodecTask, Uint8Array | Content>((task) => {
  if ('body' in task) return { result: decodeContent(task.body) }
  // A separate buffer, which can be transferred.
  const result = new Uint8Array(encodeContent(task.content))
  return { result, transfer: [result.buffer] }
})
