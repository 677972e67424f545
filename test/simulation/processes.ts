/**
 * The processes of an installation, simulated within this one. Each has its own life, clock and database access, and all run the real
 * engine. A killed process receives no more input, and its output has no effect.
 */
import { type Commit, openAccept, openCommit } from '#accept'
import { type Clock, type Config, type Ids, openIds, openSecrets, type Random, type Secrets, silentLog } from '#base'
import type { SeededRandom } from '#crash-test'
import type { Db } from '#db'
import { type Delivery, startDelivery } from '#delivery'
import { openDomains } from '#domains'
import { startHousekeeping } from '#housekeeping'
import { openLimitSettings } from '#limits'
import type { Post, Resolver } from '#net'
import type { Dial } from '#smtp'
import { deregisterProcess, openWaker, shardLeases } from '#spool'
import { openTenants } from '#tenants'
import { openTracks } from '#tracking'
import { deregisterSender, openPayloadBodies, startSending } from '#webhooks'
import type { Gate } from './serial-database.ts'
import { type Life, openLife, type Time } from './virtual-time.ts'

/** Random bytes drawn from a chance. */
export const randomOf =
  (chance: SeededRandom): Random =>
  (target) => {
    for (let at = 0; at < target.length; at++) target[at] = Math.floor(chance.random() * 256)
    return target
  }

export const simulationSecrets = (random: Random): Secrets => openSecrets('a secret for simulations only', random)

export interface ProcessDeps {
  config: Config
  time: Time
  gate: Gate
  chance: SeededRandom
  /** Connections with the settings of delivery processes, and of all others. */
  real: { delivery: Db; other: Db }
  resolver: Resolver
  dialOf(life: Life): Dial
  postOf(life: Life): Post
  /** Called when a named place of the code is reached. */
  failpoint(place: string, life: Life): void
}

export interface Process {
  readonly life: Life
  readonly kind: 'api' | 'delivery' | 'housekeeping' | 'webhooks'
  readonly clock: Clock
  /** Orderly shutdown. */
  stop(): Promise<void>
}

export interface Api extends Process {
  accept: ReturnType<typeof openAccept>
}

/** The timeouts of the SMTP client are shorter than in production, so that a hanging server costs few steps. */
const smtpBounds = {
  connectMs: 5000,
  greetingMs: 8000,
  commandMs: 8000,
  dataMs: 8000,
  blockMs: 8000,
  finalReplyMs: 15_000,
  tlsMs: 5000,
}

export function openProcesses(deps: ProcessDeps) {
  const { config, time, gate, real, resolver } = deps
  const ids: Ids = openIds(randomOf(deps.chance))
  const secrets = simulationSecrets(randomOf(deps.chance))
  const begin = (kind: Process['kind'], on: Db) => {
    const life = openLife(`${kind}-${ids.token(12)}`)
    const clock = time.clockOf(life)
    const db = gate.dbOf(life, on)
    return { life, clock, db, kind }
  }
  const outsideOf = (life: Life) => ({ resolver, dial: deps.dialOf(life) })

  return {
    ids,
    secrets,
    startApi(): Api {
      const { life, clock, db, kind } = begin('api', real.other)
      const limitSettings = openLimitSettings({ db, clock, config })
      const failpoint = (place: string) => deps.failpoint(place, life)
      const commit: Commit = openCommit({ db, clock, ids, limitSettings, wake: openWaker({ db, clock }), failpoint })
      const accept = openAccept({
        db,
        clock,
        ids,
        tenants: openTenants({ db, clock }),
        domains: openDomains({ db, clock, secrets }),
        tracks: openTracks({ db, clock }),
        limitSettings,
        sandboxSender: config.sandboxSender,
        hostname: config.hostname,
        publicUrl: config.publicUrl,
        commit,
      })
      return { life, clock, kind, accept, stop: async () => life.end() }
    },

    startDelivery(): Process & { ready: Promise<unknown> } {
      const { life, clock, db, kind } = begin('delivery', real.delivery)
      let delivery: Delivery | undefined
      const ready = startDelivery({
        db,
        clock,
        ids,
        log: silentLog,
        secrets,
        domains: openDomains({ db, clock, secrets }),
        tenants: openTenants({ db, clock }),
        config,
        processId: life.name,
        failpoint: (place) => deps.failpoint(place, life),
        outside: outsideOf(life),
        bounds: { smtp: smtpBounds },
      }).then(
        (started) => {
          delivery = started
        },
        // Ends like a process that cannot start; its supervisor starts another.
        () => life.end(),
      )
      return {
        life,
        clock,
        kind,
        ready,
        async stop() {
          await ready
          await delivery?.stop()
          life.end()
        },
      }
    },

    startHousekeeping(): Process {
      const { life, clock, db, kind } = begin('housekeeping', real.other)
      const limitSettings = openLimitSettings({ db, clock, config })
      const { hostname } = config
      const housekeeping = startHousekeeping({
        db,
        clock,
        // The machine of the database has the right time.
        databaseNowMs: async () => time.wallMs,
        log: silentLog,
        resolver,
        hostname,
        keep: config,
        autoPause: config,
        limitSettings,
      })
      return {
        life,
        clock,
        kind,
        async stop() {
          await (await housekeeping).stop()
          life.end()
        },
      }
    },

    startWebhooks(): Process {
      const { life, clock, db, kind } = begin('webhooks', real.other)
      const post = deps.postOf(life)
      const sending = startSending({
        db,
        clock,
        ids,
        log: silentLog,
        secrets,
        post,
        bodies: openPayloadBodies({ db }),
        config,
        version: 'simulation',
        processId: life.name,
      }).catch(() => {
        life.end()
        return undefined
      })
      return {
        life,
        clock,
        kind,
        async stop() {
          await (await sending)?.stop()
          life.end()
        },
      }
    },

    /** The action of a supervisor that is still alive: the others need not wait to detect the end of the process. */
    async forget({ kind, life }: Process, on: Db): Promise<void> {
      if (kind === 'delivery') await deregisterProcess(on, shardLeases, life.name)
      if (kind === 'webhooks') await deregisterSender(on, life.name)
    },
  }
}

export type Processes = ReturnType<typeof openProcesses>
