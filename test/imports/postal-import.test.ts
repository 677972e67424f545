/** Imports from odd and interrupted installations of Postal. A whole installation in MariaDB is in test/peers. */
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { openIds, openSecrets, systemClock, systemRandom } from '#base'
import type { Db } from '#db'
import { listDomains } from '#domains'
import { listSuppressions } from '#suppressions'
import { changeTenant, listTenants } from '#tenants'
import { type ImportDeps, importPostal } from '../../src/imports/postal-import.ts'
import { mainTables, type PostalSource, type PostalTables, type Row } from '../../src/imports/postal-source.ts'
import { testDatabase } from '../support/database.ts'

const server = (id: number, more: Row = {}): Row => ({
  id,
  organization_id: 1,
  uuid: `u-${id}`,
  name: `Shop ${id}`,
  permalink: `shop-${id}`,
  mode: 'Live',
  deleted_at: null,
  ...more,
})

function sourceOf(given: Record<string, readonly Row[]>, suppressions: readonly Row[] = []): PostalSource {
  const organizations = [{ id: 1, name: 'Acme', permalink: 'acme', owner_id: 7, deleted_at: null }]
  const tables = { ...Object.fromEntries(mainTables.map((table) => [table, []])), organizations, ...given } as unknown as PostalTables
  return {
    main: async () => tables,
    countSuppressions: async () => suppressions.length,
    async *suppressions() {
      if (suppressions.length > 0) yield suppressions
    },
    workerSilence: async () => undefined,
    countQueued: async () => 0,
    async *queued() {},
    rawParts: async () => undefined,
    countMessages: async () => ({ total: 0, older: 0 }),
    async *messages() {},
    close: async () => {},
  }
}

let db: Db
let run: (source: PostalSource, apply?: boolean) => ReturnType<typeof importPostal>
beforeEach(async () => {
  const database = await testDatabase()
  onTestFinished(() => database.close())
  db = database.db
  const secrets = openSecrets('a secret of the test that is long enough', systemRandom)
  const deps = { db, clock: systemClock, ids: openIds(systemRandom), random: systemRandom, secrets, webhooks: { list: async () => [] } }
  run = (source, apply = true) =>
    importPostal(source, deps as unknown as ImportDeps, { apply, dkimIdentifier: 'postal', progress: () => {} })
})
const tenants = async () => (await listTenants(db, undefined, { number: 1, size: 100 })).tenants.filter(({ isDefault }) => !isDefault)

test('a tenant comes with its pause or not at all, and the next run completes it', async () => {
  const source = sourceOf({ servers: [server(1, { mode: 'Development' }), server(2, { suspended_at: new Date() })] })
  await db.script(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'the machine stopped'; end $$;
    create trigger refuse before update on tenants for each row execute function refuse()`)
  await expect(run(source)).rejects.toThrow('the machine stopped')
  expect(await tenants()).toEqual([])
  await db.script('drop trigger refuse on tenants')
  expect((await run(source)).counts.tenants).toEqual({ found: 2, missing: 2, failed: 0 })
  const made = await tenants()
  expect(new Set(made.map(({ status, pauseReason }) => `${status} ${pauseReason !== null}`))).toEqual(
    new Set(['active true', 'suspended false']),
  )
  expect((await run(source)).counts.tenants).toEqual({ found: 2, missing: 0, failed: 0 })
})

test('a tenant that is refused is reported, and the others come', async () => {
  const domains = [
    { id: 1, name: 'long.example', owner_type: 'Server', owner_id: 1 },
    { id: 2, name: 'shop.example', owner_type: 'Server', owner_id: 2 },
  ]
  const { counts, notes } = await run(sourceOf({ servers: [server(1, { permalink: 'x'.repeat(600) }), server(2)], domains }))
  expect(counts.tenants).toEqual({ found: 2, missing: 2, failed: 1 })
  expect(notes).toContainEqual({ about: 'tenants', name: expect.stringContaining('Shop 1'), text: expect.stringContaining('did not come') })
  const [tenant] = await tenants()
  expect((await listDomains(db, tenant?.id as string)).map(({ name }) => name)).toEqual(['shop.example'])
})

test('a domain in another script comes as A-labels, once', async () => {
  const source = sourceOf({ servers: [server(1)], domains: [{ id: 1, name: 'Bücher.Example', owner_type: 'Server', owner_id: 1 }] })
  expect((await run(source)).counts.domains).toEqual({ found: 1, missing: 1, failed: 0 })
  const [tenant] = await tenants()
  expect((await listDomains(db, tenant?.id as string)).map(({ name }) => name)).toEqual(['xn--bcher-kva.example'])
  expect((await run(source)).counts.domains).toEqual({ found: 1, missing: 0, failed: 0 })
})

test('suppressions with times that no calendar has come with usable ones', async () => {
  const rows = ['1e300', -5, 'never', null, 99_999_999_999_999].map((time, nth) => ({
    type: 'recipient',
    address: `a${nth}@one.example`,
    reason: 'bounced',
    timestamp: time,
    keep_until: nth === 1 ? null : time,
  }))
  const { counts } = await run(sourceOf({ servers: [server(1)] }, rows))
  expect(counts.suppressions).toEqual({ found: 5, missing: 5, failed: 0 })
  const [tenant] = await tenants()
  const { total } = await listSuppressions(db, { tenantId: tenant?.id as string }, { number: 1, size: 100 })
  expect(total).toBe(5)
})

test('an archived tenant is reported, also by a comparison, and the others come', async () => {
  const row = { type: 'recipient', address: 'ann@one.example', reason: 'bounced', timestamp: 1_700_000_000, keep_until: null }
  await run(sourceOf({ servers: [server(1)] }))
  const [tenant] = await tenants()
  await db.transaction((tx) => changeTenant(tx, tenant?.id as string, { status: 'archived' }, systemClock.nowMs()))
  const source = sourceOf({ servers: [server(1), server(2)] }, [row])
  const note = { about: 'suppressions', name: tenant?.name, text: expect.stringMatching(/^did not come: .* is archived$/) }
  const compared = await run(source, false)
  expect(compared.counts.suppressions).toEqual({ found: 2, missing: 2, failed: 0 })
  expect(compared.notes).toContainEqual(note)
  const applied = await run(source)
  expect(applied.counts.suppressions).toEqual({ found: 2, missing: 2, failed: 1 })
  expect(applied.notes).toContainEqual(note)
})

test('a comparison counts the suppressions that a known tenant lacks', async () => {
  const rowOf = (address: string) => ({ type: 'recipient', address, reason: 'bounced', timestamp: 1_700_000_000, keep_until: null })
  const before = ['ann@one.example', 'no address'].map(rowOf)
  expect((await run(sourceOf({ servers: [server(1)] }, before))).counts.suppressions).toEqual({ found: 2, missing: 2, failed: 1 })
  const { counts } = await run(sourceOf({ servers: [server(1)] }, [...before, rowOf('ben@one.example')]), false)
  expect(counts.suppressions).toEqual({ found: 3, missing: 2, failed: 0 })
})
