/**
 * Structured logs on standard output: one JSON object per line, or one line for a person on a terminal. Never contains keys, bodies or full
 * tokens.
 */
import { type DestinationStream, type Logger, pino } from 'pino'
import { logLineText } from './log-text.ts'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

/** Standard output, standard error, or the test's. */
interface Output {
  isTTY?: boolean
  write(text: string): unknown
}

interface LogOptions {
  logLevel: string
  /** undefined: text on a terminal, JSON elsewhere. Child processes inherit the output, and so the form. */
  logFormat: 'json' | 'text' | undefined
}

export function openLog({ logLevel, logFormat }: LogOptions, role: string, output: Output = process.stdout): Logger {
  const options = {
    level: logLevel,
    base: { role },
    redact: ['authorization', 'key', 'secret', 'password', '*.authorization', '*.key', '*.secret', '*.password'],
  }
  const format = logFormat ?? (output.isTTY === true ? 'text' : 'json')
  if (format === 'text') return pino(options, { write: (line) => void output.write(`${logLineText(line, output)}\n`) })
  // Pino writes to standard output itself, faster than through the stream.
  return output === process.stdout ? pino(options) : pino(options, output as DestinationStream)
}

export const silentLog: Log = pino({ level: 'silent' })
