/** The operator pauses a provider or a sending domain by its name. A provider is all domains whose mail servers belong to it. */
import { expect, onTestFinished, test } from 'vitest'
import { openIds, openSecrets, readConfig, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { startFakeMx } from '../support/fake-mx.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'
import { startTestDns } from '../support/test-dns.ts'

const run = async (service: Service, ...words: string[]) => {
  const config = readConfig({})
  const shared = { config, clock: systemClock, ids: openIds(systemRandom), random: systemRandom, version: 'test' }
  let printed = ''
  const code = await runHere(words, {
    withInstallation: (work) => work({ ...shared, db: service.db, secrets: openSecrets('a secret for tests only', systemRandom) }),
    print: (text) => {
      printed += text
    },
  })
  return { code, printed }
}

test('its mail stays queued without an attempt and shows why, other mail goes, and it is sent when the provider is resumed', async () => {
  const mx = await startFakeMx()
  const dns = await startTestDns({
    'a.test': { MX: ['10 mx1.mail.example'] },
    'b.test': { MX: ['10 mx2.mail.example'] },
    'c.test': { MX: ['10 mx.c.test'] },
    '*.mail.example': { A: ['127.0.0.1'] },
    'mx.c.test': { A: ['127.0.0.1'] },
  })
  const service = await startService({
    rateLimit: null,
    roles: ['delivery'],
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(mx.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  onTestFinished(async () => {
    for (const one of [service, mx, dns]) await one[Symbol.asyncDispose]()
  })
  await service.addDomain(service.tenantId, 'shop.test')
  const send = async (to: string) => {
    const content = { from: 'hi@shop.test', to: [to], subject: 'Hello', text: 'Hello' }
    return ((await service.call('POST', '/emails', { key: service.liveKey, body: content })).body.data as { id: string }).id
  }
  const details = async (id: string) => {
    const { body } = await service.call('GET', `/emails/${id}?expand=deliveries`, { key: service.liveKey })
    return body.data as { status: string; explanation: { now: string }; deliveries: unknown[] }
  }

  expect(await run(service, 'queue', 'pause', '--provider', 'mail.example', '--reason', 'they asked')).toEqual({
    code: 0,
    printed: 'paused provider mail.example',
  })
  // Backdates the pause by an hour.
  await service.db.run(sql`update queue_pauses set at = at - interval '1 hour'`)
  await service.wait(1100)
  const kept = [await send('ann@a.test'), await send('bob@b.test'), await send('cid@b.test')]
  await send('dan@c.test')
  expect((await mx.waitFor(1, 10_000)).map(({ recipients }) => recipients)).toEqual([['dan@c.test']])
  for (const id of kept)
    await expect
      .poll(() => details(id), { timeout: 10_000 })
      .toMatchObject({
        status: 'pending',
        explanation: { now: expect.stringMatching(/^Due, but delayed: mail\.example is paused by the operator: they asked/) },
        deliveries: [],
      })
  expect((await run(service, 'queue')).printed).toContain('paused: provider mail.example (they asked)')
  // The rows are not claimed and requeued again every few seconds, however many there are.
  const due = async () =>
    (
      await service.db.rows(sql<{ inS: number }>`
    select extract(epoch from due_at - clock_timestamp())::double precision as "inS" from spool where state = 'deferred'`)
    ).map(({ inS }) => inS > 30)
  await expect.poll(due, { timeout: 10_000 }).toEqual([true, true, true])
  // After this wait no backoff remains. Resuming makes the mail due at once, even for a process that has not yet noticed the resume.
  await service.wait(5500)

  expect((await run(service, 'queue', 'resume', '--provider', 'mail.example')).printed).toBe('resumed provider mail.example')
  expect(await mx.waitFor(4, 10_000)).toHaveLength(4)
}, 40_000)

test('a rule of providers.json is found by its name and by a domain of its mail servers, and nothing else is', async () => {
  await using service = await startService()
  for (const given of ['gmail', 'Google.com', 'aspmx.l.google.com'])
    expect((await run(service, 'queue', 'pause', '--provider', given)).printed).toBe('paused provider gmail')
  expect((await run(service, 'queue', 'pause', '--provider', 'googel')).code).toBe(2)
  expect((await run(service, 'queue', 'pause', '--provider', 'gmail', '--domain', 'a.test')).code).toBe(2)
})

test('a sending domain is found in the tenant that has it; an unknown one is refused, and one of several needs the tenant', async () => {
  await using service = await startService()
  const [one, other] = [await service.makeTenant('one'), await service.makeTenant('other')]
  await service.addDomain(one, 'shop.test')
  const pause = async (...words: string[]) => run(service, 'queue', 'pause', '--json', '--domain', ...words)
  expect(JSON.parse((await pause('shop.test')).printed)).toMatchObject({ tenantId: one, name: 'shop.test', paused: true })
  expect((await pause('typo.test')).code).toBe(2)
  expect((await pause('shop.test', '--tenant', other)).code).toBe(2)
  await service.addDomain(other, 'shop.test')
  expect((await pause('shop.test')).code).toBe(2)
  expect(JSON.parse((await pause('shop.test', '--tenant', other)).printed)).toMatchObject({ tenantId: other })
  expect((await run(service, 'queue', 'resume', '--domain', 'shop.test', '--tenant', one)).printed).toBe('resumed domain shop.test')
})
