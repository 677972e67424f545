/**
 * Database access: connections and statements, migrations, daily partitions, and the embedded PostgreSQL server.
 * Owns: migrations. Uses: base. Used by: every room.
 * Promises: success means committed; an unknown commit outcome is thrown as its own error; a server left behind by a failover is never
 * written to.
 */
export { type BackupHeader, type BackupProgress, writeBackup } from './backup.ts'
export { durabilityProblems } from './durability.ts'
export { embeddedUrlIfRunning, hasEmbedded, startEmbedded } from './embedded.ts'
export { CommitUnknown, DatabaseUnreachable, NotDurable, refusesContent, sqlState } from './errors.ts'
export { migrate } from './migrate.ts'
export { openDb } from './open.ts'
export { dropPartitions, ensurePartitions, indexPartitions, lacksPartition, makingDays, type PartitionedTable } from './partitions.ts'
export type { Db, Queryable, Session, Tx } from './queryable.ts'
export { type SealedColumns, sealedColumn, sealedColumns } from './resealing.ts'
export { restoreBackup } from './restore.ts'
export { hasRoomToWrite, saysDiskIsFull } from './room.ts'
export { openScratchDatabase } from './scratch.ts'
export { findPostmaster } from './server-process.ts'
export { inSnapshot } from './snapshot.ts'
export { allStatements, type Sql, sql } from './sql.ts'
export { openWriteQueue, type WriteQueueBounds } from './write-queue.ts'
