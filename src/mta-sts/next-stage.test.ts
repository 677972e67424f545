import { describe, expect, test } from 'vitest'
import {
  nextStage,
  noStage,
  outliveMs,
  type PolicyStage,
  type PortFinding,
  type Seen,
  testingMs,
  toleratedMs,
  type Wish,
  withdrawMs,
} from './next-stage.ts'

const minuteMs = 60_000
const dayMs = 86_400_000
const startMs = Date.UTC(2026, 10, 1)

const unfit: PortFinding = { kind: 'unfit', reason: 'certificate expired' }
const unknown: PortFinding = { kind: 'unknown', reason: 'no connection' }

/** An installation with a clock moved by hand. */
class Installation {
  stage: PolicyStage = noStage
  wish: Wish = 'enforce'
  nowMs = startMs
  /** Of its certificate. */
  endsMs = startMs + 90 * dayMs
  port: PortFinding | undefined
  seen: Partial<Seen> = {}

  look(afterMs = minuteMs): PolicyStage {
    this.nowMs += afterMs
    const port = this.port ?? { kind: 'fit' as const, endsMs: this.endsMs }
    const served: Seen['served'] = this.stage.mode !== null && this.stage.leadsHere ? true : 'its name is not ready'
    const seen = { canServe: true, name: 'here' as const, hasForeignRecord: false, served, port, ...this.seen }
    this.stage = nextStage(this.stage, this.wish, seen, this.nowMs)
    return this.stage
  }

  /** Looks each hour for so long. */
  pass(ms: number): PolicyStage {
    for (let passedMs = 0; passedMs < ms; passedMs += 3_600_000) this.look(3_600_000)
    return this.stage
  }
}

const inForce = (): Installation => {
  const one = new Installation()
  one.pass(testingMs + dayMs)
  expect(one.stage).toMatchObject({ mode: 'enforce', listed: 'enforce', problem: null })
  return one
}

describe('the policy appears in order', () => {
  test('no certificate before the name leads here, no record before the policy was fetched', () => {
    const one = new Installation()
    one.seen = { name: 'missing' }
    expect(one.look()).toMatchObject({ mode: null, listed: null, leadsHere: false, problem: 'the name of the policy has no record in DNS' })
    one.seen = {}
    expect(one.look()).toMatchObject({ mode: 'testing', listed: null, leadsHere: true })
    one.seen = { served: 'HTTP status 503' }
    expect(one.look()).toMatchObject({ mode: 'testing', listed: null, problem: 'the policy is not served: HTTP status 503' })
    one.seen = {}
    expect(one.look()).toMatchObject({ mode: 'testing', listed: 'testing', problem: null })
  })

  test.each([unfit, unknown])('no record while the probe of the mail port is $kind', (port) => {
    const one = new Installation()
    one.port = port
    expect(one.pass(10 * dayMs)).toMatchObject({ mode: 'testing', listed: null, problem: expect.stringContaining(port.reason) })
  })

  test('no record while DNS does not answer', () => {
    const one = new Installation()
    one.look()
    one.seen = { name: 'unknown' }
    expect(one.pass(dayMs)).toMatchObject({ mode: 'testing', listed: null, leadsHere: true })
  })

  test('enforce follows a week of testing with a valid certificate, and first in the policy', () => {
    const one = new Installation()
    one.pass(testingMs - dayMs)
    expect(one.stage).toMatchObject({ mode: 'testing', listed: 'testing' })
    one.port = unfit
    one.look()
    one.port = undefined
    // The week begins again.
    one.pass(testingMs - dayMs)
    expect(one.stage.mode).toBe('testing')
    for (let looks = 0; one.stage.mode === 'testing' && looks < 100; looks++) one.look(3_600_000)
    expect(one.stage).toMatchObject({ mode: 'enforce', listed: 'testing' })
    expect(one.look()).toMatchObject({ mode: 'enforce', listed: 'enforce' })
  })

  test('the setting testing stays testing', () => {
    const one = new Installation()
    one.wish = 'testing'
    expect(one.pass(30 * dayMs)).toMatchObject({ mode: 'testing', listed: 'testing', problem: null })
  })
})

