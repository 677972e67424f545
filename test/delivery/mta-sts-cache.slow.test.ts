/** Lifetime of an MTA-STS policy: restarts, changed ids, failing fetches and expiry, with a clock moved by hand. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLog } from '#base'
import { deleteExpiredPolicies, openSts } from '#delivery'
import type { Get } from '#net'
import { asking } from '../net/test-resolver.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

let database: TestDatabase
let dns: TestDns
beforeEach(async () => {
  database = await testDatabase()
  dns = await startTestDns()
})
afterEach(async () => {
  await dns.close()
  await database.close()
})

/** A world in which example.org publishes a policy; `start` starts a process with an empty cache. */
function world() {
  const { resolver, clock } = asking(dns)
  const web = { text: policy('enforce'), isUp: true, fetches: 0 }
  const get: Get = async () => {
    web.fetches++
    if (!web.isUp) return { statusCode: null, contentType: null, body: null, isWhole: false, error: 'the connection broke' }
    return { statusCode: 200, contentType: 'text/plain', body: web.text, isWhole: true, error: null }
  }
  const start = () => openSts({ db: database.db, clock, log: silentLog, config: { mtaStsPort: 443 }, resolver, get })
  const publish = (id: string | null) => dns.set('_mta-sts.example.org', 'TXT', id === null ? [] : [`v=STSv1; id=${id};`])
  publish('1')
  return { clock, web, start, publish }
}

const policy = (mode: string, maxAge = 7 * 86_400) => `version: STSv1\nmode: ${mode}\nmx: mx.example.org\nmax_age: ${maxAge}\n`

describe('a policy', () => {
  test('is fetched once, for all processes, and outlives a restart', async () => {
    const { web, start } = world()
    const sts = start()
    expect(await sts.find('example.org')).toMatchObject({ mode: 'enforce', mx: ['mx.example.org'] })
    await sts.find('example.org')
    expect(await start().find('example.org')).toMatchObject({ mode: 'enforce' })
    expect(web.fetches).toBe(1)
  })

  test('is fetched anew within minutes of its id changing', async () => {
    const { clock, web, start, publish } = world()
    const sts = start()
    await sts.find('example.org')
    web.text = policy('none')
    publish('2')
    clock.advance(10 * 60_000)
    expect(await sts.find('example.org')).toMatchObject({ mode: 'none' })
    expect(web.fetches).toBe(2)
  })

  test('is not asked for when its id is as it was, until a day has passed', async () => {
    const { clock, web, start } = world()
    const sts = start()
    await sts.find('example.org')
    clock.advance(hourMs)
    await sts.find('example.org')
    expect(web.fetches).toBe(1)
    clock.advance(dayMs)
    await sts.find('example.org')
    expect(web.fetches).toBe(2)
  })

  test.each<[string, (given: ReturnType<typeof world>) => void]>([
    ['fetches fail', ({ web, publish }) => ((web.isUp = false), publish('2'))],
    ['what is fetched is no policy', ({ web, publish }) => ((web.text = 'nonsense'), publish('2'))],
    ['the record is gone', ({ publish }) => publish(null)],
    ['DNS says nothing', () => dns.fail('_mta-sts.example.org', 'SERVFAIL')],
  ])('stays in force until it expires while %s', async (_, happens) => {
    const given = world()
    await given.start().find('example.org')
    happens(given)
    given.clock.advance(6 * dayMs)
    const sts = given.start()
    expect(await sts.find('example.org')).toMatchObject({ mode: 'enforce' })
    given.clock.advance(2 * dayMs)
    expect(await sts.find('example.org')).toBeUndefined()
  })

  test('that cannot be fetched is asked for every few minutes, not with each email', async () => {
    const { clock, web, start } = world()
    web.isUp = false
    const sts = start()
    for (let email = 0; email < 10; email++) expect(await sts.find('example.org')).toBeUndefined()
    expect(web.fetches).toBe(1)
    web.isUp = true
    clock.advance(10 * 60_000)
    expect(await sts.find('example.org')).toMatchObject({ mode: 'enforce' })
  })

  test('that has expired is forgotten', async () => {
    const { clock, start } = world()
    await start().find('example.org')
    expect(await deleteExpiredPolicies(database.db, clock.nowMs())).toBe(0)
    expect(await deleteExpiredPolicies(database.db, clock.nowMs() + 8 * dayMs)).toBe(1)
  })
})

test('a domain without a record costs no fetch', async () => {
  const { web, start, publish } = world()
  publish(null)
  expect(await start().find('example.org')).toBeUndefined()
  expect(web.fetches).toBe(0)
})
