/** Addresses that Postrider does not connect to are logged, but not once per email. */
import { expect, test } from 'vitest'
import type { Log } from '#base'
import { findAddresses } from '#net'
import { openMailGuard } from '../../src/delivery/mail-ssrf-guard.ts'
import { asking } from '../net/test-resolver.ts'
import { startService } from '../support/in-process-service.ts'
import { startMxDns } from '../support/simple-dns.ts'
import { startTestDns } from '../support/test-dns.ts'

/** Keeps the warnings with facts; the other warnings concern the installation. */
function keepingLog() {
  const warned: unknown[] = []
  const warn = (facts: unknown) => void (typeof facts === 'object' && warned.push(facts))
  const log: Log = { info() {}, debug() {}, error() {}, warn }
  return { log, warned }
}

test('an address that mail is not sent to is logged with its host, once an hour for each host', async () => {
  await using dns = await startTestDns({ 'mx.a.test': { A: ['10.0.0.1', '8.8.8.8'] }, 'mx.b.test': { A: ['127.0.0.1'] } })
  const { resolver, clock } = asking(dns)
  const { log, warned } = keepingLog()
  const guard = openMailGuard({ clock, log, config: { allowedNetworks: [] } })
  const ask = (host: string) => findAddresses(host, resolver, guard)
  expect(await ask('mx.a.test')).toEqual({ kind: 'addresses', addresses: ['8.8.8.8'] })
  await ask('mx.a.test')
  await ask('mx.b.test')
  const first = { host: 'mx.a.test', addresses: ['10.0.0.1'] }
  expect(warned).toEqual([first, { host: 'mx.b.test', addresses: ['127.0.0.1'] }])
  clock.advance(3_600_000)
  await ask('mx.a.test')
  expect(warned.slice(2)).toEqual([first])
})

test('a sender that names ever more hosts leaves a hundred lines an hour', () => {
  const { clock } = asking({ address: '127.0.0.1:9' })
  const { log, warned } = keepingLog()
  const guard = openMailGuard({ clock, log, config: { allowedNetworks: [] } })
  for (let round = 0; round < 2; round++) for (let nth = 0; nth < 2000; nth++) guard.refused?.(`mx${nth}.a.test`, ['10.0.0.1'])
  expect(warned).toHaveLength(100)
  expect(warned.at(-1)).toMatchObject({ host: 'mx99.a.test', note: '100 in one hour: suppressing further warnings' })
  clock.advance(3_600_000)
  guard.refused?.('mx.b.test', ['10.0.0.1'])
  expect(warned.slice(100)).toEqual([{ host: 'mx.b.test', addresses: ['10.0.0.1'] }])
})

test('three emails to a server inside leave one line of the log', async () => {
  await using dns = await startMxDns({ mx: { 'inside.test': ['mx.inside.test'] }, a: { 'mx.inside.test': ['169.254.169.254'] } })
  const { log, warned } = keepingLog()
  await using service = await startService({ roles: ['delivery'], log, settings: { POSTRIDER_DNS: dns.address } })
  await service.addDomain(service.tenantId, 'shop.test')
  const send = async (name: string) => {
    const content = { from: 'hi@shop.test', to: [`${name}@inside.test`], subject: 'Hello', text: 'Hello' }
    const { body } = await service.call('POST', '/emails', { key: service.liveKey, body: content })
    return (body.data as { id: string }).id
  }
  for (const id of [await send('ann'), await send('bob'), await send('cid')])
    await expect
      .poll(async () => (await service.call('GET', `/emails/${id}`, { key: service.liveKey })).body.data, { timeout: 10_000 })
      .toMatchObject({ status: 'hardfail' })
  expect(warned).toEqual([{ host: 'mx.inside.test', addresses: ['169.254.169.254'] }])
})
