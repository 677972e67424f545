/**
 * What traces are told, and where a span belongs. All that happens to one email, in whatever process, is in one trace, whose id follows
 * from the email's.
 */
import { createHash } from 'node:crypto'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { Random } from './ids.ts'
import type { Log } from './log.ts'

/** Something that has just ended. Whoever tells of it leaves out secrets, addresses, subjects and bodies. */
export interface EndedSpan {
  name: string
  /** `server`: we were asked; `client`: we asked. */
  kind: 'server' | 'client'
  durationMs: number
  /** Null and undefined: left out. */
  attributes: Readonly<Record<string, string | number | boolean | null | undefined>>
  /** Why it failed, as a word that recurs; undefined: it did not. */
  error?: string | undefined
  /** The email whose trace it is part of; without one, the span begins a trace or joins the one of `traceparent`. */
  emailId?: string | null | undefined
  /** The caller's header (W3C Trace Context); what is not one is ignored. */
  traceparent?: string | undefined
  /** The emails that came of it: the trace of each begins with it. */
  acceptedEmailIds?: readonly string[] | undefined
  /** What happened on the way, in ms after it began. */
  events?: Readonly<Record<string, number>> | undefined
}

export interface Traces {
  /** Costs its caller no waiting, and never throws; when there is too much to send, it is forgotten. */
  note(span: EndedSpan): void
  /** Sends what there is, if that can be done within two seconds. */
  stop(): Promise<void>
}

export interface TracesDeps {
  clock: Clock
  log: Log
  random: Random
  /** Of this program. */
  version: string
  /** What this process does: `serve`, `delivery`. */
  role: string
}

export type TracesConfig = Pick<
  Config,
  'tracesBase' | 'tracesUrl' | 'tracesHeaders' | 'tracesSampler' | 'tracesShare' | 'tracesExporter' | 'tracesDisabled'
>

/** The same in every process, without its being stored anywhere. */
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
