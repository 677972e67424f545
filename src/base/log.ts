/** Structured logs on standard output: one JSON object per line. Never contains keys, bodies or full tokens. */
import { type Logger, pino } from 'pino'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export function openLog(level: string, role: string): Logger {
  return pino({
    level,
    base: { role },
    redact: ['authorization', 'key', 'secret', 'password', '*.authorization', '*.key', '*.secret', '*.password'],
  })
}

export const silentLog: Log = pino({ level: 'silent' })
