import { expect, test } from 'vitest'
import { openIds, readConfig, systemClock, systemRandom } from '#base'
import { startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'

test('a command that changes the database past the API wakes the processes', async () => {
  await using service = await startService({ rateLimit: null })
  let wakeUps = 0
  const stopListening = await service.db.listen('mail_queued', () => void wakeUps++)
  const run = (...words: string[]) =>
    runHere(words, {
      withInstallation: (work) =>
        work({
          config: readConfig({}),
          db: service.db,
          clock: systemClock,
          ids: openIds(systemRandom),
          secrets: service.secrets,
        } as Parameters<typeof work>[0]),
    })
  expect(await run('queue', 'pause', '--destination', 'slow.test', '--reason', 'test')).toBe(0)
  await expect.poll(() => wakeUps).toBe(1)
  await stopListening()
})
