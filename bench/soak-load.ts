/**
 * The load of a soak, in its own process: requests at a steady rate. The measurements of the soak take a processor for half a second each
 * minute, and would delay requests that are sent by the same process.
 */
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { type BenchRequest, openAsking } from './client.ts'
import { paced, typicalBody } from './helpers.ts'

export interface SoakLoadOptions {
  port: number
  key: string
  /** Of the sender. */
  domain: string
  /** Requests a second. */
  rate: number
}

export interface LoadFigures {
  /** Since the start. */
  accepted: number
  failed: number
  /** Milliseconds from due to accepted, since the figures before: a slow service cannot hide behind fewer requests. */
  p50Ms: number
  p99Ms: number
}

const connections = 64
const recipientDomains = 20
const differentBodies = 200
const stopWithinMs = 60_000

const tookMicros = createHistogram({ lowest: 1, highest: 120_000_000, figures: 3 })
const counts = { accepted: 0, failed: 0 }
let sent = 0
let isStopped = false

interface Pace {
  rate: number
  beganMs: number
  turn: (nth: number) => Promise<void>
}

async function work(port: number, requests: readonly BenchRequest[], { rate, beganMs, turn }: Pace): Promise<void> {
  let asking = openAsking(port)
  while (!isStopped) {
    const nth = sent++
    await turn(nth)
    if (isStopped) break
    try {
      await asking.ask(requests[nth % requests.length] as BenchRequest)
      counts.accepted++
      tookMicros.record(Math.max(1, Math.round((performance.now() - beganMs - (nth / rate) * 1000) * 1000)))
    } catch {
      counts.failed++
      asking.close()
      asking = openAsking(port)
    }
  }
  asking.close()
}

/** Resolves after `stop`, with the last response. */
async function run({ port, key, domain, rate }: SoakLoadOptions): Promise<void> {
  const requests = Array.from({ length: differentBodies }, (_, n): BenchRequest => {
    const body = typicalBody(`shop@${domain}`, `person${n}@recipients${n % recipientDomains}.test`)
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': body.length }
    return { method: 'POST', path: '/v1/emails', headers, body, status: 200 }
  })
  const pace: Pace = { rate, beganMs: performance.now(), turn: paced(rate) }
  await Promise.all(Array.from({ length: connections }, () => work(port, requests, pace)))
}

function report(): void {
  const figures: LoadFigures = { ...counts, p50Ms: tookMicros.percentile(50) / 1000, p99Ms: tookMicros.percentile(99) / 1000 }
  tookMicros.reset()
  process.send?.(figures)
}

let running: Promise<void> = Promise.resolve()
process.on('message', (message: SoakLoadOptions | 'figures' | 'stop') => {
  if (typeof message === 'object') running = run(message)
  if (message === 'stop') {
    isStopped = true
    void Promise.race([running, wait(stopWithinMs)]).then(report)
  } else report()
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
