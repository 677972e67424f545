/**
 * The operator and the supervisor: they start processes, restart them when they die, change their number, and give the operator's orders.
 */
import type { SeededRandom } from '#crash-test'
import type { Db } from '#db'
import { pauseQueue, pauseTenant, resumePaused, resumeTenant } from '#delivery'
import type { Ledger } from './ledger.ts'
import type { Api, Process, Processes } from './processes.ts'
import type { Doing, Scenario } from './scenario.ts'
import type { Tenancy } from './seed-databases.ts'
import type { Gate } from './serial-database.ts'
import type { Life, Time } from './virtual-time.ts'
import type { Receivers } from './webhook-receivers.ts'

export interface Operators {
  processes: () => readonly Process[]
  apis: () => Api[]
  begin: () => void
  act(doing: Exclude<Doing, { kind: 'send' | 'strike' }>): void
  kill: (process: Process) => void
  restart: (process: Process) => void
  endProcesses(): void
  endAll(): void
  /** True while a process is about to start or an order is being carried out. */
  readonly isPending: boolean
  readonly pausedDomains: ReadonlySet<string>
  readonly pausedTenants: ReadonlySet<string>
  /** Runs until webhooks have received every event, or should have. */
  drain(deps: { settle: () => Promise<void>; receivers: Receivers; isHeard: () => boolean }): Promise<void>
}

export interface OperatorsDeps {
  chance: SeededRandom
  time: Time
  /** The life of the simulated world. */
  self: Life
  gate: Gate
  ledger: Ledger
  processes: Processes
  real: { other: Db }
  scenario: Scenario
  tenants: readonly Tenancy[]
}

const orderAgainMs = 500
/** Delivery begins this long after the queue is filled. */
export const floodDeliversMs = 3000

export function openOperators(deps: OperatorsDeps): Operators {
  const { chance, time, self, ledger, scenario, tenants } = deps
  const clock = time.clockOf(self)
  const db = deps.gate.dbOf(self, deps.real.other)
  let all: Process[] = []
  let pending = 0
  let wanted = scenario.processes.delivery
  const pausedDomains = new Set<string>()
  const pausedTenants = new Set<string>()

  const later = (ms: number, act: () => void) => {
    pending++
    clock.after(ms, () => {
      pending--
      act()
    })
  }
  const start = (kind: Process['kind']) => {
    const { processes } = deps
    const started =
      kind === 'api'
        ? processes.startApi()
        : kind === 'delivery'
          ? processes.startDelivery()
          : kind === 'webhooks'
            ? processes.startWebhooks()
            : processes.startHousekeeping()
    all = [...all.filter(({ life }) => !life.isOver), started]
    ledger.tell(`starts: ${started.life.name}`)
    // Replaces a process that ends because it could not start.
    started.life.onEnd(() => {
      if (all.includes(started)) replace(started)
    })
  }
  const replace = (process: Process) => {
    all = all.filter((one) => one !== process)
    // A supervisor that is still alive informs the others at once; otherwise they find out themselves.
    if (chance.random() < 0.5) later(1, () => order(() => deps.processes.forget(process, db)))
    const living = all.filter(({ kind }) => kind === 'delivery').length
    if (process.kind === 'delivery' && living >= wanted) return
    later(chance.between(50, 3000), () => start(process.kind))
  }
  /** Repeats the order until it succeeds. */
  const order = (act: () => Promise<unknown>) => {
    pending++
    act().then(
      () => pending--,
      () =>
        clock.after(orderAgainMs, () => {
          pending--
          order(act)
        }),
    )
  }
  const endProcesses = () => {
    const ending = all
    all = []
    for (const { life } of ending) life.end()
  }
  const restart = (process: Process) => {
    pending++
    let isOver = false
    const end = () => {
      if (!isOver) pending--
      isOver = true
    }
    // A process killed during its orderly shutdown never completes it, and one that fails to complete it ends all the same.
    process.life.onEnd(end)
    process.stop().then(end, () => process.life.end())
  }

  return {
    pausedDomains,
    pausedTenants,
    processes: () => all,
    apis: () => all.filter((one): one is Api => one.kind === 'api' && !one.life.isOver && !one.life.isFrozen),
    get isPending() {
      return pending > 0
    },
    begin() {
      for (let n = 0; n < scenario.processes.api; n++) start('api')
      for (let n = 0; n < scenario.processes.webhooks; n++) start('webhooks')
      start('housekeeping')
      for (let n = 0; n < wanted; n++) {
        if (scenario.floods) later(floodDeliversMs, () => start('delivery'))
        else start('delivery')
      }
    },
    kill(process) {
      // The end of its life triggers the replacement.
      process.life.end()
    },
    restart,
    act(doing) {
      const nowMs = time.wallMs
      switch (doing.kind) {
        case 'pause tenant':
        case 'resume tenant': {
          const { tenantId } = tenants[doing.tenant] as Tenancy
          ledger.tell(`${doing.kind} ${tenantId}`)
          const isPause = doing.kind === 'pause tenant'
          order(async () => {
            if (isPause) await pauseTenant(db, tenantId, { reason: 'to see', by: 'operator' }, nowMs)
            else await resumeTenant(db, tenantId, nowMs)
            if (isPause) pausedTenants.add(tenantId)
            else pausedTenants.delete(tenantId)
          })
          return
        }
        case 'pause destination':
        case 'resume destination': {
          const { domain } = doing
          ledger.tell(`${doing.kind} ${domain}`)
          const isPause = doing.kind === 'pause destination'
          const place = { tenantId: '', kind: 'destination' as const, name: domain }
          if (isPause) pausedDomains.add(domain)
          order(async () => {
            if (isPause) await pauseQueue(db, place, 'to see', nowMs)
            else await resumePaused(db, place, nowMs)
            if (!isPause) pausedDomains.delete(domain)
          })
          return
        }
        case 'scale': {
          const { count } = doing
          ledger.tell(`${count} delivery processes`)
          wanted = count
          const living = all.filter(({ kind }) => kind === 'delivery')
          for (let n = living.length; n < count; n++) start('delivery')
          for (const process of living.slice(count)) restart(process)
        }
      }
    },
    endProcesses,
    endAll() {
      endProcesses()
      self.end()
    },
    async drain({ settle, receivers, isHeard }) {
      // Longer than the detection of a dead process and the longest wait between two attempts of a request.
      for (let turn = 0; turn < 80 && !isHeard(); turn++) {
        time.advance(600, 3_600_000)
        await settle()
        for (let step = 0; step < 3 || receivers.open > 0; step++) {
          time.advance(250)
          await settle()
        }
      }
    },
  }
}
