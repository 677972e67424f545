/** An orderly stop of the webhook sender while the database is away ends, although the result of the last request cannot be recorded. */
import { expect, onTestFinished, test } from 'vitest'
import { DatabaseUnreachable, type Db } from '#db'
import { organisationWide } from '#webhooks'
import { startSendingService } from '../support/webhook-fixture.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

test('a stop ends without the database', async () => {
  const service = await startSendingService()
  const receiver = await startReceiver()
  let isAway = false
  onTestFinished(async () => {
    isAway = false
    await service[Symbol.asyncDispose]()
    await receiver[Symbol.asyncDispose]()
  })
  const db = new Proxy(service.db, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...values: unknown[]) =>
        isAway ? Promise.reject(new DatabaseUnreachable('the database is away', undefined)) : member.apply(target, values)
    },
  }) as Db
  let answer: (() => void) | undefined
  receiver.answer = (response) => {
    answer = () => response.writeHead(204).end()
  }
  await service.webhooks.create(organisationWide, { name: 'hook', url: receiver.url })
  const sending = await service.start({ db })
  await service.happen({ n: 1 })
  await expect.poll(() => answer).toBeDefined()
  isAway = true
  answer?.()
  // Without its lease given back, which another process then waits for.
  await sending.stop().catch((error: unknown) => expect(error).toBeInstanceOf(DatabaseUnreachable))
}, 20_000)
