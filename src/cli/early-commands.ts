/**
 * The commands that run without the modules of the others: `version`, and `serve`, which starts PostgreSQL before it loads the rest of the
 * program.
 */
import { settings } from '#base'
import { type Command, jsonOption, printed } from './command-definition.ts'

export const serve: Command = {
  name: 'serve',
  summary: 'run the service',
  help: `postrider serve

Runs the service until Ctrl-C or SIGTERM. The environment has the settings:

${Object.values(settings)
  .map((one) => `  ${`${one.env} `.padEnd(36)}${one.means} (default: ${one.default})`)
  .join('\n')}`,
  options: {},
  run: (_given, deps) => deps.serve(),
}

export const versionCommand: Command = {
  name: 'version',
  summary: 'print the version',
  help: 'postrider version [--json]\n\nPrints the version of Postrider; postrider --version does the same.\n\nExample: postrider version --json',
  options: { ...jsonOption },
  run: async (given, deps) => printed(given, deps, { version: deps.version, node: process.versions.node }, deps.version),
}

export const earlyCommands: readonly Command[] = [serve, versionCommand]
