/**
 * Traffic shaping against a changing receiver: it limits connections and messages per second, then raises and lowers the limits, and two
 * delivery processes find the limits. SHAPING_SECONDS is the minimum duration of each phase.
 */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type FakeMx, type MxAnswer, startFakeMx } from '../support/fake-mx.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const seconds = Number(process.env['SHAPING_SECONDS'] ?? 30)
/**
 * The promised shares hold after convergence, from 120 seconds on, on a machine that runs no other tests. The short run shows in its best ten
 * seconds that limits are found and followed. src/delivery/shaping/adaptive-limits.test.ts shows without a machine that they are found well.
 */
const isShort = seconds < 120
const bounds = isShort ? { used: 0.7, refused: 0.05 } : { used: 0.9, refused: 0.01 }
const bestSeconds = 10

interface Allowed {
  connections: number
  perSecond: number
}

/** Counts as a strict receiver does: open connections, and messages in each second of its own clock. */
function strictReceiver(allowed: () => Allowed) {
  const standing = new Set<number>()
  const rows = new Map<number, { taken: number; refused: number }>()
  let connectionsRefused = 0
  let maxStanding = 0
  const beganMs = performance.now()
  const row = () => {
    const second = Math.floor((performance.now() - beganMs) / 1000)
    const known = rows.get(second) ?? { taken: 0, refused: 0 }
    rows.set(second, known)
    return known
  }
  const script = ({ stage, session }: { stage: string; session: number }): MxAnswer => {
    if (stage === 'connect') {
      if (standing.size >= allowed().connections) {
        connectionsRefused++
        return { reply: '421 4.7.0 Too many concurrent connections from your host', close: true }
      }
      standing.add(session)
      maxStanding = Math.max(maxStanding, standing.size)
    }
    if (stage !== 'mail') return undefined
    const now = row()
    if (now.taken >= allowed().perSecond) {
      now.refused++
      return '450 4.7.1 Message rate limit exceeded, slow down'
    }
    now.taken++
    return undefined
  }
  const figures = (from: number, to: number, perSecond: number) => {
    let [taken, refused] = [0, 0]
    for (let second = from; second < to; second++) {
      taken += rows.get(second)?.taken ?? 0
      refused += rows.get(second)?.refused ?? 0
    }
    return { used: taken / ((to - from) * perSecond), sent: taken + refused, refused }
  }
  return {
    options: { script, closed: (session: number) => standing.delete(session) },
    figures,
    get connectionsRefused() {
      return connectionsRefused
    },
    get maxStanding() {
      return maxStanding
    },
    secondNow: () => Math.floor((performance.now() - beganMs) / 1000),
  }
}

let service: ServiceProcess | undefined
let mx: FakeMx | undefined
afterEach(async () => {
  await service?.[Symbol.asyncDispose]()
  await mx?.close()
})

async function load(messages: number): Promise<void> {
  for (let first = 0; first < messages; first += 100) {
    const emails = Array.from({ length: 100 }, (_, at) => ({ to: [`n${first + at}@one.example`], subject: 'One of many', text: 'Hello' }))
    const { status } = await (service as ServiceProcess).call('POST', '/emails/batch', { from: 'a@shop.example.com', emails })
    expect(status).toBe(200)
  }
}

/** Each phase converges in its first part; the last part is counted. A phase of the short form ends as soon as its counted seconds are good. */
const phases = [
  // Beside other tests, the first burst can be judged as a quarter of the allowed rate. The rate then rises in steps.
  { perSecond: 20, seconds: seconds + 40, counted: Math.ceil(seconds / 2) },
  // The rate is probed upwards only after hundreds of messages.
  { perSecond: 40, seconds: seconds + 80, counted: Math.ceil(seconds / 2) },
  { perSecond: 15, seconds, counted: Math.ceil(seconds / 2) },
]

/** Of the counted seconds before `until`. The short form counts the use of their best ten. */
function counted(receiver: ReturnType<typeof strictReceiver>, until: number, { counted, perSecond }: (typeof phases)[number]) {
  const all = receiver.figures(until - counted, until, perSecond)
  if (!isShort) return all
  const windows = Array.from({ length: counted - bestSeconds + 1 }, (_, at) => until - counted + at)
  return { ...all, used: Math.max(...windows.map((from) => receiver.figures(from, from + bestSeconds, perSecond).used)) }
}

describe('a receiver that allows 3 connections and 20 messages a second, then 40, then 15', () => {
  test('has most of it used and little refused each time, by two processes that learn it from its answers', async () => {
    let allowed: Allowed = { connections: 3, perSecond: 20 }
    const receiver = strictReceiver(() => allowed)
    mx = await startFakeMx(receiver.options)
    service = await startServiceProcess({
      POSTRIDER_RATE_LIMIT: 'unlimited',
      POSTRIDER_SEND_LIMIT: 'unlimited',
      POSTRIDER_DELIVERY_PROCESSES: '2',
      POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}`,
    })
    await service.command('domain', 'add', 'shop.example.com', '--trust')
    await load(phases.reduce((sum, phase) => sum + phase.perSecond * phase.seconds, 500))
    for (const phase of phases) {
      // Changes between two seconds of the receiver, so that each second counts for one phase.
      const from = receiver.secondNow() + 1
      await vi.waitUntil(() => receiver.secondNow() >= from, { timeout: 10_000, interval: 5 })
      allowed = { connections: 3, perSecond: phase.perSecond }
      let found = { used: 0, sent: 0, refused: 0 }
      const isOver = () => {
        const passed = receiver.secondNow() - from
        if (passed >= phase.counted) found = counted(receiver, from + passed, phase)
        return passed >= phase.seconds || (isShort && found.used >= bounds.used && found.refused < bounds.refused * found.sent)
      }
      await vi.waitUntil(isOver, { timeout: (phase.seconds + 30) * 1000, interval: 100 })
      const { used, sent, refused } = found
      const figures = `${(used * 100).toFixed(1)}% of ${phase.perSecond} a second used, ${((refused / sent) * 100).toFixed(2)}% of ${sent} refused`
      console.log(`shaping: ${figures}, ${receiver.connectionsRefused} connections refused so far`)
      expect.soft(used, figures).toBeGreaterThanOrEqual(bounds.used)
      expect.soft(refused, figures).toBeLessThan(bounds.refused * sent)
    }
    expect(receiver.maxStanding).toBeLessThanOrEqual(allowed.connections)
    expect(receiver.connectionsRefused).toBeLessThan(100)
  }, 3_600_000)
})
