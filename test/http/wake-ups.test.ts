import { expect, test } from 'vitest'
import { startService } from '../support/in-process-service.ts'

test('a request that may change something wakes the other processes, and one that reads or is refused does not', async () => {
  await using service = await startService({ rateLimit: null })
  let wakeUps = 0
  const stopListening = await service.db.listen('mail_queued', () => void wakeUps++)
  const key = service.liveKey
  expect((await service.call('GET', '/emails', { key })).status).toBe(200)
  expect((await service.call('POST', '/domains', { key, body: { name: 'not a name' } })).status).toBe(400)
  expect((await service.call('POST', '/domains', { key, body: { name: 'shop.example' } })).status).toBe(201)
  await expect.poll(() => wakeUps).toBe(1)
  await stopListening()
})
