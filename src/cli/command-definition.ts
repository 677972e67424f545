/** Command definition and shared helpers: arguments, help, output. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import type { Clock } from '#base'
import type { Installation, Installations } from '#installation'

/** A command opens the database on demand. */
export interface CommandDeps extends Installations {
  environment: Record<string, string | undefined>
  /** The program's version. */
  version: string
  clock: Clock
  /** Resolves when the command shall stop. If it is not called, Ctrl-C ends the command immediately. */
  untilSignal(): Promise<void>
  /** Runs the service until it is stopped. */
  serve(): Promise<void>
  print(text: string): void
  /** The API under /v1 on this installation's database, in this process, as a `fetch` for the client. */
  openLocalApi(installation: Installation): (url: string, init: RequestInit) => Promise<Response>
  /** Asks on the terminal and resolves with the answer; undefined without a terminal. */
  ask?: ((question: string) => Promise<string>) | undefined
  /** For tests that end a command halfway. */
  failpoint?: ((place: string) => void) | undefined
}

export interface Command {
  /** Words after `postrider`. */
  name: string
  summary: string
  help: string
  options: ParseArgsOptionsConfig
  /** Names of positional arguments, in order. A last one that ends with `?` is optional; one that ends with `...` takes one or more. */
  positionals?: readonly string[]
  /** The possible values of options, for completion. */
  values?: Readonly<Record<string, readonly string[]>>
  /** Successful calls go into the audit log; `unnamed`: without arguments, which name a person or may contain a secret. */
  audited?: true | 'unnamed'
  run(given: CommandArguments, deps: CommandDeps): Promise<void>
}

export interface CommandArguments {
  options: Readonly<Record<string, string | boolean | undefined>>
  positionals: readonly string[]
}

/** A usage error; its message contains the correct call. */
export class UsageError extends Error {}

export function parseCall(command: Command, words: readonly string[]): CommandArguments {
  const { values, positionals } = parseArgs({ args: [...words], options: command.options, allowPositionals: true, strict: true })
  const wanted = command.positionals ?? []
  const minimum = wanted.at(-1)?.endsWith('?') ? wanted.length - 1 : wanted.length
  const fits = positionals.length >= minimum && (wanted.at(-1)?.endsWith('...') || positionals.length <= wanted.length)
  if (!fits) {
    const wrong =
      wanted.length === 0 ? 'takes only options' : `${positionals.length < minimum ? 'needs' : 'takes only'} ${wanted.join(', ')}`
    throw new UsageError(`${command.name} ${wrong}\n\n${command.help.split('\n\n')[0]}`)
  }
  return { options: values as CommandArguments['options'], positionals }
}

export const text = (given: CommandArguments, name: string): string | undefined => {
  const value = given.options[name]
  return typeof value === 'string' ? value : undefined
}

export function needed(given: CommandArguments, name: string): string {
  const value = text(given, name)
  if (value === undefined || value === '') throw new UsageError(`--${name} is required`)
  return value
}

/** Throws unless --yes is given or the answer on the terminal is yes. */
export async function confirmed(given: CommandArguments, { ask }: CommandDeps, question: string): Promise<void> {
  if (given.options.yes === true) return
  if (!ask) throw new UsageError(`${question} Give --yes: this is not a terminal, so the command cannot ask`)
  if (!/^y(es)?$/i.test((await ask(`${question} [y/N] `)).trim())) throw new UsageError('nothing was changed')
}

/** Prints JSON with --json, otherwise text lines. */
export function printed(given: CommandArguments, deps: CommandDeps, record: Record<string, unknown>, lines: string): void {
  deps.print(given.options.json === true ? JSON.stringify(record) : lines)
}

export const asksHelp = (word: string | undefined): boolean => word === '--help' || word === '-h'

export const jsonOption = { json: { type: 'boolean' } } as const
