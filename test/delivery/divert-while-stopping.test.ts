/** A stop that meets mail on its way from a failed transport to the next one, with real sockets. */
import { expect, onTestFinished, test } from 'vitest'
import { sql } from '#db'
import { saveTransport, shareTransport } from '#delivery'
import { startDeliveryBeside } from '../support/delivery-beside.ts'
import { startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'

const storedOf = sql<{ state: string; transport: string | null }>`
  select state, transport
  from spool
  where email_id = $1`

const lockRow = sql`
  select email_id
  from spool
  where email_id = $1
  for update`

const waitsForRow = sql<{ waits: boolean }>`
  select exists (
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%set transport%'
  ) as waits`

test('mail that is being diverted while the process stops is given back', { timeout: 60_000 }, async () => {
  const silent = () => startFakeMx({ script: ({ stage }) => (stage === 'connect' ? { silent: true } : undefined) })
  const [failing, unstarted, fallback] = [await silent(), await silent(), await startFakeMx()]
  const service = await startService({ sendLimit: null })
  const { db, secrets, tenantId, liveKey } = service
  const delivery = await startDeliveryBeside(service, {
    POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8',
    POSTRIDER_RETRY_BASE_SECONDS: '600',
  })
  let stopping: Promise<void> | undefined
  const stopDelivery = () => (stopping ??= delivery.stop())
  const held = await db.session()
  onTestFinished(async () => {
    await held.close()
    for (const one of [failing, unstarted, fallback]) await one.close()
    await stopDelivery()
    await service.stop()
  })
  await service.addDomain(tenantId, 'shop.example')
  const save = (name: string, port: number, next: string | null) => {
    const settings = { host: '127.0.0.1', port, tls: 'opportunistic', auth: null, connections: 20, rate: null } as const
    return saveTransport({ db, secrets }, name, () => ({ ...settings, failover: true, fallback: next, guarded: false }), Date.now())
  }
  await save('fallback', fallback.port, null)
  await save('failing', failing.port, 'fallback')
  await save('unstarted', unstarted.port, 'fallback')
  for (const name of ['fallback', 'failing', 'unstarted'])
    await shareTransport(db, { transport: name, percent: 100, tenantId: '', domain: '', tag: name }, false, Date.now())
  // A table of transports is read once in 900 ms.
  await service.wait(1000)
  const stored = (email: string) => db.first(storedOf, [email])
  const send = async (to: string, tag: string) => {
    const body = { from: 'a@shop.example', to: [to], subject: 's', text: 't', tag }
    const answer = await service.call('POST', '/emails', { key: liveKey, body })
    return (answer.body.data as { messages: Record<string, { id: string }> }).messages[to]?.id ?? ''
  }
  const sendInFlight = async (to: string, tag: string) => {
    const id = await send(to, tag)
    await expect.poll(() => stored(id), { timeout: 10_000, interval: 10 }).toEqual({ state: 'sending', transport: tag })
    return id
  }

  // The site of the next transport exists before the stop.
  await send('eve@one.test', 'fallback')
  await fallback.waitFor(1, 10_000)
  const waits = await sendInFlight('ann@one.test', 'unstarted')
  await sendInFlight('bob@one.test', 'failing')
  await expect.poll(() => failing.connections, { timeout: 10_000, interval: 10 }).toBe(1)
  // The failed connection is the outcome of the email that it was opened for; this one is diverted.
  const diverted = await sendInFlight('cid@one.test', 'failing')

  await held.script('begin')
  await held.rows(lockRow, [diverted])
  await failing.close()
  await expect.poll(async () => (await db.first(waitsForRow))?.waits, { timeout: 10_000, interval: 10 }).toBe(true)
  const stopped = stopDelivery()
  // The process takes back the mail that no connection has started, and then waits for the rest.
  await expect.poll(() => stored(waits), { timeout: 10_000, interval: 10 }).toMatchObject({ state: 'ready' })
  await held.script('rollback')
  await stopped
  expect(await stored(diverted)).toMatchObject({ state: 'ready' })
  expect(fallback.messages).toHaveLength(1)
})
