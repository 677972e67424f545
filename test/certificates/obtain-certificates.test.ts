/** The loop that places orders, on a real database, with a CA that refuses every request. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type Log, openIds, openSecrets, silentLog, systemClock, systemRandom } from '#base'
import { startObtaining } from '#certificates'
import { testDatabase } from '../support/database.ts'

test("a name that is verified during another tenant's order is next, before that tenant's other names", async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  const names = ['a.hostile.test', 'b.hostile.test'].map((name) => ({ name, tenantId: 'tnt_hostile' }))
  const server = createServer((_request, response) => {
    if (names.length === 2) names.push({ name: 'click.honest.test', tenantId: 'tnt_honest' })
    response.writeHead(500).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const failed: string[] = []
  const log = { ...silentLog, warn: ({ host }: { host: string }) => void failed.push(host) } as unknown as Log
  const loop = await startObtaining({
    db: database.db,
    clock: systemClock,
    log,
    ids: openIds(systemRandom),
    secrets: openSecrets('a secret for tests only', systemRandom),
    directory: `http://127.0.0.1:${(server.address() as AddressInfo).port}/dir`,
    contact: undefined,
    own: [],
    listVerifiedNames: async () => [...names],
    listTrackNames: async () => [],
    challenges: ['http-01'],
  })
  onTestFinished(() => loop.stop())
  await expect.poll(() => failed, { timeout: 60_000 }).toHaveLength(3)
  expect(failed[1]).toBe('click.honest.test')
})
