/** With `all`, the organisation sees the data of every tenant; a tenant's own key sees no more than before. */
import { expect, test } from 'vitest'
import { startHouse } from '../support/house.ts'

test('all lists the keys, webhooks and suppressions of every tenant to the organisation, and only its own to a tenant', async () => {
  await using house = await startHouse({ rateLimit: null, settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' } })
  const tenants = [await house.makeTenant('A'), await house.makeTenant('B')]
  const keys = await Promise.all(tenants.map((tenantId) => house.makeKey({ tenantId })))
  const owners = [null, ...tenants]
  for (const tenantId of owners) {
    const inBody = tenantId === null ? {} : { tenantId }
    const name = tenantId?.slice(0, 8) ?? 'organisation'
    const post = async (path: string, body: object) =>
      expect((await house.call('POST', path, { key: house.liveKey, body: { ...body, ...inBody } })).status).toBe(201)
    await post('/webhooks', { name, url: 'https://hook.example/', allEvents: true })
    await post('/suppressions', { address: `${name}@gone.example` })
  }
  const ownersIn = async (path: string, key: string) => {
    const { data } = (await house.call('GET', path, { key })).body
    const items = (Array.isArray(data) ? data : (data as { webhooks: unknown[] }).webhooks) as { tenantId: string | null }[]
    return new Set(items.map(({ tenantId }) => tenantId))
  }
  for (const path of ['/credentials', '/webhooks', '/suppressions']) {
    expect(await ownersIn(path, house.liveKey)).toEqual(new Set([null]))
    expect(await ownersIn(`${path}?all=true`, house.liveKey)).toEqual(new Set(owners))
    expect(await ownersIn(`${path}?all=true&tenantId=${tenants[0]}`, house.liveKey)).toEqual(new Set([tenants[0]]))
    if (path === '/credentials') continue
    expect(await ownersIn(`${path}?all=true`, keys[1] as string)).toEqual(new Set([tenants[1]]))
  }
  const own = await ownersIn(`/tenants/${tenants[1]}/credentials?all=true`, keys[1] as string)
  expect(own).toEqual(new Set([tenants[1]]))
})
