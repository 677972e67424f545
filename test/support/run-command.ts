/** Runs a command of the command line in this process. The test passes the permitted dependencies; all others reject. */
import { systemClock } from '#base'
import { runCommand } from '#cli'
import { openLocalApi } from '#http'

type Deps = Parameters<typeof runCommand>[1]

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
