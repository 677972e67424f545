/** The database of one seed, with connections that can be closed and reopened, to it or to a copy of it. */
import { type Db, openDb } from '#db'
import type { Store } from './seed-databases.ts'

export interface Databases {
  /** Connections with the query planner settings of delivery processes, and of all others. */
  delivery: Db
  other: Db
  /** Copies the current state of the database; no work may be in progress. */
  backUp(): Promise<void>
  /** Replaces the database by the copy. */
  restore(): Promise<void>
  close(): Promise<void>
}

const hotSettings = '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c jit=off'

export async function openDatabases(store: Store): Promise<Databases> {
  const copies = [await store.copy()]
  let url = (copies[0] as { url: string }).url
  let pools = await open()
  let backup: { name: string; url: string } | undefined

  async function open() {
    const hot = `${url}${url.includes('?') ? '&' : '?'}options=${encodeURIComponent(hotSettings)}`
    const delivery = await openDb({ url: hot, poolSize: 3, applicationName: 'simulated delivery' })
    return { delivery, other: await openDb({ url, poolSize: 4, applicationName: 'simulated others' }) }
  }
  const close = () => Promise.all([pools.delivery.close(), pools.other.close()])
  const through = (which: 'delivery' | 'other'): Db => ({
    scope: 'database',
    rows: (...asked) => pools[which].rows(...asked),
    first: (...asked) => pools[which].first(...asked),
    run: (...asked) => pools[which].run(...asked),
    script: (...asked) => pools[which].script(...asked),
    transaction: (...asked) => pools[which].transaction(...asked),
    listen: (...asked) => pools[which].listen(...asked),
    notify: (...asked) => pools[which].notify(...asked),
    session: () => pools[which].session(),
    get interruptions() {
      return pools[which].interruptions
    },
    close: async () => {},
  })
  return {
    delivery: through('delivery'),
    other: through('other'),
    async backUp() {
      await close()
      const copy = await store.copy(copies[0]?.name)
      copies.push(copy)
      backup = copy
      pools = await open()
    },
    async restore() {
      if (!backup) throw new Error('there is no backup to restore')
      await close()
      url = backup.url
      pools = await open()
    },
    async close() {
      await close()
      for (const { drop } of copies) await drop()
    },
  }
}
