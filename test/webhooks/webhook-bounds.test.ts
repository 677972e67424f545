/** Bounds of webhooks: their number, also under concurrent requests. */
import { expect, test } from 'vitest'
import { Refusal } from '#base'
import { organisationWide } from '#webhooks'
import { startSendingService } from '../support/webhook-fixture.ts'

const maxWebhooks = 200

test('a tenant has at most 200 webhooks, and so has the organisation, however many are created at once', async () => {
  await using service = await startSendingService()
  const { webhooks, tenantId } = service
  for (const owner of [tenantId, organisationWide]) {
    const create = () => webhooks.create(owner, { name: 'hook', url: 'http://127.0.0.1:9/', format: 'resend' })
    const made = await Promise.allSettled(Array.from({ length: maxWebhooks + 3 }, create))
    const refused = made.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
    expect(refused).toHaveLength(3)
    for (const refusal of refused) {
      expect(refusal).toBeInstanceOf(Refusal)
      expect(refusal).toMatchObject({ code: 'validation_error', message: expect.stringContaining('200 webhooks'), hasOwnSuggestion: true })
    }
    const [first] = await webhooks.list(owner)
    expect(await webhooks.list(owner)).toHaveLength(maxWebhooks)
    await webhooks.remove(first?.uuid ?? '', owner)
    await create()
    await expect(create()).rejects.toBeInstanceOf(Refusal)
  }
})
