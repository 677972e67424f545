/**
 * Whether the disk under the tables has room for what is to be written. PostgreSQL answers reads with a full disk, and small writes that fit
 * in pages it has, so only a file that must grow tells.
 */
import { sqlState } from './errors.ts'
import type { Db } from './queryable.ts'

/** Of a table that no other session ever sees: unlogged, so that it costs the transaction log nothing, and rolled back. */
const growAFile = `
  create unlogged table write_probe (filler text);
  insert into write_probe select repeat('x', 1000) from generate_series(1, 1000)`

const diskFull = '53100'

/** The server's own word that it had no room for a write. */
export const saysDiskIsFull = (error: unknown): boolean => sqlState(error) === diskFull

/** Rejects with what else goes wrong. */
export async function hasRoomToWrite(db: Db): Promise<boolean> {
  const enough = new Error('there is room')
  try {
    await db.transaction(async (tx) => {
      await tx.script(growAFile)
      throw enough
    })
  } catch (error) {
    if (error === enough) return true
    if (saysDiskIsFull(error)) return false
    throw error
  }
  return true
}
