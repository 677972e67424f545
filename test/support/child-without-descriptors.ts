/** Starts a child process while no file descriptor is free, and frees them after the failure. Prints the logged problem, and `ready`. */
import { closeSync, openSync } from 'node:fs'
import { signalReady, silentLog, startChildren, systemClock } from '#base'

if (process.argv[2] === 'child') {
  signalReady()
  process.once('SIGTERM', () => process.exit(0))
  setInterval(() => undefined, 1000)
} else {
  const descriptors: number[] = []
  try {
    for (;;) descriptors.push(openSync('/dev/null', 'r'))
  } catch {
    // None is free.
  }
  const ending = new AbortController()
  const children = startChildren({
    script: import.meta.filename,
    argumentsFor: () => ['child'],
    environment: () => process.env,
    count: 1,
    newName: () => 'one',
    ended: async () => undefined,
    ending: ending.signal,
    clock: systemClock,
    log: {
      ...silentLog,
      warn({ problem }: { problem?: string }) {
        for (const descriptor of descriptors.splice(0)) closeSync(descriptor)
        console.log(problem)
      },
    } as typeof silentLog,
  })
  await children.allReady
  console.log('ready')
  ending.abort()
  await children.stop()
}
