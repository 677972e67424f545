/** A person is erased while the receiving server has the message and has not replied yet. */
import { expect, onTestFinished, test } from 'vitest'
import { eraseAddress } from '#housekeeping'
import { startFakeMx } from '../support/fake-mx.ts'
import { startService } from '../support/in-process-service.ts'
import { tablesWith } from '../support/tables-with.ts'

test('an email that is being sent is kept and counted; the next erasure leaves no trace of it', async () => {
  const received = Promise.withResolvers<void>()
  const mx = await startFakeMx({
    script: ({ stage }) => {
      if (stage !== 'content') return undefined
      received.resolve()
      return { silent: true }
    },
  })
  onTestFinished(() => mx.close())
  await using service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    settings: { POSTRIDER_RELAY: `smtp://127.0.0.1:${mx.port}` },
  })
  await service.addDomain(service.tenantId, 'shop.example.com')
  const key = service.liveKey
  const body = { from: 'a@shop.example.com', to: ['zylphia@one.test'], subject: 's', text: 't' }
  const sent = await service.call('POST', '/emails', { key, body })
  const { id } = sent.body.data as { id: string }
  const logged = async () => (await service.call('GET', `/logs/${sent.body.meta.requestId}`, { key })).status
  await expect.poll(logged, { timeout: 10_000, interval: 50 }).toBe(200)
  await received.promise
  const erase = () => eraseAddress(service, 'Zylphia@one.test', null, Date.now(), () => undefined)
  expect(await erase()).toEqual({ emails: 0, contents: 0, kept: 1 })

  // The connection ends without a reply, so that the email is to be attempted again.
  await mx.close()
  const statusOf = async () => ((await service.call('GET', `/emails/${id}`, { key })).body.data as { status: string }).status
  await expect.poll(statusOf, { timeout: 10_000, interval: 50 }).toBe('softfail')
  expect(await erase()).toEqual({ emails: 1, contents: 1, kept: 0 })
  expect(await tablesWith(service.db, 'zylphia')).toEqual([])
})
