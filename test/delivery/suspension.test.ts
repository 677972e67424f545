/** A provider in backoff, and mail for its recipient domains that takes a transport. */
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#base'
import { readQueue, saveTransport, shareTransport } from '#delivery'
import { startDeliveryBeside } from '../support/delivery-beside.ts'
import { startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'

const refusal = '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org'

test('while the default backs off, mail for the same domain goes by its transport', { timeout: 60_000 }, async () => {
  const relay = await startFakeMx({ script: ({ stage }) => (stage === 'connect' ? refusal : undefined) })
  const transport = await startFakeMx()
  const service = await startService({ sendLimit: null, rateLimit: null })
  const { db, secrets, tenantId, liveKey } = service
  await service.addDomain(tenantId, 'shop.example')
  const settings = { host: '127.0.0.1', port: transport.port, tls: 'opportunistic', auth: null, connections: 20, rate: null } as const
  const entry = { ...settings, failover: true, fallback: null, guarded: false }
  await saveTransport({ db, secrets }, 'other', () => entry, Date.now())
  await shareTransport(db, { transport: 'other', percent: 100, tenantId: '', domain: '', tag: 'other' }, true, Date.now())
  const delivery = await startDeliveryBeside(service, {
    POSTRIDER_RELAY: `smtp://127.0.0.1:${relay.port}`,
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_RETRY_BASE_SECONDS: '600',
  })
  onTestFinished(async () => {
    await delivery.stop()
    for (const one of [relay, transport]) await one.close()
    await service.stop()
  })
  const send = (to: string, tag?: string) =>
    service.call('POST', '/emails', { key: liveKey, body: { from: 'a@shop.example', to: [to], subject: 's', text: 't', tag } })
  const queue = () => readQueue(db, null, 10, systemClock.nowMs())

  await send('ann@one.example')
  await expect.poll(async () => (await queue()).providers, { timeout: 15_000 }).toMatchObject([{ backoffUntilMs: expect.any(Number) }])
  await send('bob@one.example')
  await expect.poll(async () => (await queue()).recipientDomains[0]?.deferred, { timeout: 15_000 }).toBe(2)
  await send('cid@one.example', 'other')
  expect(await transport.waitFor(1, 15_000)).toMatchObject([{ recipients: ['cid@one.example'] }])
  expect(relay.connections).toBe(1)
})
