/** Privacy for an operator: a tenant's texts leave the whole program once the command has said so, and the report proves it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openIds, readConfig, systemClock, systemRandom } from '#base'
import { notKept } from '#request-logs'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'

const dayMs = 86_400_000
let aheadMs = 0
let daysAhead = 0
const clock = {
  ...systemClock,
  nowMs: () => systemClock.nowMs() + daysAhead * dayMs,
  monotonicMs: () => systemClock.monotonicMs() + aheadMs,
  /** The loops of every ten seconds do not keep the test waiting. */
  after: (delayMs: number, work: () => void) => systemClock.after(delayMs === 10_000 ? 200 : delayMs, work),
}
let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['housekeeping'], clock })
})
afterAll(() => service.stop())

async function command(...words: string[]): Promise<Record<string, unknown>> {
  const printed: string[] = []
  const config = readConfig({})
  const { db, secrets } = service
  const given = { config, db, secrets, clock, ids: openIds(systemRandom), random: systemRandom, version: 'test' }
  const environment = { USER: 'ann' }
  const print = (text: string) => printed.push(text)
  expect(await runHere([...words, '--json'], { withInstallation: (work) => work(given), print, environment })).toBe(0)
  return JSON.parse(printed.join('')) as Record<string, unknown>
}

const call = (method: string, path: string, body?: object) =>
  service.call(method, path, { key: service.liveKey, ...(body ? { body } : {}) })

test('the texts of a tenant are gone from emails and request log, and the records stay until they are reduced', {
  timeout: 60_000,
}, async () => {
  const tenantId = await service.makeTenant('Clinic')
  await service.addDomain(tenantId, 'clinic.test')
  const scheduledAt = new Date(clock.nowMs() + dayMs).toISOString()
  const letter = { tenantId, from: 'a@clinic.test', to: ['ann@example.net'], subject: 'Findings', text: 'Between us.', scheduledAt }
  const send = async () => {
    const sent = await call('POST', '/emails', letter)
    expect(sent.status, sent.text).toBe(200)
    const { messages } = sent.body.data as { messages: Record<string, { id: string }> }
    return { requestId: sent.body.meta.requestId, emailId: messages['ann@example.net']?.id ?? '' }
  }
  const bodyOf = async (requestId: string) =>
    ((await call('GET', `/logs/${requestId}`)).body.data as { request: { body: unknown } } | undefined)?.request.body
  const before = await send()
  await expect.poll(() => bodyOf(before.requestId), { timeout: 10_000 }).toEqual(letter)
  const first = await command('privacy', 'report', tenantId)
  expect(first).toMatchObject({ contentDays: 30, contents: { rows: 1, ofQueuedEmails: 1 } })
  expect((first.requestBodies as { rows: number }).rows).toBeGreaterThan(0)

  expect(await command('privacy', 'set', tenantId, '--content-days', '0')).toEqual({
    tenantId,
    contentDays: 0,
    hashAddressesAfterDays: null,
    recordDays: null,
    contentVisibleTo: 'everyone',
  })
  const hidden = await command('privacy', 'set', tenantId, '--content-visible-to', 'admins')
  expect(hidden).toEqual({ tenantId, contentDays: 0, hashAddressesAfterDays: null, recordDays: null, contentVisibleTo: 'admins' })
  aheadMs += 11_000
  const after = await send()
  await expect.poll(() => bodyOf(after.requestId), { timeout: 10_000 }).toBe(notKept)
  for (const { emailId } of [before, after]) expect((await call('POST', `/emails/${emailId}/cancel`)).status).toBe(200)
  const left = async () => {
    aheadMs += 11_000
    return command('privacy', 'report', tenantId)
  }
  await expect.poll(left, { timeout: 30_000, interval: 500 }).toMatchObject({
    contentDays: 0,
    contents: { rows: 0, oldest: null, ofQueuedEmails: 0 },
    requestBodies: { rows: 0, oldest: null },
    emails: { rows: 2, erased: 0 },
  })
  expect(await bodyOf(before.requestId)).toBe(notKept)
  const shown = await call('GET', `/emails/${before.emailId}?expand=content`)
  expect(shown.body.data).toMatchObject({ subject: 'Findings', to: 'ann@example.net' })
  expect(shown.text).not.toContain('Between us.')

  const kept = { tenantId, contentDays: 0, hashAddressesAfterDays: null, recordDays: 1, contentVisibleTo: 'admins' }
  expect(await command('privacy', 'set', tenantId, '--record-days', '1')).toEqual(kept)
  expect(await command('privacy', 'report', tenantId)).toMatchObject({ recordDays: 1, records: { rows: 2, notFinal: 0 } })
  daysAhead = 2
  await expect.poll(left, { timeout: 30_000, interval: 200 }).toMatchObject({
    emails: { rows: 2, erased: 2 },
    records: { rows: 0, oldest: null },
    attempts: { rows: 0 },
    events: { rows: 0 },
  })
  const reduced = await call('GET', `/emails/${before.emailId}?expand=content`)
  expect(reduced.body.data).toMatchObject({ subject: '', to: 'erased@erased.invalid', from: 'erased@erased.invalid', status: 'hardfail' })
  expect(await command('privacy', 'set', tenantId, '--record-days', 'default')).toEqual({ ...kept, recordDays: null })
})
