/**
 * Divides the spool into shards, so that several processes can own parts of it.
 */

export const shardCount = 64

/** FNV-1a hash of the submission's id, so that all recipients of a submission are in one shard and may share a transaction. */
export function shardOf(contentId: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < contentId.length; index++) {
    hash = Math.imul(hash ^ contentId.charCodeAt(index), 0x01000193)
  }
  return (hash >>> 0) % shardCount
}