describe('the policy weakens', () => {
  test('enforce ends while the certificate still outlives the policy of every sender', () => {
    const one = inForce()
    one.nowMs = one.endsMs - outliveMs - 2 * minuteMs
    expect(one.look()).toMatchObject({ mode: 'enforce', listed: 'enforce' })
    expect(one.look()).toMatchObject({ mode: 'testing', listed: 'enforce' })
    expect(one.look()).toMatchObject({ mode: 'testing', listed: 'testing' })
    expect(one.endsMs - one.nowMs).toBeGreaterThan(dayMs)
  })

  test('at once with an invalid certificate, then ends after a day and is forgotten', () => {
    const one = inForce()
    one.port = unfit
    expect(one.look()).toMatchObject({ mode: 'testing', listed: 'enforce' })
    expect(one.look()).toMatchObject({ mode: 'testing', listed: 'testing' })
    one.pass(toleratedMs)
    expect(one.look()).toMatchObject({ mode: 'none', listed: 'none' })
    one.pass(withdrawMs - 3_600_000)
    expect(one.stage).toMatchObject({ mode: 'none', listed: 'none' })
    one.pass(2 * 3_600_000)
    expect(one.stage).toMatchObject({ listed: null, problem: expect.stringContaining('certificate expired') })
    // And begins again with a valid one.
    one.port = undefined
    one.look()
    one.look()
    expect(one.look()).toMatchObject({ mode: 'testing', listed: 'testing', problem: null })
  })

  test('not while the probe cannot be made, as long as the last seen certificate outlives it', () => {
    const one = inForce()
    one.port = unknown
    one.pass(30 * dayMs)
    expect(one.stage).toMatchObject({ mode: 'enforce', listed: 'enforce', problem: expect.stringContaining('could not be probed') })
    one.nowMs = one.endsMs
    one.look()
    expect(one.look()).toMatchObject({ mode: 'testing', listed: 'testing' })
    one.pass(30 * dayMs)
    expect(one.stage).toMatchObject({ mode: 'testing', listed: 'testing' })
  })
})

describe('the policy is withdrawn', () => {
  test('by mode none until senders have forgotten it, and then without a record', () => {
    const one = inForce()
    one.wish = 'off'
    expect(one.look()).toMatchObject({ mode: 'none', listed: 'enforce', leadsHere: true })
    expect(one.look()).toMatchObject({ mode: 'none', listed: 'none', leadsHere: true })
    one.pass(withdrawMs - 3_600_000)
    expect(one.stage).toMatchObject({ mode: 'none', listed: 'none' })
    one.pass(3_600_000)
    expect(one.stage).toEqual(noStage)
  })

  test('also if nobody can fetch it any more', () => {
    const one = inForce()
    one.wish = 'off'
    one.seen = { served: 'no response' }
    one.look()
    expect(one.look()).toMatchObject({ mode: 'none', listed: 'enforce', problem: 'the policy is not served: no response' })
    one.pass(withdrawMs)
    expect(one.stage).toEqual(noStage)
  })

  test('not, if the setting returns', () => {
    const one = inForce()
    one.wish = 'off'
    one.look()
    one.look()
    one.wish = 'enforce'
    one.look()
    expect(one.look()).toMatchObject({ mode: 'testing', listed: 'testing' })
  })

  test('at once if it was never listed, or cannot be served, or the names have another owner', () => {
    const fresh = new Installation()
    fresh.look()
    fresh.wish = 'off'
    expect(fresh.look()).toEqual(noStage)

    for (const seen of [{ canServe: false }, { hasForeignRecord: true }, { name: 'elsewhere' as const }]) {
      const one = inForce()
      one.seen = seen
      expect(one.look()).toEqual({ ...noStage, problem: 'canServe' in seen ? null : expect.any(String) })
    }
  })
})
