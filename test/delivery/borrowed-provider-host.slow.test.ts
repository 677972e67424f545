/** The owner of a domain may list a provider's mail servers beside their own: the replies of their own do not count as the provider's. */
import { expect, onTestFinished, test } from 'vitest'
import { listShaping } from '../../src/delivery/shaping/shaping.ts'
import { startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'
import { startTestDns } from '../support/test-dns.ts'

test.each([
  ['refuses the connection', 'connect', '421 4.7.28 too many connections, unusual rate'],
  ['refuses our address', 'connect', '554 5.7.1 your address is on a blocklist'],
  ['refuses the message', 'rcpt', '421 4.7.28 unusual rate'],
])('a stranger among the MX hosts that %s slows its own domain, not the provider', async (_, stage, reply) => {
  const evil = await startFakeMx({ script: (event) => (event.stage === stage ? reply : undefined) })
  const dns = await startTestDns({
    'evil.test': { MX: ['10 aspmx.l.google.com', '20 mx.evil.test'] },
    // No server listens there, so the stranger's server answers. At the same preference it would do so only every other time.
    'aspmx.l.google.com': { A: ['127.0.0.2'] },
    'mx.evil.test': { A: ['127.0.0.1'] },
  })
  const service = await startService({
    rateLimit: null,
    roles: ['delivery'],
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(evil.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  onTestFinished(async () => {
    for (const one of [service, evil, dns]) await one[Symbol.asyncDispose]()
  })
  await service.addDomain(service.tenantId, 'shop.test')
  const content = { from: 'hi@shop.test', to: ['ann@evil.test'], subject: 'Hello', text: 'Hello' }
  const { body } = await service.call('POST', '/emails', { key: service.liveKey, body: content })
  const { id } = body.data as { id: string }
  await expect
    .poll(async () => (await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data, { timeout: 10_000 })
    .toMatchObject({ status: expect.stringMatching('fail') })
  // Observations are shared with other processes a moment later, all in one write.
  const learned = async () => (await listShaping(service.db)).filter(({ cause }) => cause !== null)
  await expect.poll(learned).not.toEqual([])
  expect((await learned()).map(({ provider }) => provider)).toEqual(['evil.test+gmail'])
})
