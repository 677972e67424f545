/** A provider with a reputation block: Postrider backs off from it and does not spend the waiting mail on it. */
import { expect, test } from 'vitest'
import { systemClock } from '#base'
import { readQueue } from '#delivery'
import { readEvents, startOfLog } from '#events'
import { startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'

const refusal = '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org'

/** Maximum cost out of 60 emails. At `connect`, a slow machine may spend a second email before it learns of the block. */
const stages = [
  ['connect', 2],
  ['rcpt', 19],
] as const

test.each(stages)(
  'a refusal at %s for the reputation of the sender rests the provider, costs few emails, suppresses no recipient, and is reported in the event log and to callers',
  async (stage, maximum) => {
    await using mx = await startFakeMx({ script: (event) => (event.stage === stage ? refusal : undefined) })
    await using service = await startService({
      rateLimit: null,
      sendLimit: null,
      roles: ['delivery'],
      settings: { POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}` },
    })
    await service.addDomain(service.tenantId, 'shop.example.com')
    const emails = Array.from({ length: 60 }, (_, n) => ({ to: [`n${n}@one.example`], subject: 's', text: 't' }))
    const { status, body } = await service.call('POST', '/emails/batch', {
      key: service.liveKey,
      body: { from: 'a@shop.example.com', emails },
    })
    expect(status).toBe(200)
    const shaped = async () => (await readEvents(service.db, startOfLog, 10_000)).filter((event) => event.kind === 'TrafficLimitChanged')
    await expect.poll(async () => (await shaped()).length, { timeout: 15_000 }).toBeGreaterThan(0)
    const [first] = await shaped()
    expect(first?.data).toMatchObject({ provider: 'relay', cause: refusal, to: { backoffUntil: expect.stringMatching(/^\d{4}-/) } })

    await expect
      .poll(async () => (await readQueue(service.db, null, 10, systemClock.nowMs())).recipientDomains[0]?.sending, { timeout: 15_000 })
      .toBe(0)
    const { recipientDomains, providers } = await readQueue(service.db, null, 10, systemClock.nowMs())
    const { ready = 0, deferred = 0 } = recipientDomains[0] ?? {}
    expect(ready + deferred).toBeGreaterThanOrEqual(60 - maximum)
    expect(providers).toMatchObject([{ provider: 'relay', cause: refusal, backoffUntilMs: expect.any(Number) }])
    const suppressions = await service.call('GET', '/suppressions?all=true', { key: service.liveKey })
    expect(suppressions.body.total).toBe(0)

    const { results } = body.data as { results: { id: string }[] }
    const explanations = () =>
      Promise.all(
        results.map(
          async ({ id }) => (await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data as { explanation: object },
        ),
      )
    await expect
      .poll(async () => (await explanations()).map(({ explanation }) => explanation), { timeout: 15_000, interval: 500 })
      .toContainEqual(
        expect.objectContaining({
          blockedBy: 'source_limit',
          now: 'Due, but delayed: relay accepts no more mail at present.',
          nextAt: expect.stringMatching(/^\d{4}-/),
        }),
      )
  },
)
