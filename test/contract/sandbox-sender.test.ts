/** The sandbox sender needs no domain, reaches only members of the organisation, and has ten emails a UTC day. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openIds, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { addMember } from '#members'
import { type Service, startService } from '../support/in-process-service.ts'

const sender = 'sandbox@mail.example.net'
const member = 'owner@house.example'
const email = (to: string, more = {}) => ({ from: sender, to: [to], subject: 's', text: 'Hello', ...more })

const resetDays = sql`
  delete from sandbox_days`

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, settings: { POSTRIDER_HOSTNAME: 'mail.example.net' } })
  await service.db.transaction((tx) =>
    addMember(tx, { address: member, role: 'owner', tenantId: null }, { nowMs: systemClock.nowMs(), ids: openIds(systemRandom) }),
  )
})
afterAll(() => service.stop())

const send = (body: object, path = '/emails') => service.call('POST', path, { key: service.liveKey, body })

test('reaches a member in any case of the address, and refuses other recipients', async () => {
  await service.db.run(resetDays)
  for (const to of [member, 'Owner@House.example'])
    expect(await send(email(to))).toMatchObject({ status: 200, body: { data: { status: 'pending', sandbox: true } } })
  for (const more of [{ to: ['ann@example.net'] }, { cc: ['ann@example.net'] }, { bcc: ['ann@example.net'] }])
    expect(await send(email(member, more))).toMatchObject({ status: 403, body: { error: { code: 'sandbox_recipient_not_allowed' } } })
})

test('has ten emails a UTC day, of which refused ones do not count', async () => {
  await service.db.run(resetDays)
  const past = { scheduledAt: '2020-01-01T00:00:00Z' }
  for (let n = 0; n < 11; n++) {
    expect((await send(email('ann@example.net'))).status).toBe(403)
    expect((await send(email(member, past))).status).toBe(400)
  }
  for (let n = 0; n < 8; n++) expect((await send(email(member))).status).toBe(200)
  const elements = Array.from({ length: 3 }, () => ({ to: [member], subject: 's', text: 'Hello' }))
  const batch = await send({ from: sender, emails: elements }, '/emails/batch')
  expect(batch.status, batch.text).toBe(200)
  expect(batch.body.data).toMatchObject({ sandbox: true })
  const { results } = batch.body.data as { results: { status: string; error?: { code: string } }[] }
  expect(results.map(({ error }) => error?.code)).toEqual([undefined, undefined, 'sandbox_limit_exceeded'])
  const refused = await send(email(member))
  expect(refused).toMatchObject({ status: 429, body: { error: { code: 'sandbox_limit_exceeded' } } })
  expect(refused.headers.get('x-should-retry')).toBe('false')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('is not available for raw messages', async () => {
  const rawMessage = Buffer.from(`From: ${sender}\r\nTo: ${member}\r\nSubject: s\r\n\r\nHello\r\n`).toString('base64')
  const refused = await send({ from: sender, to: [member], rawMessage }, '/emails/raw')
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 'domain_not_verified' } } })
})
