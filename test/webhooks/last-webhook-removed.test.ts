/** A sender that has lost its last webhook reads neither webhooks nor the event log any more. */
import { expect, onTestFinished, test } from 'vitest'
import type { Db, Sql } from '#db'
import { organisationWide } from '#webhooks'
import { startSendingService } from '../support/webhook-fixture.ts'

/** Three seconds of a process without webhooks, which would read its webhooks every two. */
const heartbeats = 6

test('a sender rests after its last webhook is removed', async () => {
  const service = await startSendingService()
  onTestFinished(() => service[Symbol.asyncDispose]())
  const executed: string[] = []
  const db = new Proxy(service.db, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (statement: Sql<unknown>, ...values: unknown[]) => {
        if (name === 'rows') executed.push(statement.text)
        return member.call(target, statement, ...values)
      }
    },
  }) as Db
  const { webhook } = await service.webhooks.create(organisationWide, { name: 'hook', url: 'http://127.0.0.1:9/' })
  await service.start({ db })
  const isOfLeases = (text: string) => /webhook_processes|update webhook_endpoints/.test(text)
  await expect.poll(() => executed.some((text) => !isOfLeases(text))).toBe(true)
  await service.webhooks.remove(String(webhook.id), null)
  const lately = () => executed.slice(executed.findLastIndex((text) => !isOfLeases(text)) + 1)
  const beats = () => lately().filter((text) => text.includes('heartbeat = heartbeat + 1')).length
  await expect.poll(beats, { timeout: 20_000 }).toBeGreaterThan(heartbeats)
}, 30_000)
