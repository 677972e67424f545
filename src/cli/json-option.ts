/** Options of commands that name a file or hold a JSON object. */
import { readFileSync } from 'node:fs'
import { type CommandArguments, text, UsageError } from './command-definition.ts'

const maxFileOctets = 1_048_576

/** The text of the file that the option names; undefined if the option is not given. Throws a usage error. */
export function fileOf(given: CommandArguments, option: string): string | undefined {
  const path = text(given, option)
  return path === undefined ? undefined : textOfFile(option, path)
}

function textOfFile(option: string, path: string): string {
  let octets: Buffer
  try {
    octets = readFileSync(path)
  } catch (error) {
    throw new UsageError(`--${option} cannot be read: ${path} (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`)
  }
  if (octets.length > maxFileOctets) throw new UsageError(`--${option} is larger than 1 MiB: ${path}`)
  return octets.toString()
}

/** A JSON object, given as text or as a file after @. Throws a usage error. */
export function objectOf(given: CommandArguments, option: string): Record<string, unknown> | undefined {
  const words = text(given, option)
  if (words === undefined) return undefined
  const json = words.startsWith('@') ? textOfFile(option, words.slice(1)) : words
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Falls through to the usage error.
  }
  throw new UsageError(`--${option} must be a JSON object, or @FILE with one`)
}
