/** A database with an event log, webhooks and sending processes, for tests of sending. The events are invented, all else is real. */
import { type Clock, openIds, silentLog, systemClock, systemRandom } from '#base'
import type { Db } from '#db'
import { appendEvents, type EventKind, type NewEvent } from '#events'
import { ensureUpcomingPartitions } from '#housekeeping'
import type { Post } from '#net'
import { createOrganisation, openTenants } from '#tenants'
import { type Bodies, openWebhooks, type Sending, startSending, type Webhooks } from '#webhooks'
import { testDatabase } from './database.ts'
import { loopbackPost, plainBodies, sendingConfig, sendingSecrets } from './webhook-sender-parts.ts'

const ids = openIds(systemRandom)

export interface SendingService extends AsyncDisposable {
  url: string
  db: Db
  tenantId: string
  webhooks: Webhooks
  /** Appends events in one transaction, by default for this tenant. */
  happen(...events: (Partial<NewEvent> & { n?: number })[]): Promise<void>
  start(given?: { db?: Db; clock?: Clock; post?: Post; bodies?: Bodies }): Promise<Sending>
}

export async function startSendingService(): Promise<SendingService> {
  const database = await testDatabase()
  const { db, url } = database
  const clock = systemClock
  await ensureUpcomingPartitions(db, clock.nowMs())
  const founded = { nowMs: clock.nowMs(), ids, name: 'House', secretFingerprint: sendingSecrets.fingerprint }
  const tenant = await db.transaction((tx) => createOrganisation(tx, founded))
  const tenants = openTenants({ db, clock })
  const deps = { db, clock, ids, secrets: sendingSecrets, config: sendingConfig, version: 'test' }
  const running: Sending[] = []
  return {
    url,
    db,
    tenantId: tenant.id,
    webhooks: openWebhooks({ ...deps, random: systemRandom, tenants, post: loopbackPost() }),
    async happen(...events) {
      const made = events.map(({ n = 0, ...given }) => ({
        tenantId: tenant.id,
        kind: 'MessageSent' as EventKind,
        emailId: null,
        at: new Date(clock.nowMs()),
        data: { n },
        ...given,
      }))
      await db.transaction((tx) => appendEvents(tx, made))
    },
    async start({ db = deps.db, clock = systemClock, post = loopbackPost({ clock }), bodies = plainBodies } = {}) {
      const sending = await startSending({ ...deps, db, clock, log: silentLog, post, bodies, processId: `test-${ids.label(8)}` })
      running.push(sending)
      return sending
    },
    async [Symbol.asyncDispose]() {
      for (const sending of running) await sending.stop()
      await database.close()
    },
  }
}
