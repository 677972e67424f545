/**
 * Command line entry point: one file for each kind of command.
 * Owns: no tables. Uses: base, client (packages/client), mail, net, bounces, simulator, db, tenants, members, credentials, limits, domains,
 * emails, spool, tracking, certificates, accept, delivery, tls-reports, received-mail, webhooks, usage, reputation, privacy, housekeeping, installation,
 * crash-test, dns-updates, doctor, imports, agents. Used by: main.
 * Promises: every command and every first word of commands has --help; those that print data take --json; a usage error names the correct
 * call and exits with 2.
 */
import { getSystemErrorMessage } from 'node:util'
import { ConfigError, Refusal } from '#base'
import { ApiError } from '#client'
import { shownApiError } from './api.ts'
import { bench, hasBenchmarks, runBenchmarks } from './bench.ts'
import { asksHelp, type Command, type CommandDeps, parseCall, UsageError } from './command-definition.ts'
import { earlyCommands } from './early-commands.ts'
import { alarming } from './styles.ts'

/** The help of every command, for the documentation. @public */
export async function commandsHelp(): Promise<{ name: string; help: string }[]> {
  const { commands } = await import('./commands.ts')
  return commands.map(({ name, help }) => ({ name, help }))
}

/** Runs the command line; returns the exit code: 0, 1 for a failure, 2 for a usage error or a refusal. */
export async function runCommand(given: readonly string[], deps: CommandDeps): Promise<number> {
  const words = given[0] === 'help' ? [...given.slice(1), '--help'] : given[0] === '--version' ? ['version', ...given.slice(1)] : given
  const early = earlyCommands.find(({ name }) => name === words[0])
  if (early) return runFound(early, words, deps)
  const { commandOf, showCommands } = await import('./commands.ts')
  const command = commandOf(words)
  return command ? runFound(command, words, deps) : showCommands(words, deps)
}

async function runFound(command: Command, words: readonly string[], deps: CommandDeps): Promise<number> {
  const rest = words.slice(command.name.split(' ').length)
  if (rest.some(asksHelp)) {
    deps.print(command.help)
    return 0
  }
  if (command === bench && hasBenchmarks()) return runBenchmarks(rest)
  try {
    const call = parseCall(command, rest)
    await command.run(call, command.audited ? (await import('./audit-entry.ts')).recording(command, call, deps) : deps)
    return 0
  } catch (error) {
    return printError(error, command)
  }
}

function printError(error: unknown, command: Command): number {
  if (error instanceof ApiError) {
    const { lines, exitCode } = shownApiError(error, command)
    console.error(alarming(lines))
    return exitCode
  }
  if (error instanceof Refusal) {
    const isAboutCall = !error.hasOwnSuggestion && (error.code === 'validation_error' || error.code === 'not_found')
    console.error(alarming(`${error.message}\n${isAboutCall ? `Run postrider ${command.name} --help for usage` : error.suggestion}`))
  } else if (error instanceof UsageError || error instanceof ConfigError) console.error(alarming(error.message))
  else if (error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))
    // Removes Node's advice on arguments that begin with a dash.
    console.error(alarming(`${error.message.split('. To specify')[0]}\n\n${command.help}`))
  else {
    console.error(error instanceof Error ? alarming(sentenceOf(error)) : error)
    return 1
  }
  return 2
}

/** For a file error: the file's name and the problem in place of the system call. */
const sentenceOf = (error: Error) =>
  'path' in error && 'errno' in error && typeof error.errno === 'number'
    ? `${String(error.path)}: ${getSystemErrorMessage(error.errno)}`
    : error.message
