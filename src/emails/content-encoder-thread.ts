/**
 * The thread that encodes large contents.
 */
import { serveTasks } from '#base'
import { type Content, encodeContent } from './content.ts'

serveTasks((content: Content) => {
  // A separate buffer, which can be transferred.
  const result = new Uint8Array(encodeContent(content))
  return { result, transfer: [result.buffer] }
})
