/**
 * Deletes contents that no queued email needs. A retry that commits meanwhile keeps its content: the contents are locked before the queue
 * is read for the last time.
 */
import type { Db } from '#db'
import { type ErasedContent, eraseContents, lockContents } from '#emails'
import { contentsStillQueued } from '#spool'

export interface UnneededContents {
  deleted: number
  /** Queued emails need them. */
  kept: number
}

export async function eraseUnneededContents(db: Db, contents: readonly ErasedContent[]): Promise<UnneededContents> {
  const queued = await contentsStillQueued(db, contents)
  const free = contents.filter(({ contentId }) => !queued.has(contentId))
  if (free.length === 0) return { deleted: 0, kept: contents.length }
  return db.transaction(async (tx) => {
    const locked = await lockContents(tx, free)
    const retried = await contentsStillQueued(tx, locked)
    const unneeded = locked.filter(({ contentId }) => !retried.has(contentId))
    const kept = contents.length - free.length + locked.length - unneeded.length
    return { deleted: await eraseContents(tx, unneeded), kept }
  })
}
