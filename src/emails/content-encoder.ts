/**
 * Encodes contents, large ones on a separate thread, because 14 MB take a tenth of a second or more.
 */
import { type Clock, openThread } from '#base'
import { type Content, encodeContent } from './content.ts'

export interface ContentEncoder {
  /** `sizeOctets`: the approximate size. Contents of the same tenant wait for each other. */
  encode(content: Content, about: { tenantId: string; sizeOctets: number }): Promise<Buffer>
}

/** Encoded at once, in about a millisecond. */
const smallOctets = 262_144
const encodedWithinMs = 20_000
const idleMs = 10_000

export function openContentEncoder(clock: Clock): ContentEncoder {
  const file = new URL('./content-encoder-thread.ts', import.meta.url)
  const thread = openThread<Content, Uint8Array>(file, { clock, deadlineMs: encodedWithinMs, idleMs })
  return {
    async encode(content, { tenantId, sizeOctets }) {
      if (sizeOctets <= smallOctets) return encodeContent(content)
      const encoded = await thread.run(tenantId, content)
      return Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength)
    },
  }
}
