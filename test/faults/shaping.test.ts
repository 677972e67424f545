/**
 * A receiver that allows so many connections and so many messages a second, and two delivery processes that find out. SHAPING_SECONDS
 * plays it longer, with the bounds that then hold.
 */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type FakeMx, type MxAnswer, startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/service.ts'

const seconds = Number(process.env['SHAPING_SECONDS'] ?? 12)
const isLong = seconds >= 120

interface Allowed {
  connections: number
  perSecond: number
}

/** Counts as a strict receiver does: connections that stand, and messages in each of its seconds. */
function strictReceiver(allowed: Allowed) {
  const standing = new Set<number>()
  const rows = new Map<number, { taken: number; refused: number }>()
  let connectionsRefused = 0
  let mostStanding = 0
  const beganMs = performance.now()
  const row = () => {
    const second = Math.floor((performance.now() - beganMs) / 1000)
    const known = rows.get(second) ?? { taken: 0, refused: 0 }
    rows.set(second, known)
    return known
  }
  const script = ({ stage, session }: { stage: string; session: number }): MxAnswer => {
    if (stage === 'connect') {
      if (standing.size >= allowed.connections) {
        connectionsRefused++
        return { reply: '421 4.7.0 Too many concurrent connections from your host', close: true }
      }
      standing.add(session)
      mostStanding = Math.max(mostStanding, standing.size)
    }
    if (stage !== 'mail') return undefined
    const now = row()
    if (now.taken >= allowed.perSecond) {
      now.refused++
      return '450 4.7.1 Message rate limit exceeded, slow down'
    }
    now.taken++
    return undefined
  }
  const figures = (from: number, to: number) => {
    let [taken, refused] = [0, 0]
    for (let second = from; second < to; second++) {
      taken += rows.get(second)?.taken ?? 0
      refused += rows.get(second)?.refused ?? 0
    }
    return { used: taken / ((to - from) * allowed.perSecond), refusedPart: refused / Math.max(1, taken + refused) }
  }
  return {
    options: { script, closed: (session: number) => standing.delete(session) },
    figures,
    get connectionsRefused() {
      return connectionsRefused
    },
    get mostStanding() {
      return mostStanding
    },
    secondNow: () => Math.floor((performance.now() - beganMs) / 1000),
  }
}

let service: Service | undefined
let mx: FakeMx | undefined
afterEach(async () => {
  await service?.[Symbol.asyncDispose]()
  await mx?.close()
})

async function load(messages: number): Promise<void> {
  for (let first = 0; first < messages; first += 100) {
    const emails = Array.from({ length: 100 }, (_, at) => ({ to: [`n${first + at}@one.example`], subject: 'One of many', text: 'Hello' }))
    const { status } = await (service as Service).call('POST', '/emails/batch', { from: 'a@shop.example.com', emails })
    expect(status).toBe(200)
  }
}

describe('a receiver that allows 3 connections and 40 messages a second', () => {
  test(`is used well and refuses little, by two processes that learn it from its answers`, async () => {
    const allowed = { connections: 3, perSecond: 40 }
    const receiver = strictReceiver(allowed)
    mx = await startFakeMx(receiver.options)
    service = await startService({
      POSTRIDER_RATE_LIMIT: 'unlimited',
      POSTRIDER_SEND_LIMIT: 'unlimited',
      POSTRIDER_DELIVERY_PROCESSES: '2',
      POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}`,
    })
    await service.command('domain', 'add', 'shop.example.com', '--trust')
    await load(Math.max(1000, Math.ceil(seconds * allowed.perSecond * 1.2)))
    const from = receiver.secondNow() + (isLong ? 60 : 4)
    const until = receiver.secondNow() + seconds
    await vi.waitUntil(() => receiver.secondNow() > until, { timeout: (seconds + 30) * 1000, interval: 100 })
    const { used, refusedPart } = receiver.figures(from, until)
    console.log(
      `shaping: ${(used * 100).toFixed(1)} % of what is allowed used, ${(refusedPart * 100).toFixed(2)} % refused, ${receiver.connectionsRefused} connections refused`,
    )
    expect(receiver.mostStanding).toBeLessThanOrEqual(allowed.connections)
    // What the bounds are in the long run is checked there; a few seconds hold one refusal more or less.
    expect(used).toBeGreaterThanOrEqual(isLong ? 0.9 : 0.3)
    expect(refusedPart).toBeLessThan(isLong ? 0.01 : 0.1)
    expect(receiver.connectionsRefused).toBeLessThan(100)
  }, 600_000)
})
