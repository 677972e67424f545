/** The thread on which large contents are encoded. */
import { serveTasks } from '#base'
import { type Content, encodeContent } from './content.ts'

serveTasks((content: Content) => {
  // Of memory of its own, which can be handed over.
  const result = new Uint8Array(encodeContent(content))
  return { result, transfer: [result.buffer] }
})
