/** The program on a terminal: log lines for a person, the keys of the first start last on the screen, and colours only where they are wanted. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { freePort } from '../support/spawned-service.ts'

/** util-linux's `script` gives a program a terminal. */
const hasTerminal = spawnSync('script', ['--version']).status === 0
const colour = /\u001b\[\d+m/
const startWithinMs = 60_000

let folder: string
let environment: Record<string, string>
let child: ChildProcess | undefined
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'terminal-'))
  const smtp = { POSTRIDER_SMTP_PORT: '0', POSTRIDER_SUBMISSION_PORT: '0', POSTRIDER_SUBMISSION_TLS_PORT: '0' }
  environment = { PATH: process.env['PATH'] ?? '', TERM: 'xterm', POSTRIDER_DATA: folder, PORT: String(await freePort()), ...smtp }
})
afterAll(async () => {
  child?.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

/** Runs the program on a terminal until `isDone` of its screen, then presses Ctrl-C. */
async function screenOf(words: string, more: Record<string, string>, isDone: (screen: string) => boolean): Promise<string> {
  const command = `'${process.execPath}' '${resolve('bin/postrider.js')}' ${words}`
  const started = spawn('script', ['--quiet', '--flush', '--command', command, '/dev/null'], { env: { ...environment, ...more } })
  child = started
  let screen = ''
  started.stdout.on('data', (octets: Buffer) => (screen += octets.toString()))
  const ended = new Promise<void>((done) => started.once('exit', () => done()))
  await vi.waitUntil(() => isDone(screen) || started.exitCode !== null, { timeout: startWithinMs, interval: 50 })
  const seen = screen
  if (started.exitCode === null) started.stdin.write('\u0003')
  await ended
  child = undefined
  return seen
}

test.skipIf(!hasTerminal)('the first start ends with the keys, below its log lines, which are text with colours', async () => {
  const screen = await screenOf('serve', {}, (seen) => seen.includes('Show its status') && seen.includes('SMTP listeners started'))
  expect(screen).toMatch(/\d\d:\d\d:\d\d\.\d{3}Z.*info .* serve: creating a database/)
  expect(screen).toMatch(colour)
  expect(screen).not.toContain('"level":')
  expect(screen.indexOf('SMTP listeners started')).toBeLessThan(screen.indexOf('svc_live_'))
  expect(screen.slice(screen.indexOf('Show its status'))).not.toMatch(/serve:|inbound:/)
})

test.skipIf(!hasTerminal)('NO_COLOR and POSTRIDER_LOG_FORMAT have precedence over the terminal', async () => {
  const plain = await screenOf('serve', { NO_COLOR: '1' }, (seen) => seen.includes('SMTP listeners started'))
  expect(plain).toMatch(/info {2}inbound: SMTP listeners started/)
  expect(plain).not.toMatch(colour)
  const json = await screenOf('serve', { POSTRIDER_LOG_FORMAT: 'json' }, (seen) => seen.includes('SMTP listeners started'))
  expect(json).toMatch(/^\{"level":30,.*"msg":"SMTP listeners started"\}\r$/m)
})

test.skipIf(!hasTerminal)('a command has colours on a terminal', async () => {
  const added = await screenOf('domain add news.example', {}, () => false)
  expect(added).toContain('Records to publish')
  expect(await screenOf('domain list', {}, () => false)).toMatch(/news\.example {2}\u001b\[33mnot verified\u001b\[39m/)
  expect(await screenOf('domain list', { NO_COLOR: '1' }, () => false)).toMatch(/news\.example {2}not verified/)
})
