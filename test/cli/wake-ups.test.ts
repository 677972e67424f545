import { expect, test } from 'vitest'
import { startService } from '../support/in-process-service.ts'
import { onDatabaseOf, runHere } from '../support/run-command.ts'

test('a command that changes the database past the API wakes the processes', async () => {
  await using service = await startService({ rateLimit: null })
  let wakeUps = 0
  const stopListening = await service.db.listen('mail_queued', () => void wakeUps++)
  const words = ['queue', 'pause', '--destination', 'slow.test', '--reason', 'test']
  expect(await runHere(words, onDatabaseOf(service))).toBe(0)
  await expect.poll(() => wakeUps).toBe(1)
  await stopListening()
})
