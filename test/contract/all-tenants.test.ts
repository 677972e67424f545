/** With `all`, the organisation sees the data of every tenant; a tenant's own key sees no more than before. */
import { expect, test } from 'vitest'
import { startService } from '../support/in-process-service.ts'

test('all lists the keys, webhooks and suppressions of every tenant to the organisation, and only its own to a tenant', async () => {
  await using service = await startService({ rateLimit: null, settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' } })
  const tenants = [await service.makeTenant('A'), await service.makeTenant('B')]
  const keys = await Promise.all(tenants.map((tenantId) => service.makeKey({ tenantId })))
  const owners = [null, ...tenants]
  for (const tenantId of owners) {
    const inBody = tenantId === null ? {} : { tenantId }
    const name = tenantId?.slice(0, 8) ?? 'organisation'
    const post = async (path: string, body: object) =>
      expect((await service.call('POST', path, { key: service.liveKey, body: { ...body, ...inBody } })).status).toBe(201)
    await post('/webhooks', { name, url: 'https://hook.example/', allEvents: true })
    await post('/suppressions', { address: `${name}@gone.example` })
  }
  const ownersIn = async (path: string, key: string) => {
    const { data } = (await service.call('GET', path, { key })).body
    const items = (Array.isArray(data) ? data : (data as { webhooks: unknown[] }).webhooks) as { tenantId: string | null }[]
    return new Set(items.map(({ tenantId }) => tenantId))
  }
  for (const path of ['/credentials', '/webhooks', '/suppressions']) {
    expect(await ownersIn(path, service.liveKey)).toEqual(new Set([null]))
    expect(await ownersIn(`${path}?all=true`, service.liveKey)).toEqual(new Set(owners))
    expect(await ownersIn(`${path}?all=true&tenantId=${tenants[0]}`, service.liveKey)).toEqual(new Set([tenants[0]]))
    if (path === '/credentials') continue
    expect(await ownersIn(`${path}?all=true`, keys[1] as string)).toEqual(new Set([tenants[1]]))
  }
  const own = await ownersIn(`/tenants/${tenants[1]}/credentials?all=true`, keys[1] as string)
  expect(own).toEqual(new Set([tenants[1]]))
})
