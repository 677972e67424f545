/**
 * The faults of a scenario. An armed fault strikes some operations or steps later, so that its victim has work in flight. In a healed world
 * no fault is armed and all parts work again.
 */
import type { SeededRandom } from '#crash-test'
import type { Ledger } from './ledger.ts'
import type { Process } from './processes.ts'
import type { Doing, StrikeKind } from './scenario.ts'
import type { Fate, GatedStatement } from './serial-database.ts'
import type { Life, Time } from './virtual-time.ts'

type Strike = Extract<Doing, { kind: 'strike' }>

interface Armed extends Strike {
  left: number
}

export interface Faults {
  arm(strike: Strike): void
  fateOf(asked: GatedStatement): Fate
  /** Called at each step, for the faults that need no operation. `isAtWork`: a process has work in flight, so a fault has an effect. */
  amid(isAtWork: boolean): void
  failpoint(place: string, life: Life): void
  heal(): void
  /** An armed fault, or the end of one, is still to come. */
  readonly isPending: boolean
  /** The database is unreachable for all processes, or for one. */
  isAwayFor(life: Life): boolean
}

export interface FaultsDeps {
  chance: SeededRandom
  time: Time
  self: Life
  ledger: Ledger
  leaseMs: number
  processes(): readonly Process[]
  /** Ends the process at once and has another one started. */
  kill(process: Process): void
  restart(process: Process): void
}

const fates: Partial<Record<StrikeKind, Fate>> = {
  'dies before': 'dies before',
  'dies inside': 'dies inside',
  'dies after': 'dies after',
  'freezes after': 'freezes after',
}

const maxPendingMs = 60_000

export function openFaults(deps: FaultsDeps): Faults {
  const { chance, time, self, ledger } = deps
  const clock = time.clockOf(self)
  let armed: (Armed & { untilMs: number })[] = []
  let awayUntilMs = 0
  let fullUntilMs = 0
  const cutOff = new Map<Life, number>()
  const frozen = new Map<Life, number>()
  let isHealed = false
  let isAtWork = false

  const kindOf = (life: Life) => deps.processes().find((one) => one.life === life)?.kind
  const disarm = (one: Armed) => {
    armed = armed.filter((other) => other !== one)
  }
  const victims = (victim: Process['kind']) =>
    deps.processes().filter(({ kind, life }) => kind === victim && !life.isOver && !life.isFrozen)
  /** Most processes resume about when others consider their work lost. */
  const thawLater = (life: Life, givenMs: number) => {
    const forMs = chance.random() < 0.7 ? deps.leaseMs + chance.between(0, 4000) : givenMs
    frozen.set(life, time.monotonicMs + forMs)
    clock.after(forMs, () => {
      frozen.delete(life)
      if (!life.isOver) ledger.tell(`goes on: ${life.name}`)
      life.thaw()
    })
  }
  const killed = (life: Life) => {
    const process = deps.processes().find((one) => one.life === life)
    if (process) deps.kill(process)
  }

  /** These faults need no operation of their victim. */
  const strikeNow = (one: Armed) => {
    const victim = chance.pick(victims(one.victim))
    switch (one.what as string) {
      case 'database away':
        awayUntilMs = time.monotonicMs + one.forMs
        ledger.tell(`the database is away for ${one.forMs} ms`)
        return true
      case 'disk full':
        fullUntilMs = time.monotonicMs + one.forMs
        ledger.tell(`the disk is full for ${one.forMs} ms`)
        return true
      case 'machine dies':
        for (const process of deps.processes().filter(({ life }) => !life.isOver)) {
          ledger.strike('dies with its machine', process.life)
          deps.kill(process)
        }
        return true
      default:
        break
    }
    if (!victim) return false
    const { life } = victim
    switch (one.what as string) {
      case 'partition':
        cutOff.set(life, time.monotonicMs + one.forMs)
        ledger.strike('cut off from the database', life)
        return true
      case 'dies amid':
        ledger.strike('dies', life)
        deps.kill(victim)
        return true
      case 'freezes amid':
        ledger.strike('freezes', life)
        life.freeze()
        thawLater(life, one.forMs)
        return true
      case 'restart':
        ledger.tell(`restarts in order: ${life.name}`)
        deps.restart(victim)
        return true
      case 'clock':
        life.skewMs = chance.pick([-3_600_000, -600_000, -300_000, 300_000, 600_000, 3_600_000]) as number
        ledger.tell(`the clock of ${life.name} is ${life.skewMs} ms ahead`)
        return true
      default:
        return false
    }
  }
  const needsOperation = (one: Armed) => one.what in fates || one.what === 'answer lost'

  return {
    get isPending() {
      for (const one of armed) if (one.untilMs < time.monotonicMs) disarm(one)
      return frozen.size > 0 || time.monotonicMs < Math.max(awayUntilMs, fullUntilMs, ...cutOff.values())
    },
    isAwayFor: (life) => time.monotonicMs < Math.max(awayUntilMs, cutOff.get(life) ?? 0),
    arm(strike) {
      if (!isHealed) armed.push({ ...strike, left: strike.after, untilMs: time.monotonicMs + maxPendingMs })
    },
    fateOf({ life, isWrite }) {
      const nowMs = time.monotonicMs
      if (nowMs < awayUntilMs || nowMs < (cutOff.get(life) ?? 0)) return 'unreachable'
      if (isWrite && nowMs < fullUntilMs) return 'disk full'
      const kind = kindOf(life)
      for (const one of armed) {
        if (!needsOperation(one) || one.victim !== kind || !isAtWork || one.left-- > 0) continue
        disarm(one)
        const fate = fates[one.what]
        if (fate === undefined) {
          ledger.strike('an answer of the database is lost', life)
          return chance.random() < 0.5 ? 'lost before' : 'lost after'
        }
        ledger.strike(one.what, life)
        if (fate === 'freezes after') thawLater(life, one.forMs)
        else life.onEnd(() => killed(life))
        return fate
      }
      return 'done'
    },
    amid(now) {
      isAtWork = now
      if (!isAtWork) return
      for (const one of armed) {
        if (needsOperation(one) || one.what === 'dies at' || one.left-- > 0) continue
        disarm(one)
        strikeNow(one)
      }
    },
    failpoint(place, life) {
      const one = armed.find((other) => other.what === 'dies at' && other.place === place)
      if (!one || life.isOver) return
      disarm(one)
      ledger.strike(`dies at ${place}`, life)
      life.end()
      killed(life)
    },
    heal() {
      isHealed = true
      armed = []
      awayUntilMs = fullUntilMs = 0
      cutOff.clear()
      for (const { life } of deps.processes()) life.skewMs = 0
    },
  }
}
