/**
 * Runs a real service against the external world of the table: its API and its database started as a user starts them. The delivery
 * processes are separate, so that their memory can be measured. Linux only: memory is read from /proc.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Db, embeddedUrlIfRunning, openDb } from '#db'
import { startServiceProcess } from '../../support/spawned-service.ts'
import { type Outside, startOutside } from './remote-world.ts'
import { type Call, senderDomain } from './send-rows.ts'
import type { bounds } from './time-limits.ts'
import { maxAttempts } from './time-limits.ts'

export interface DeliveryProcess {
  /** Returns resident memory and, of that, objects and buffers in use, in octets after a garbage collection. Starts a new peak. */
  settle(): Promise<{ resident: number; used: number }>
  /** The highest resident memory since then. */
  peak(): Promise<number>
  readonly hasEnded: boolean
}

export interface Running extends AsyncDisposable {
  outside: Outside
  call: Call
  /** For reading only. */
  db: Db
  deliveries: readonly DeliveryProcess[]
  /** The logs of the processes, which are empty in normal operation. */
  log: () => string
}

const script = new URL('delivery-process.ts', import.meta.url).pathname

export interface Manner {
  processes: number
  bounds: typeof bounds
  retryBaseMs: number
}

export async function startRunning({ processes, bounds, retryBaseMs }: Manner): Promise<Running> {
  await using starting = new AsyncDisposableStack()
  const outside = starting.use(await startOutside())
  const settings = {
    ...outside.settings,
    POSTRIDER_RATE_LIMIT: 'unlimited',
    POSTRIDER_SEND_LIMIT: 'unlimited',
    POSTRIDER_MAX_ATTEMPTS: String(maxAttempts),
    POSTRIDER_RETRY_BASE_SECONDS: String(retryBaseMs / 1000),
  }
  const service = starting.use(await startServiceProcess({ ...settings, POSTRIDER_ROLES: 'api' }))
  await service.command('domain', 'add', senderDomain, '--trust')
  const url = (await embeddedUrlIfRunning(service.folder)) as string
  const db = starting.adopt(await openDb({ url, poolSize: 1, applicationName: 'looking' }), (one) => one.close())
  const secret = (await readFile(join(service.folder, 'secret'), 'utf8')).trim()
  const environment = { ...service.environment, DATABASE_URL: url, POSTRIDER_SECRET: secret }
  let log = ''
  const deliveries: DeliveryProcess[] = []
  for (let nth = 1; nth <= processes; nth++) {
    const child = await startDeliveryProcess([`delivery-${nth}`, JSON.stringify(bounds)], environment, (text) => {
      log = (log + text).slice(-100_000)
    })
    starting.adopt(child, endProcess)
    deliveries.push(processOf(child))
  }
  const closing = starting.move()
  return {
    outside,
    async call(method, path, body) {
      const answer = await service.call(method, path, body)
      if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body.error)}`)
      return answer.body.data
    },
    db,
    deliveries,
    log: () => log + service.output().replaceAll(/^(?!\{).*\n?/gm, ''),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function startDeliveryProcess(
  words: readonly string[],
  environment: Record<string, string | undefined>,
  hear: (text: string) => void,
) {
  const env = environment as NodeJS.ProcessEnv
  const child = fork(script, words, { env, execArgv: ['--expose-gc'], stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', hear)
  await answerOf(child)
  return child
}

const answerOf = (child: ChildProcess) =>
  new Promise<unknown>((resolve, reject) => {
    const ended = () => reject(new Error(`a delivery process ended with ${child.exitCode ?? child.signalCode}`))
    child.once('exit', ended)
    child.once('message', (message) => {
      child.off('exit', ended)
      resolve(message)
    })
  })

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const end = new Promise((resolve) => child.once('exit', resolve))
  child.disconnect()
  await end
}

function processOf(child: ChildProcess): DeliveryProcess {
  const read = async (field: 'VmRSS' | 'VmHWM') => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
    return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024
  }
  return {
    async settle() {
      const collected = answerOf(child)
      // If the message cannot be sent, the process has ended, as the result shows.
      child.send('collect', () => {})
      const used = Number(await collected)
      // proc(5), clear_refs: 5 resets the peak to the current resident memory.
      await writeFile(`/proc/${child.pid}/clear_refs`, '5')
      return { resident: await read('VmRSS'), used }
    },
    peak: () => read('VmHWM'),
    get hasEnded() {
      return child.exitCode !== null || child.signalCode !== null
    },
  }
}
