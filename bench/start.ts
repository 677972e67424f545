/**
 * The time from the start of the compiled program to its readiness, on an existing database, against the sum of its two necessary parts on the
 * same machine: PostgreSQL alone with the same settings on the same files, and Node alone with one HTTP listener.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { chown, mkdir, readFile, readlink, stat } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { embeddedUrlIfRunning } from '#db'
import { freePort, startServiceProcess } from '../test/support/spawned-service.ts'
import { compiledProgram } from './compiled-program.ts'
import { endChild, median, timeTo200, timeToReady } from './helpers.ts'

const rounds = 5
const databaseWithinMs = 30_000
const pollMs = 3
const listener = "require('node:http').createServer((_, response) => response.end('ok')).listen(Number(process.env.PORT), '127.0.0.1')"

interface Round {
  /** Milliseconds. */
  ours: number
  postgres: number
  node: number
}

export interface StartFigures {
  rounds: Round[]
  ours: number
  postgres: number
  node: number
  /** Median of the ratios of the rounds: ours to PostgreSQL and Node, one after the other. */
  ratio: number
}

export async function measureStart(environment: Record<string, string>, note: (text: string) => void): Promise<StartFigures> {
  await using service = await startServiceProcess(environment, compiledProgram(note))
  const url = await embeddedUrlIfRunning(service.folder)
  const { postgres: pid } = await service.processes()
  if (url === undefined || pid === undefined) throw new Error('the service has no embedded PostgreSQL')
  const server = await serverOf(pid)
  await service.stop()
  // The first start after an installation compiles the code for its cache.
  await timeToReady(service)
  await service.stop()
  const found: Round[] = []
  for (let round = 0; round < rounds; round++) {
    const ours = await timeToReady(service)
    await service.stop()
    const one = { ours, postgres: await timeOfPostgres(server, url), node: await timeOfNode() }
    found.push(one)
    note(`  round ${round + 1} of ${rounds}: ${Math.round(ours)} ms against ${Math.round(one.postgres)} + ${Math.round(one.node)} ms`)
  }
  return {
    rounds: found,
    ours: median(found.map(({ ours }) => ours)),
    postgres: median(found.map(({ postgres }) => postgres)),
    node: median(found.map(({ node }) => node)),
    ratio: median(found.map(({ ours, postgres, node }) => ours / (postgres + node))),
  }
}

/** The command of a running PostgreSQL, to be repeated as it is. */
interface Server {
  program: string
  words: string[]
  cwd: string
  uid: number
  gid: number
}

async function serverOf(pid: number): Promise<Server> {
  const [, ...words] = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, -1)
  const { uid, gid } = await stat(`/proc/${pid}`)
  return { program: await readlink(`/proc/${pid}/exe`), words, cwd: await readlink(`/proc/${pid}/cwd`), uid, gid }
}

/** From its start to its first answer. */
async function timeOfPostgres({ program, words, cwd, uid, gid }: Server, url: string): Promise<number> {
  const socketFolder = words[words.indexOf('-k') + 1] as string
  await mkdir(socketFolder, { recursive: true, mode: 0o700 })
  await chown(socketFolder, uid, gid)
  const beganMs = performance.now()
  const account = process.getuid?.() === 0 ? { uid, gid } : {}
  const server = spawn(program, words, { ...account, cwd, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }, stdio: 'ignore' })
  try {
    while (!(await answers(url))) {
      if (server.exitCode !== null) throw new Error(`PostgreSQL alone ended with ${server.exitCode}`)
      if (performance.now() > beganMs + databaseWithinMs) throw new Error('PostgreSQL alone did not start')
      await wait(pollMs)
    }
    return performance.now() - beganMs
  } finally {
    await interrupt(server)
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client(url)
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** A fast shutdown. */
const interrupt = (server: ChildProcess) =>
  new Promise<void>((resolve) => {
    if (server.exitCode !== null) return resolve()
    server.once('exit', () => resolve())
    server.kill('SIGINT')
  })

async function timeOfNode(): Promise<number> {
  const port = await freePort()
  const timed = timeTo200(`http://127.0.0.1:${port}/`)
  const child = spawn(process.execPath, ['-e', listener], { env: { PORT: String(port) }, stdio: 'ignore' })
  try {
    return await timed
  } finally {
    await endChild(child)
  }
}

export function startLines({ rounds, ours, postgres, node, ratio }: StartFigures): string[] {
  const ratios = rounds.map((one) => one.ours / (one.postgres + one.node))
  return [
    '| start to ready | PostgreSQL alone | Node alone | ratio | spread |',
    '|---|---|---|---|---|',
    `| ${Math.round(ours)} ms | ${Math.round(postgres)} ms | ${Math.round(node)} ms | ${ratio.toFixed(2)} | ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} |`,
    '',
    `target 1.5: ${ratio <= 1.5 ? 'met' : 'MISSED'}`,
  ]
}
