/**
 * Checks whether the tables' disk has free space for writes. On a full disk, PostgreSQL still answers reads and small writes that fit into
 * existing pages, so the check must grow a file.
 */
import { sqlState } from './errors.ts'
import type { Db } from './queryable.ts'

/** Uses a table that no other session sees: unlogged, so that it adds no WAL records, and rolled back. */
const growAFile = `
  create unlogged table write_probe (filler text);
  insert into write_probe select repeat('x', 1000) from generate_series(1, 1000)`

const diskFull = '53100'

/** The server reported that the disk is full. */
export const saysDiskIsFull = (error: unknown): boolean => sqlState(error) === diskFull

/** Rejects with any other error. */
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
