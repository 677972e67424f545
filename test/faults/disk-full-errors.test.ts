/** A database that refuses writes because its disk is full (SQLSTATE 53100 of PostgreSQL). The tests in test/faults fill a real disk. */
import { expect, test } from 'vitest'
import { sql } from '#db'
import { startService } from '../support/in-process-service.ts'

const refuseWrites = (table: string) => `
  create function no_room() returns trigger language plpgsql as $$
  begin
    raise exception 'could not extend file: No space left on device' using errcode = '53100';
  end $$;
  create trigger no_room before insert on ${table} for each statement execute function no_room()`

const probesMade = sql<{ made: number }>`
  select case when is_called then last_value else 0 end as made
  from probes`

const email = { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 's', text: 't' }

test('a write refused for want of room is reported as that, to be repeated later, and makes readiness report it at once', async () => {
  await using service = await startService({ rateLimit: null })
  const readiness = async () => {
    const answer = await fetch(`http://127.0.0.1:${service.port}/readyz`)
    return { status: answer.status, database: ((await answer.json()) as { database: string }).database }
  }
  const post = () => service.call('POST', '/emails', { key: service.testKey, body: email })
  expect(await readiness()).toEqual({ status: 200, database: 'reachable' })
  await service.db.script(refuseWrites('emails'))
  const refused = await post()
  expect(refused).toMatchObject({ status: 500, body: { error: { code: 'internal_error' } } })
  expect(refused.body.error?.message).toContain('disk')
  expect(refused.body.error?.message).not.toContain('unreachable')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(refused.headers.get('x-should-retry')).toBe('true')
  // The earlier check result is outdated.
  expect(await readiness()).toEqual({ status: 503, database: 'full' })
  await service.db.script('drop trigger no_room on emails')
  await expect.poll(readiness).toEqual({ status: 200, database: 'reachable' })
  expect((await post()).status).toBe(200)
})

test('a process without requests notices that nothing can be written', async () => {
  await using service = await startService()
  await service.db.script(`
    create function no_file() returns event_trigger language plpgsql as $$
    begin
      raise exception 'could not extend file: No space left on device' using errcode = '53100';
    end $$;
    create event trigger no_file on ddl_command_start when tag in ('CREATE TABLE') execute function no_file()`)
  const status = async () => (await fetch(`http://127.0.0.1:${service.port}/readyz`)).status
  await expect.poll(status).toBe(503)
  await service.db.script('drop event trigger no_file')
  await expect.poll(status).toBe(200)
})

test('a thousand questions for readiness are a few writes', async () => {
  await using service = await startService()
  const ask = () => fetch(`http://127.0.0.1:${service.port}/readyz`).then((answer) => answer.arrayBuffer())
  await service.db.script(`
    create sequence probes;
    create function count_probe() returns event_trigger language plpgsql as $$ begin perform nextval('probes'); end $$;
    create event trigger count_probe on ddl_command_start when tag in ('CREATE TABLE') execute function count_probe()`)
  for (let n = 0; n < 20; n++) await Promise.all(Array.from({ length: 50 }, ask))
  const made = (await service.db.first(probesMade))?.made ?? 0
  expect(made).toBeGreaterThan(0)
  expect(made).toBeLessThan(10)
})
