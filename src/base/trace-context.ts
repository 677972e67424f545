/** Trace spans. Everything that happens to one email, in any process, belongs to one trace, whose id is derived from the email's. */
import { createHash } from 'node:crypto'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { Random } from './ids.ts'
import type { Log } from './log.ts'

/** A finished span. The caller leaves out secrets, addresses, subjects and bodies. */
export interface EndedSpan {
  name: string
  /** `server`: an incoming request; `client`: an outgoing request. */
  kind: 'server' | 'client'
  durationMs: number
  /** Null and undefined are left out. */
  attributes: Readonly<Record<string, string | number | boolean | null | undefined>>
  /** The reason of a failure, as a recurring word; undefined: success. */
  error?: string | undefined
  /** The email whose trace it belongs to. Without one, the span begins a trace or joins that of `traceparent`. */
  emailId?: string | null | undefined
  /** The caller's header (W3C Trace Context); an invalid one is ignored. */
  traceparent?: string | undefined
  /** The emails created by it; the trace of each begins with it. */
  acceptedEmailIds?: readonly string[] | undefined
  /** Intermediate events, in milliseconds after the start. */
  events?: Readonly<Record<string, number>> | undefined
}

export interface Traces {
  /** Never blocks and never throws; drops the span if too many are queued. */
  note(span: EndedSpan): void
  /** Sends the queued spans if possible within two seconds. */
  stop(): Promise<void>
}

export interface TracesDeps {
  clock: Clock
  log: Log
  random: Random
  /** The program's version. */
  version: string
  /** The process's role: `serve`, `delivery`. */
  role: string
}

export type TracesConfig = Pick<
  Config,
  'tracesBase' | 'tracesUrl' | 'tracesHeaders' | 'tracesSampler' | 'tracesShare' | 'tracesExporter' | 'tracesDisabled'
>

/** The same in every process, without being stored. */
export const traceIdOf = (emailId: string): string => createHash('sha256').update(emailId).digest('hex').slice(0, 32)

export interface Parent {
  traceId: string
  spanId: string
  traceFlags: number
}

/** W3C Trace Context section 3.2: later versions may append fields. */
const traceparentForm =
  /^(?!ff)(?<version>[0-9a-f]{2})-(?!0{32})(?<traceId>[0-9a-f]{32})-(?!0{16})(?<spanId>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<more>-.*)?$/

export function parseTraceparent(header: string): Parent | undefined {
  const { version, traceId, spanId, flags, more } = traceparentForm.exec(header)?.groups ?? {}
  if (traceId === undefined || spanId === undefined || flags === undefined || (version === '00' && more !== undefined)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1 }
}
