/**
 * Keys and tenants as several processes see them: a change is in force everywhere within a second and does not disturb other clients'
 * requests.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Clock, systemClock } from '#base'
import { openCredentials } from '#credentials'
import { openTenants } from '#tenants'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null })
})
afterAll(() => service.stop())

const call = (method: string, path: string, body?: object, key = service.liveKey) =>
  service.call(method, path, { key, ...(body ? { body } : {}) })

/** Another process: its own caches over the same database, and a clock that is moved by hand. */
function otherProcess() {
  let monotonicMs = 1_000_000
  const clock: Clock = { ...systemClock, monotonicMs: () => monotonicMs }
  const { db } = service
  return {
    credentials: openCredentials({ db, clock }),
    tenants: openTenants({ db, clock }),
    pass: (ms: number) => {
      monotonicMs += ms
    },
  }
}

test('no request fails because a key is changed while it is being admitted', async () => {
  const made = await call('POST', '/credentials', { name: 'changing', type: 'api' })
  const { id } = made.body.data as { id: number }
  const changes = Array.from({ length: 100 }, (_, n) => call('PATCH', `/credentials/${id}`, { name: `n${n}` }))
  const answers = await Promise.all([...changes, ...Array.from({ length: 300 }, () => call('GET', '/limits'))])
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]))
})

test('another process obeys a held, limited, and revoked key within a second', async () => {
  const { id, key } = (await call('POST', '/credentials', { name: 'watched', type: 'api' })).body.data as { id: number; key: string }
  const other = otherProcess()
  expect(await other.credentials.authenticate(key, () => '127.0.0.1')).toMatchObject({ hold: false, permissions: null })
  await call('PATCH', `/credentials/${id}`, { hold: true, permissions: ['emails:read'] })
  other.pass(950)
  expect(await other.credentials.authenticate(key, () => '127.0.0.1')).toMatchObject({ hold: true, permissions: ['emails:read'] })
  await call('DELETE', `/credentials/${id}`)
  other.pass(950)
  await expect(other.credentials.authenticate(key, () => '127.0.0.1')).rejects.toMatchObject({ code: 'expired_api_key' })
})

test('a use is written down at most once a minute', async () => {
  const { id, key } = (await call('POST', '/credentials', { name: 'used', type: 'api' })).body.data as { id: number; key: string }
  let nowMs = Date.UTC(2026, 10, 20, 12)
  const credentials = openCredentials({ db: service.db, clock: { ...systemClock, nowMs: () => nowMs } })
  const lastUsed = async () => ((await call('GET', `/credentials/${id}`)).body.data as { lastUsedAt: string | null }).lastUsedAt
  const use = async () => {
    await credentials.authenticate(key, () => '127.0.0.1')
    await credentials.saveUses()
  }
  expect(await lastUsed()).toBe(null)
  await use()
  expect(await lastUsed()).toBe('2026-11-20T12:00:00.000Z')
  nowMs += 59_000
  await use()
  expect(await lastUsed()).toBe('2026-11-20T12:00:00.000Z')
  nowMs += 1000
  await use()
  expect(await lastUsed()).toBe('2026-11-20T12:01:00.000Z')
})

test('another process sees a suspended and a deleted tenant within a second', async () => {
  const id = await service.makeTenant('Watched')
  const other = otherProcess()
  expect(await other.tenants.find(id)).toMatchObject({ status: 'active' })
  await call('PATCH', `/tenants/${id}`, { status: 'suspended' })
  other.pass(950)
  expect(await other.tenants.find(id)).toMatchObject({ status: 'suspended' })
  await call('DELETE', `/tenants/${id}`)
  other.pass(950)
  expect(await other.tenants.find(id)).toBe(undefined)
})
