/**
 * The certificates of all names, for the listeners of one process: a change in the database is in use within seconds, without a restart. A
 * name without a certificate costs no query.
 */
import { createSecureContext, type SecureContext } from 'node:tls'
import { LRUCache } from 'lru-cache'
import { type Clock, type Log, type Secrets, startLoop } from '#base'
import type { Db } from '#db'
import { type CertificateWithKey, certificatesChanged, findKeyPair, listVersions } from './certificate-records.ts'

export interface CertificateStore {
  has(name: string): boolean
  /** The TLS context of a name; undefined if it has no certificate. */
  contextOf(name: string): Promise<SecureContext | undefined>
  find(name: string): Promise<CertificateWithKey | undefined>
  /** Calls `changed` after each change of any name. */
  onChange(changed: () => void): void
  stop(): Promise<void>
}

/** Notifications are a hint only. */
const readEveryMs = 10_000
const maxContexts = 1000

interface Loaded {
  issuedMs: number
  context: SecureContext
}

/** Resolves when the first read is done. */
export async function openCertificateStore(deps: { db: Db; clock: Clock; log: Log; secrets: Secrets }): Promise<CertificateStore> {
  const { db, clock, log, secrets } = deps
  /** Name → issue time in milliseconds since the epoch. */
  let known = new Map<string, number>()
  const loaded = new LRUCache<string, Loaded>({ max: maxContexts })
  const loading = new Map<string, Promise<SecureContext | undefined>>()
  const listeners: (() => void)[] = []

  const read = async () => {
    const found = new Map((await listVersions(db)).map(({ name, issuedAt }) => [name, issuedAt.getTime()]))
    const isSame = found.size === known.size && [...found].every(([name, issuedMs]) => known.get(name) === issuedMs)
    known = found
    if (!isSame) for (const changed of listeners) changed()
  }
  const load = async (name: string): Promise<SecureContext | undefined> => {
    const found = await findKeyPair(db, secrets, name)
    if (!found) return undefined
    const context = createSecureContext({ cert: found.cert, key: found.key, minVersion: 'TLSv1.2' })
    loaded.set(name, { issuedMs: found.issuedAt.getTime(), context })
    return context
  }

  await read()
  const loop = startLoop({ clock, log, name: 'reading certificates', everyMs: readEveryMs }, read)
  const stopListening = await db.listen(certificatesChanged, () => loop.nudge(), { onReconnect: () => loop.nudge() })
  return {
    has: (name) => known.has(name),
    async contextOf(name) {
      const issuedMs = known.get(name)
      if (issuedMs === undefined) return undefined
      const before = loaded.get(name)
      if (before?.issuedMs === issuedMs) return before.context
      const work = loading.get(name) ?? load(name).finally(() => loading.delete(name))
      loading.set(name, work)
      // While the database is unavailable, the former certificate stays in use.
      return work.catch((error: unknown) => {
        if (!before) throw error
        return before.context
      })
    },
    async find(name) {
      return known.has(name) ? findKeyPair(db, secrets, name) : undefined
    },
    onChange: (changed) => void listeners.push(changed),
    async stop() {
      await Promise.all([loop.stop(), stopListening()])
    },
  }
}
