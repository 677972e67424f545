/**
 * Database access: connections and statements, migrations, daily partitions, and the embedded PostgreSQL server.
 * Owns: migrations. Uses: base. Used by: every module.
 * Promises: success means committed; an unknown commit outcome is thrown as its own error; a server left behind by a failover is never
 * written to.
 */
export { type BackupHeader, type BackupProgress, writeBackup } from './backup.ts'
export { BatchWriter } from './batch-writer.ts'
export { commitRecord } from './commit-record.ts'
export { findLock } from './data-directory-lock.ts'
export { databaseNowMs } from './database-clock.ts'
export { hasRoomToWrite, saysDiskIsFull } from './disk-space.ts'
export { claimOfDue, DueClaims } from './due-claims.ts'
export { durabilityProblems } from './durability-settings.ts'
export { embeddedUrlIfRunning, hasEmbedded, startEmbedded } from './embedded.ts'
export { findPostmaster } from './embedded-process.ts'
export {
  CommitUnknown,
  DatabaseUnreachable,
  isContentRejected,
  isUniqueViolation,
  NotDurable,
  sqlState,
} from './errors.ts'
export { readLockRoom } from './lock-room.ts'
export { migrate } from './migrate.ts'
export { openDb } from './open-database.ts'
export {
  dropPartitions,
  ensurePartitions,
  indexPartitions,
  isMissingPartition,
  listRowRanges,
  type PartitionedTable,
  withPartitions,
} from './partitions.ts'
export { withProcessLock } from './process-lock.ts'
export type { Db, DbSession, Queryable, Tx } from './queryable.ts'
export { inSnapshot, searchInSnapshot } from './read-snapshot.ts'
export { refuseCopiedLog } from './refuse-copied-log.ts'
export { type SealedColumns, type SealedValue, sealedColumn, sealedColumns } from './reseal-columns.ts'
export { resolveUnknown, StillUnknown } from './resolve-unknown.ts'
export { restoreBackup } from './restore.ts'
export { openScratchDatabase } from './scratch-database.ts'
export { allStatements, type ColumnTypes, type Sql, sql } from './sql-tag.ts'
export { WriteQueue, type WriteQueueBounds } from './write-queue.ts'
