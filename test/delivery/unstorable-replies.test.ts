/** Text from a stranger's server or DNS that the database cannot store fails the stranger's mail only. */
import { expect, onTestFinished, test } from 'vitest'
import { startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'
import { startTestDns } from '../support/test-dns.ts'

const emoji = '\u{1f600}'
/** Postrider's own limits of 4000 and 80 characters cut these texts in the middle of a surrogate pair. */
const replies: Record<string, string> = {
  'long.test': `550-${'x'.repeat(1996)}\n550 ${'y'.repeat(1994)}${emoji} end`,
  'strange.test': `${'z'.repeat(79)}${emoji}`,
}
const hosts = ['a\0b.nul.test', 'mx\r\nx.lines.test', 'a b.blank.test', '<i>.markup.test', 'é.wide.test']

test('a reply that Postrider cuts within a character, and mail servers with any octets in their names, end no mail but their own', async () => {
  await using mx = await startFakeMx({
    script: ({ stage, argument }) => (stage === 'rcpt' ? replies[argument.replace(/^.*@|>.*$/g, '')] : undefined),
  })
  const good = { MX: ['10 mx.good.test'] }
  await using dns = await startTestDns({
    'mx.good.test': { A: ['127.0.0.1'] },
    'dead.good.test': { A: ['127.0.0.2'] },
    'good.test': good,
    ...Object.fromEntries(Object.keys(replies).map((name) => [name, { MX: [`10 mx.${name}`] }])),
    ...Object.fromEntries(Object.keys(replies).map((name) => [`mx.${name}`, { A: ['127.0.0.1'] }])),
    ...Object.fromEntries(hosts.map((host) => [host.replace(/^.*?\./s, ''), { MX: ['10 dead.good.test', `20 ${host}`] }])),
    ...Object.fromEntries(hosts.map((host) => [`only.${host.replace(/^.*?\./s, '')}`, { MX: [`10 ${host}`] }])),
    ...Object.fromEntries(hosts.map((host) => [host, { A: ['127.0.0.1'] }])),
  })
  const service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_MX_PORT: String(mx.port), POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  onTestFinished(() => service.stop())
  await service.addDomain(service.tenantId, 'shop.test')
  const send = async (domain: string) => {
    const content = { from: 'hi@shop.test', to: [`ann@${domain}`], subject: 'Hello', text: 'Hello' }
    const { body } = await service.call('POST', '/emails', { key: service.liveKey, body: content })
    return (body.data as { id: string }).id
  }
  const statusOf = async (id: string) =>
    ((await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data as { status: string }).status
  const named = hosts.map((host) => host.replace(/^.*?\./s, ''))
  const strangers = [...Object.keys(replies), ...named, ...named.map((name) => `only.${name}`)]
  const ids = await Promise.all(strangers.map(send))
  for (const [index, id] of ids.entries())
    await expect
      .poll(async () => [strangers[index], await statusOf(id)], { timeout: 10_000 })
      .toEqual([strangers[index], expect.stringMatching('fail')])
  const id = await send('good.test')
  await expect.poll(() => statusOf(id)).toBe('sent')
}, 60_000)
