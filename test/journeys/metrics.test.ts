/** The metrics of a running service: one page for all its processes. Counts of a process that dies are kept. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

let service: ServiceProcess
beforeAll(async () => {
  service = await startServiceProcess({
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_DELIVERY_PROCESSES: '2',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_LEASE_MS: '1000',
  })
})
afterAll(() => service[Symbol.asyncDispose]())

const soon = { timeout: 30_000, interval: 100 }
const page = async () => (await fetch(`${service.url}/metrics`)).text()
const value = async (name: string) =>
  Number(
    (await page())
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length + 1) ?? Number.NaN,
  )
const send = async () =>
  expect(
    (
      await service.call(
        'POST',
        '/emails',
        { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 's', text: 't' },
        service.testKey,
      )
    ).status,
  ).toBe(200)

describe('the metrics page', () => {
  test('adds up the counts of delivery processes, keeps them when they are killed, and shows the state of the installation', async () => {
    const sent = 'postrider_delivery_attempts_total{outcome="sent"}'
    await send()
    await vi.waitFor(async () => expect(await value(sent)).toBe(1), soon)
    const { delivery } = await service.processes()
    for (const pid of delivery) process.kill(pid, 'SIGKILL')
    await send()
    await vi.waitFor(async () => expect(await value(sent)).toBe(2), soon)
    await vi.waitFor(async () => expect(await value('postrider_shards_unowned')).toBe(0), soon)
    expect(await value('postrider_disk_free_bytes')).toBeGreaterThan(0)
    expect(await value('postrider_queue_recipients{state="held"}')).toBe(0)
    expect(Math.abs(await value('postrider_clock_skew_seconds'))).toBeLessThan(5)
    expect(await value('postrider_restore_pending')).toBe(0)
    expect(await value('postrider_webhooks_failing')).toBe(0)
    // A webhook's lease is none of a shard, in the same process either.
    const hook = { name: 'one', url: 'http://127.0.0.1:9/', allEvents: true }
    expect((await service.call('POST', '/webhooks', hook)).status).toBe(201)
    await send()
    await vi.waitFor(async () => expect(await page()).toMatch(/^postrider_webhook_requests_total\{.*\} [1-9]/m), soon)
    await vi.waitFor(async () => expect(await value('postrider_shards_owned')).toBe(64), soon)
  }, 90_000)
})
