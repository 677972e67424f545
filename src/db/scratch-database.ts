/** A temporary, fully migrated database for tools that inspect the schema; `close` removes it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog, systemClock } from '#base'
import { connectDatabase } from './connection.ts'
import { hostsOf } from './database-hosts.ts'
import { startEmbedded } from './embedded.ts'
import { migrate } from './migrate.ts'
import { openDb } from './open-database.ts'

export async function openScratchDatabase(): Promise<{ query<Row>(text: string): Promise<Row[]>; close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-scratch-'))
  const embedded = await startEmbedded({ folder, clock: systemClock, log: silentLog, settingsForTests: ['fsync=off'] })
  const removed = async () => {
    await embedded.stop()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const db = await openDb({ url: embedded.url, poolSize: 1, applicationName: 'postrider scratch' })
    try {
      await migrate(db, systemClock)
    } finally {
      await db.close()
    }
    const [host] = hostsOf(embedded.url)
    if (!host) throw new Error('the embedded server has no address')
    const connection = await connectDatabase(host, { applicationName: 'postrider scratch' })
    return {
      query: async <Row>(text: string) => (await connection.script<Row>(text)).rows,
      async close() {
        await connection.end()
        await removed()
      },
    }
  } catch (error) {
    await removed()
    throw error
  }
}
