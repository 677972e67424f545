/**
 * Encodes and decodes contents, large ones on a separate thread, because 14 MB take a tenth of a second or more.
 */
import { type Clock, openThread } from '#base'
import { type Content, decodeContent, encodeContent } from './content.ts'
import { jsonOctets } from './stored-content.ts'

/** Contents of the same tenant wait for each other. Both reject with `TookTooLong` on an overloaded machine. */
export interface ContentCodec {
  /** `sizeOctets`: the approximate size. */
  encode(content: Content, about: { tenantId: string; sizeOctets: number }): Promise<Buffer>
  decode(body: Buffer, tenantId: string): Promise<Content>
}

/** A content to encode, or one to decode. */
export type CodecTask = { content: Content } | { body: Uint8Array }

/** Encoded or decoded at once, in about a millisecond. */
const smallOctets = 262_144
const doneWithinMs = 20_000
const idleMs = 10_000

export function openContentCodec(clock: Clock): ContentCodec {
  const file = new URL('./content-codec-thread.ts', import.meta.url)
  const thread = openThread<CodecTask, Uint8Array | Content>(file, { clock, deadlineMs: doneWithinMs, idleMs })
  return {
    async encode(content, { tenantId, sizeOctets }) {
      if (sizeOctets <= smallOctets) return encodeContent(content)
      const encoded = (await thread.run(tenantId, { content })) as Uint8Array
      return Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength)
    },
    async decode(body, tenantId) {
      return jsonOctets(body, body.length) <= smallOctets ? decodeContent(body) : ((await thread.run(tenantId, { body })) as Content)
    },
  }
}
