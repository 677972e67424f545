/**
 * `npm run check`: all static checks, one line for each, and the ten largest files. Each tool must also have examined the existing files: a
 * checker that finds no files fails.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow } from './source-files.ts'

interface Step {
  name: string
  command: string[]
  /** Reads the tool's output; returns a problem that the tool itself did not report. */
  guard?: (output: string) => string | undefined
  /** Output lines to show on success. */
  show?: (line: string) => boolean
}

const root = process.cwd()
const sources = ['src', 'test', 'tools', 'bench'].flatMap((folder) => filesBelow(root, folder, '.ts'))

function sawEnough(seen: string | undefined): string | undefined {
  return Number(seen) >= sources.length ? undefined : `it looked at ${seen ?? 'no'} files, but there are ${sources.length}`
}

const steps: Step[] = [
  {
    name: 'format, imports (biome)',
    command: ['biome', 'ci', '--colors=off', '--reporter=summary', '.'],
    guard: (output) => sawEnough(/Checked (\d+) files?/.exec(output)?.[1]),
  },
  {
    name: 'lint with types (oxlint)',
    command: ['oxlint', '--deny-warnings'],
    guard: (output) => sawEnough(/ on (\d+) files/.exec(output)?.[1]),
  },
  {
    name: 'types (tsc)',
    command: ['tsc', '-p', '.', '--pretty', 'false', '--listFiles'],
    guard: (output) => {
      const missing = sources.filter((path) => !output.includes(`/${path}\n`))
      return missing.length === 0 ? undefined : `outside tsconfig's include: ${missing.join(', ')}`
    },
  },
  { name: 'types of the dashboard', command: ['tsc', '-p', 'dashboard', '--pretty', 'false'] },
  { name: 'types of the client', command: ['tsc', '-p', 'packages/client', '--noEmit', '--pretty', 'false'] },
  { name: 'modules, headers, tables', command: ['node', 'tools/modules.ts'], show: (line) => /^\d+ (modules|long functions)/.test(line) },
  { name: 'prose', command: ['node', 'tools/prose.ts'], show: (line) => /passages/.test(line) },
  { name: 'unused (knip)', command: ['knip', '--no-progress', '--no-config-hints'] },
  { name: 'goldens', command: ['node', 'tools/golden.ts'], show: (line) => line !== '' },
]

function run(command: string[]): Promise<{ code: number; output: string }> {
  const [program = '', ...rest] = command
  return new Promise((resolve) => {
    const path = `${join(root, 'node_modules/.bin')}:${process.env.PATH ?? ''}`
    const child = spawn(program === 'node' ? process.execPath : program, rest, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PATH: path, NO_COLOR: '1' },
    })
    const pieces: Buffer[] = []
    child.stdout.on('data', (piece: Buffer) => pieces.push(piece))
    child.stderr.on('data', (piece: Buffer) => pieces.push(piece))
    child.on('error', (error) => resolve({ code: 127, output: error.message }))
    child.on('close', (code) => resolve({ code: code ?? 1, output: Buffer.concat(pieces).toString() }))
  })
}

/** tsc lists every file it read; only its errors are shown. */
const worthReading = (output: string) =>
  output
    .split('\n')
    .filter((line) => !/^\/\S+\.[cm]?[jt]sx?$|^\/\S+\.json$/.test(line))
    .join('\n')
    .trimEnd()

let failed = 0
for (const { name, command, guard, show } of steps) {
  const startMs = performance.now()
  const { code, output } = await run(command)
  const wrong = code === 0 ? guard?.(output) : undefined
  const isFine = code === 0 && wrong === undefined
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
  const remarks = isFine && show ? output.split('\n').filter(show).join('; ') : ''
  console.log(`${isFine ? 'ok  ' : 'FAIL'}  ${name.padEnd(26)} ${seconds.padStart(5)} s  ${remarks}`.trimEnd())
  if (isFine) continue
  failed++
  console.log(wrong ?? worthReading(output))
}

const largest = filesBelow(root, 'src', '.ts')
  .filter((path) => !path.endsWith('.test.ts'))
  .map((path) => ({ path, lines: readFileSync(join(root, path), 'utf8').split('\n').length - 1 }))
  .sort((a, b) => b.lines - a.lines)
  .slice(0, 10)
console.log('\nThe ten largest source files:')
for (const { path, lines } of largest) console.log(`${String(lines).padStart(6)}  ${path}`)
if (failed > 0) console.log(`\n${failed} of ${steps.length} checks failed`)
process.exitCode = failed === 0 ? 0 : 1
