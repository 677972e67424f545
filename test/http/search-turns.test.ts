/** Searches of the installation's own records take turns with all other searches. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { searchTurns } from '../../src/http/v1/search-turns.ts'
import { ask, signedIn } from '../dashboard/signed-in-browser.ts'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

test('the request log and the audit log wait for a turn of a search', async () => {
  const owner = await signedIn(service, 'owner@house.test', 'owner')
  const statusesOf = () =>
    Promise.all(['/v1/logs', '/dashboard/api/audit'].map(async (path) => (await ask(service, 'GET', path, owner)).status))
  expect(await statusesOf()).toEqual([200, 200])
  const { promise, resolve: end } = Promise.withResolvers<void>()
  const taken = Array.from({ length: 44 }, () => searchTurns.run({ tenantId: null, gone: undefined }, () => promise))
  expect(await statusesOf().finally(end)).toEqual([429, 429])
  await Promise.all(taken)
})
