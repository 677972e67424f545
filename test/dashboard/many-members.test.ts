/** More members than the list holds: it says that it is cut, and each is found by address. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '#db'
import { type Service, startService } from '../support/in-process-service.ts'
import { ask, signedIn } from './signed-in-browser.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
})
afterAll(() => service.stop())

const manyMembers = sql`
  insert into members (address, role, created_at)
  select 'm' || lpad(n::text, 4, '0') || '@many.test', 'viewer', now()
  from generate_series(1, 1000) as n`

test('the list of members is cut after a thousand, and a search finds the others', async () => {
  const owner = await signedIn(service, 'zoe@house.test', 'owner')
  const list = async (query = '') =>
    (await ask(service, 'GET', `/dashboard/api/members${query}`, owner)).data as { members: { address: string }[]; isCut: boolean }
  const before = await list()
  expect(before.isCut).toBe(false)
  await service.db.run(manyMembers, [])
  const cut = await list()
  expect([cut.members.length, cut.isCut]).toEqual([1000, true])
  expect(cut.members).not.toContainEqual(expect.objectContaining({ address: 'zoe@house.test' }))
  const found = await list('?search=ZOE@')
  expect([found.members.map(({ address }) => address), found.isCut]).toEqual([['zoe@house.test'], false])
  expect((await list('?search=absent@')).members).toEqual([])
  expect((await ask(service, 'GET', '/dashboard/api/members?search=%00', owner)).status).toBe(400)
})
