/** Ids of configuration are visible to tenants: objects that one tenant creates must not show in the ids that another gets. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' } })
})
afterAll(() => service.stop())

const made = 8
const largest = 2 ** 31 - 1

type Made = { id: number | string }

/** For each kind: how to create it, the type of its ids, and how its list is read and sorted. */
const kinds: Record<
  string,
  { make: (n: number) => [path: string, body: object]; list: (data: never) => Made[]; newestFirst?: true; type: 'number' | 'string' }
> = {
  credentials: {
    make: (n) => [`/tenants/TENANT/credentials`, { name: `key-${n}`, type: 'smtp' }],
    list: (data) => data,
    newestFirst: true,
    type: 'number',
  },
  domains: { make: (n) => ['/domains', { name: `d${n}.example` }], list: ({ domains }: { domains: Made[] }) => domains, type: 'number' },
  webhooks: {
    make: (n) => ['/webhooks', { name: `w${n}`, url: 'https://hook.example/', events: ['MessageSent'] }],
    list: ({ webhooks }: { webhooks: Made[] }) => webhooks,
    type: 'string',
  },
  suppressions: {
    make: (n) => ['/suppressions', { address: `s${n}@gone.example` }],
    list: (data) => data,
    newestFirst: true,
    type: 'string',
  },
}

test.each(Object.entries(kinds))(
  'the ids of %s do not reveal how many others have, and the list keeps the order of making',
  async (kind, { make, list, newestFirst, type }) => {
    const tenantId = await service.makeTenant(`of ${kind}`)
    const key = await service.makeKey({ tenantId })
    const ids: (number | string)[] = []
    for (let n = 0; n < made; n++) {
      const [path, body] = make(n)
      const answer = await service.call('POST', path.replace('TENANT', tenantId), { key, body })
      expect(answer.status, answer.text).toBe(201)
      ids.push((answer.body.data as Made).id)
    }
    for (const id of ids) expect(typeof id).toBe(type)
    const numbers = ids.map(Number)
    for (const one of numbers) expect(Number.isSafeInteger(one) && one > 0).toBe(true)
    if (type === 'number') for (const one of numbers) expect(one).toBeLessThanOrEqual(largest)
    const sorted = numbers.toSorted((a, b) => a - b)
    expect(numbers).not.toEqual(sorted)
    for (const [index, one] of sorted.entries()) if (index > 0) expect(one - (sorted[index - 1] as number)).toBeGreaterThan(50)

    // The tenant's own API key is a credential, too.
    const path = `${make(0)[0].replace('TENANT', tenantId)}${kind === 'credentials' ? '?type=smtp' : ''}`
    const listed = list((await service.call('GET', path, { key })).body.data as never).map(({ id }) => id)
    expect(newestFirst ? listed.toReversed() : listed).toEqual(ids)
  },
)

test('the ids of track domains do not reveal how many others have, and lead back to them', async () => {
  const tenantId = await service.makeTenant('tracks')
  const key = await service.makeKey({ tenantId })
  await service.addDomain(tenantId, 'tracks.example')
  const { domains } = (await service.call('GET', '/domains', { key })).body.data as { domains: { id: number }[] }
  const ids: string[] = []
  for (let n = 0; n < made; n++) {
    const answer = await service.call('POST', '/tracking', { key, body: { domainId: domains[0]?.id, name: `t${n}` } })
    ids.push((answer.body.data as { id: string }).id)
  }
  expect(ids.map(Number)).not.toEqual(ids.map(Number).toSorted((a, b) => a - b))
  const { trackDomains } = (await service.call('GET', '/tracking', { key })).body.data as { trackDomains: Made[] }
  expect(trackDomains.map(({ id }) => id)).toEqual(ids)
  expect((await service.call('GET', `/tracking/${ids[3]}`, { key })).body.data).toMatchObject({ id: ids[3], name: 't3' })
})
