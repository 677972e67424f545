/** `postrider bench`: the benchmarks of a checkout, with their own options. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Command, jsonOption, UsageError } from './command-definition.ts'

export const bench: Command = {
  name: 'bench',
  summary: 'measure this machine against its limits and other mail servers (in a checkout)',
  help: 'postrider bench [NAME] [--json]\n\nSame as npm run bench. Prints ratios to a limit or a peer that is measured in the same run.',
  options: { ...jsonOption },
  positionals: ['NAME?'],
  run: () => {
    throw new UsageError('bench works only in a checkout. Run npm run bench there')
  },
}

/** Not part of the packages. */
const script = fileURLToPath(new URL('../../bench/bench.ts', import.meta.url))

export const hasBenchmarks = (): boolean => existsSync(script)

export function runBenchmarks(words: readonly string[]): Promise<number> {
  return new Promise((resolve) =>
    spawn(process.execPath, [script, ...words], { stdio: 'inherit' }).once('exit', (code) => resolve(code ?? 1)),
  )
}
