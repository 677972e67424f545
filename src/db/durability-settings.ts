/**
 * Checks the server settings that durability depends on (reliability 2.5): with other values, a power cut or a failover can lose accepted
 * mail.
 */
import type { Queryable } from './queryable.ts'
import { sql } from './sql-tag.ts'

interface Settings {
  fsync: string
  fullPageWrites: string
  synchronousCommit: string
  standbys: string
  /** Standbys that receive the log now. */
  connected: number
}

const durabilitySettings = sql<Settings>`
  select current_setting('fsync') as fsync, current_setting('full_page_writes') as "fullPageWrites",
    current_setting('synchronous_commit') as "synchronousCommit", current_setting('synchronous_standby_names') as standbys,
    (select count(*) from pg_stat_replication) as connected`

/** Returns a message for the operator for each unsafe setting; empty if all are safe. */
export async function durabilityProblems(db: Queryable): Promise<string[]> {
  const settings = await db.first(durabilitySettings)
  if (!settings) return []
  const problems: string[] = []
  const lost = 'can lose accepted emails'
  if (settings.fsync !== 'on') problems.push(`PostgreSQL runs with fsync = ${settings.fsync}: a power cut ${lost}. Set fsync = on.`)
  if (settings.fullPageWrites !== 'on') {
    problems.push(`PostgreSQL runs with full_page_writes = ${settings.fullPageWrites}: a power cut ${lost}. Set full_page_writes = on.`)
  }
  if (settings.synchronousCommit === 'off') problems.push(`PostgreSQL runs with synchronous_commit = off: a crash ${lost}. Set it to on.`)
  if (settings.synchronousCommit === 'local' && settings.standbys !== '') {
    problems.push(`PostgreSQL has synchronous standbys but synchronous_commit = local: a failover ${lost}. Set it to on.`)
  }
  if (settings.standbys === '' && settings.connected > 0) {
    problems.push(
      `PostgreSQL has ${settings.connected === 1 ? 'a standby' : 'standbys'} but none is synchronous: a failover ${lost}. Set synchronous_standby_names, or synchronous_mode in Patroni.`,
    )
  }
  return problems
}
