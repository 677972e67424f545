/**
 * The time of the simulated world: one monotonic and one wall clock, moved only by the simulation, and the lives of the processes. A life
 * that has ended receives no more input; a frozen life receives all of it when it resumes.
 */
import type { Clock } from '#base'

export interface Life {
  readonly name: string
  readonly isOver: boolean
  readonly isFrozen: boolean
  /** Offset of its machine's wall clock. */
  skewMs: number
  /** Rejects when the life ends; never resolves. */
  readonly ended: Promise<never>
  /** Delivers external input: now, when the life resumes, or never. */
  hear(what: () => void): void
  end(): void
  freeze(): void
  thaw(): void
  /** Called once, at the end of the life. */
  onEnd(act: () => void): void
}

class Abandoned extends Error {}

export function openLife(name: string): Life {
  let isOver = false
  let isFrozen = false
  let unheard: (() => void)[] = []
  const ends: (() => void)[] = []
  let fail: (error: Error) => void = () => {}
  const ended = new Promise<never>((_, reject) => {
    fail = reject
  })
  ended.catch(() => undefined)
  return {
    name,
    skewMs: 0,
    ended,
    get isOver() {
      return isOver
    },
    get isFrozen() {
      return isFrozen
    },
    hear(what) {
      if (isOver) return
      if (isFrozen) unheard.push(what)
      else what()
    },
    end() {
      if (isOver) return
      isOver = true
      unheard = []
      fail(new Abandoned(name))
      for (const act of ends) act()
    },
    freeze() {
      isFrozen = true
    },
    thaw() {
      isFrozen = false
      for (const what of unheard.splice(0)) if (!isOver) what()
    },
    onEnd(act) {
      ends.push(act)
    },
  }
}

interface Timer {
  atMs: number
  nth: number
  life: Life
  action: () => void
}

export interface Time {
  readonly wallMs: number
  readonly monotonicMs: number
  clockOf(life: Life): Clock
  /** Monotonic time of the next timer. */
  nextAtMs(): number
  /** Moves both clocks and fires all due timers, in order. */
  advance(monotonicMs: number, wallMs?: number): void
}

export function openTime(startMs: number): Time {
  let wallMs = startMs
  let nowMs = 1000
  let nth = 0
  const timers = new Set<Timer>()
  const isAwake = ({ life }: Timer) => !life.isOver && !life.isFrozen
  return {
    get wallMs() {
      return wallMs
    },
    get monotonicMs() {
      return nowMs
    },
    clockOf: (life) => ({
      nowMs: () => wallMs + life.skewMs,
      monotonicMs: () => nowMs,
      after(delayMs, action) {
        if (life.isOver) return () => {}
        const timer: Timer = { atMs: nowMs + Math.max(0, delayMs), nth: nth++, life, action }
        timers.add(timer)
        return () => timers.delete(timer)
      },
    }),
    nextAtMs() {
      let atMs = Infinity
      for (const timer of timers) if (isAwake(timer) && timer.atMs < atMs) atMs = timer.atMs
      return atMs
    },
    advance(byMs, wallByMs = byMs) {
      nowMs += byMs
      wallMs += wallByMs
      const due: Timer[] = []
      for (const timer of timers) {
        if (timer.life.isOver) timers.delete(timer)
        else if (timer.atMs <= nowMs && !timer.life.isFrozen) due.push(timer)
      }
      due.sort((a, b) => a.atMs - b.atMs || a.nth - b.nth)
      for (const timer of due) if (timers.delete(timer) && isAwake(timer)) timer.action()
    },
  }
}
