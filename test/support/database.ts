/** A database for one test: migrated, with partitions around `testTimeMs` and around today, and dropped after the test. */
import { inject } from 'vitest'
import { openIds, systemRandom } from '#base'
import { type Db, openDb } from '#db'
import { databaseAt } from './database-url.ts'

/** The start time of tests with their own clock: noon of 20 November 2026, UTC. */
export const testTimeMs = Date.UTC(2026, 10, 20, 12)

const poolSize = 10
const ids = openIds(systemRandom)

export interface TestDatabase extends AsyncDisposable {
  /** The address for a superuser. */
  url: string
  db: Db
  close(): Promise<void>
}

export async function testDatabase(): Promise<TestDatabase> {
  const serverUrl = inject('serverUrl')
  const name = `postrider_test_${ids.label(12)}`
  const admin = await openDb({ url: databaseAt(serverUrl, 'postgres'), poolSize: 1, applicationName: 'tests' })
  // Copied files take 150 ms. The default strategy writes each page of the partitions to the log: 900 ms.
  await admin.script(`create database ${name} template ${inject('templateName')} strategy file_copy`)
  const url = databaseAt(serverUrl, name)
  const db = await openDb({ url, poolSize, applicationName: 'test' })
  const close = async () => {
    await db.close()
    await admin.script(`drop database if exists ${name} with (force)`)
    await admin.close()
  }
  return { url, db, close, [Symbol.asyncDispose]: close }
}
