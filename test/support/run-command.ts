/** Runs a command of the command line in this process. The test passes the permitted dependencies; all others reject. */
import { openIds, readConfig, systemClock, systemRandom } from '#base'
import { runCommand } from '#cli'
import { openLocalApi } from '#http'
import type { Service } from './in-process-service.ts'

type Deps = Parameters<typeof runCommand>[1]

/** Lets commands work on the service's own database; `settings` as for `readConfig`. */
export function onDatabaseOf({ db, secrets }: Pick<Service, 'db' | 'secrets'>, settings: Record<string, string> = {}) {
  const withInstallation: Deps['withInstallation'] = (work) =>
    work({
      config: readConfig(settings),
      db,
      clock: systemClock,
      ids: openIds(systemRandom),
      random: systemRandom,
      secrets,
      version: 'test',
    })
  return { withInstallation }
}

/** Resolves with the exit code. */
export function runHere(words: readonly string[], given: Partial<Deps>): Promise<number> {
  const never = () => Promise.reject(new Error('not here'))
  const refused = {
    withInstallation: never,
    withRawDatabase: never,
    untilSignal: never,
    serve: never,
  }
  return runCommand(words, {
    environment: {},
    version: 'test',
    clock: systemClock,
    openLocalApi,
    ...refused,
    print: () => undefined,
    ...given,
  })
}
