/** Through a real PgBouncer: session pooling works, and sharing is refused with one sentence at the start. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Db, openDb } from '#db'
import { databaseAt } from '../support/database-url.ts'
import { missingPgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { freePort, startServiceProcess } from '../support/spawned-service.ts'

const missing = missingPgBouncer()

describe.skipIf(missing !== undefined)(`PgBouncer${missing === undefined ? '' : ` (${missing})`}`, () => {
  const database = `pgbouncer_${process.pid}`
  let admin: Db

  beforeAll(async () => {
    admin = await openDb({ url: databaseAt(inject('serverUrl'), 'postgres'), poolSize: 1, applicationName: 'tests' })
    await admin.script(`create database ${database}`)
  })
  afterAll(async () => {
    await admin.script(`drop database ${database} with (force)`)
    await admin.close()
  })

  test('in session mode, the service starts, accepts and delivers', async () => {
    await using pooler = await startPgBouncer(inject('serverUrl'), database, await freePort(), 'session')
    await using service = await startServiceProcess({ DATABASE_URL: pooler.url, POSTRIDER_SECRET: 'a secret for the test of the pooler' })
    const email = { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 's', text: 't' }
    const { status, body } = await service.call('POST', '/emails', email, service.testKey)
    expect(status).toBe(200)
    const { id } = body.data as { id: string }
    await expect
      .poll(async () => (await service.call('GET', `/emails/${id}`, undefined, service.testKey)).body.data, { timeout: 30_000 })
      .toMatchObject({ status: 'sent' })
  })

  test.each(['transaction', 'statement'] as const)('in %s mode, the start is refused with the setting to change', async (mode) => {
    await using pooler = await startPgBouncer(inject('serverUrl'), database, await freePort(), mode)
    const opened = openDb({ url: pooler.url, poolSize: 2, applicationName: 'tests' })
    await expect(opened).rejects.toThrow('Set pool_mode = session')
  })
})
