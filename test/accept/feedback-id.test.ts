/** The header Feedback-ID: by the operator's pattern, never from a caller's line ends or colons, and not in the way of the caller's own. */
import { expect, test } from 'vitest'
import { readConfig } from '#base'
import { startService } from '../support/in-process-service.ts'

const sent = { from: 'shop@simulator.test', to: ['a@simulator.test'], subject: 's', text: 't' }

test('is built from tag, domain and tenant, and a header of the caller has precedence', async () => {
  await using service = await startService({ settings: { POSTRIDER_FEEDBACK_ID: '{tag}:{domain}:{tenant}:ExampleCo' } })
  const headerOf = async (changes: object) => {
    const made = await service.call('POST', '/emails', { key: service.testKey, body: { ...sent, ...changes } })
    const { id } = made.body.data as { id: string }
    const shown = await service.call('GET', `/emails/${id}?expand=headers`, { key: service.testKey })
    return (shown.body.data as { headers: Record<string, string> }).headers['Feedback-ID']
  }
  expect(await headerOf({ tag: 'order receipts: é' })).toBe(`order-receipts-:simulator.test:${service.tenantId}:ExampleCo`)
  expect(await headerOf({})).toBe(`none:simulator.test:${service.tenantId}:ExampleCo`)
  expect(await headerOf({ headers: { 'feedback-id': 'mine:Sender' } })).toBeUndefined()
})

test('is off by default, and a pattern without a constant last part is refused at the start', async () => {
  await using service = await startService()
  const made = await service.call('POST', '/emails', { key: service.testKey, body: sent })
  const { id } = made.body.data as { id: string }
  const shown = await service.call('GET', `/emails/${id}?expand=headers`, { key: service.testKey })
  expect(Object.keys((shown.body.data as { headers: object }).headers)).not.toContain('Feedback-ID')
  for (const pattern of ['{tag}', 'a:b:c:d:Sender', 'a b:Sender', '{tag}:abcd', '{user}:Sender'])
    expect(() => readConfig({ POSTRIDER_FEEDBACK_ID: pattern }), pattern).toThrow('POSTRIDER_FEEDBACK_ID')
})
