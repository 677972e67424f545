import { resolve } from 'node:path'
import { buildProgram } from '../tools/package.ts'

/** Builds the program as it is published. Returns Node and the script, for `startServiceProcess`. */
export function compiledProgram(note: (text: string) => void): { node: string; script: string } {
  const folder = resolve('artifacts/packages/postrider')
  note('  building the package')
  buildProgram(folder)
  return { node: process.execPath, script: resolve(folder, 'bin/postrider.js') }
}
