/** An agent of the operator finds out why a person got no email, and helps after a plan, through the whole program and `postrider mcp`. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { overStdio } from '../agents/agent-client.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

let service: ServiceProcess
beforeAll(async () => {
  service = await startServiceProcess({ POSTRIDER_RATE_LIMIT: 'unlimited' })
})
afterAll(() => service[Symbol.asyncDispose]())

test('an agent rehearses, finds the suppression of a person who got nothing, and removes it with the token of its plan', async () => {
  await using agent = await overStdio(Number(new URL(service.url).port), service.testKey, 'modern')
  const address = 'ann@example.com'
  await service.call('POST', '/suppressions', { address, reason: 'asked by phone' }, service.testKey)
  const { data: sent } = await agent.call('send_test_email', { to: address, subject: 'Receipt', text: 'Thank you.' })
  const why = async () => (await agent.call('why_no_mail', { address })).data
  await expect
    .poll(async () => (await why()).finding)
    .toBe('the address is suppressed; the newest email is held: its recipient is suppressed, or its tenant is paused or suspended')
  expect(await why()).toMatchObject({ suppressions: [{ untrusted: { address: 'a***@example.com', reason: 'asked by phone' } }] })

  const { data: plan } = await agent.call('remove_suppression', { address })
  expect(plan.plan).toContain('receives mail again')
  await agent.call('remove_suppression', { address, token: plan.token })
  const { data: retry } = await agent.call('release_held_email', { emailId: sent.id })
  await agent.call('release_held_email', { emailId: sent.id, token: retry.token })
  await expect.poll(async () => (await why()).finding).toContain("the recipient's server accepted the newest email")
  const changes = JSON.stringify((await agent.call('what_changed')).data)
  for (const action of ['mcp remove_suppression', 'mcp release_held_email']) expect(changes).toContain(action)
})
