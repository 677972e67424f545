/** The system's resolver when getServers lists a server that cannot be reached at the listed address. */
import { expect, test, vi } from 'vitest'
import { systemClock } from '#base'
import { openResolver } from '#net'
import { startTestDns } from '../support/test-dns.ts'

const system = vi.hoisted(() => ({ told: '', address: '' }))
vi.mock('node:dns', async (original) => ({ ...(await original<typeof import('node:dns')>()), getServers: () => [system.told] }))
vi.mock('node:dns/promises', async (original) => {
  const real = await original<typeof import('node:dns/promises')>()
  class Resolver extends real.Resolver {
    constructor() {
      super()
      this.setServers([system.address])
    }
  }
  return { ...real, Resolver }
})

test.each([
  ['a link-local one, without its interface', 'fe80::1'],
  ['nobody on this machine, as before the network is there', '127.0.0.1:9'],
])('%s: mail servers and texts are found all the same', async (_, told) => {
  await using dns = await startTestDns({ 'a.test': { MX: ['10 mx.a.test'], TXT: [['v=spf1 ', '-all']] } })
  Object.assign(system, { told, address: dns.address })
  const resolver = openResolver({ servers: [], clock: systemClock, ids: { random: Math.random } })
  expect(await resolver.mx('a.test')).toEqual({ kind: 'found', value: [{ exchange: 'mx.a.test', priority: 10 }] })
  expect(await resolver.txt('a.test')).toEqual({ kind: 'found', value: ['v=spf1 -all'] })
  expect(await resolver.mx('b.test')).toEqual({ kind: 'nxdomain' })
})
