/** The declaration of a tool as data, and the means that its function gets: calls with the rights of the caller's key, and quoting. */
import type { Static, TObject, TProperties } from 'typebox'
import type { Clock } from '#base'
import type { Credential } from '#credentials'
import type { Db } from '#db'
import type { CheckResult } from '#doctor'
import type { Quoter } from './quote.ts'

/** The answer of an endpoint under /v1. */
export interface ApiAnswer {
  data: unknown
  /** Of a list: the number of all items. */
  total?: number
}

/** Parameters as in a URL, and a body. */
export interface ApiCall {
  params?: Record<string, string>
  query?: Record<string, string | number | boolean | undefined>
  body?: Record<string, unknown>
}

/** A right that no endpoint of /v1 checks. */
export interface Right {
  permission: 'emails:read' | 'full access'
  scope: 'organisation or tenant' | 'organisation'
}

export interface AgentCaller {
  credential: Credential
  requestId: string
  ipAddress: string | null
  /** The program, as it names itself. */
  agent: string | null
  /** Calls an endpoint by its name, such as `emails.list`, with the permissions and the tenant of the key. Throws its refusals. */
  call(endpoint: string, given: ApiCall): Promise<ApiAnswer>
  /** Refuses `permission_denied`. */
  require(right: Right): void
  /** Runs a search of the database in the turn of its tenant. */
  search<Result>(work: () => Promise<Result>): Promise<Result>
}

export interface ToolContext {
  db: Db
  clock: Clock
  caller: AgentCaller
  quote: Quoter
  runChecks: () => Promise<CheckResult[]>
}

/** Fields from outside stand below `untrusted`. */
export type ToolResult = Record<string, unknown>

interface Declaration<Input extends TProperties> {
  name: string
  title: string
  description: string
  input: TObject<Input>
}

type Given<Input extends TProperties> = Static<TObject<Input>>

/** The description of an action before it happens. */
export interface Plan {
  /** Sentences without text from outside. */
  plan: string
  facts?: ToolResult
}

interface ReadTool<Input extends TProperties> extends Declaration<Input> {
  read(given: Given<Input>, context: ToolContext): Promise<ToolResult>
}

/** Sends mail with a test key, which never leaves the installation. */
interface RehearsalTool<Input extends TProperties> extends Declaration<Input> {
  rehearse(given: Given<Input>, context: ToolContext): Promise<ToolResult>
}

/** Changes something: a first call returns its plan and a token, a second call with the token performs it. */
interface ActTool<Input extends TProperties> extends Declaration<Input> {
  plan(given: Given<Input>, context: ToolContext): Promise<Plan>
  perform(given: Given<Input>, context: ToolContext): Promise<ToolResult>
}

export type Tool = ReadTool<TProperties> | RehearsalTool<TProperties> | ActTool<TProperties>

export const question = <Input extends TProperties>(tool: ReadTool<Input>): Tool => tool as unknown as Tool
export const rehearsal = <Input extends TProperties>(tool: RehearsalTool<Input>): Tool => tool as unknown as Tool
export const action = <Input extends TProperties>(tool: ActTool<Input>): Tool => tool as unknown as Tool

/** An answer's object, whose fields the tools check one by one. */
export type Fields = Record<string, unknown>

export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
export const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : [])

/** The named fields of an object of the API, if they are numbers, booleans, null, or short texts that Postrider writes itself. */
export function facts(value: Fields, names: readonly string[]): Fields {
  const known = names.filter((name) => value[name] !== undefined)
  return Object.fromEntries(known.map((name) => [name, safe(value[name])]))
}

/** One word, id, time, code or host name. Any other text belongs to `untrusted`. */
const safeText = /^[\w.:+-]{0,100}$/

function safe(value: unknown): unknown {
  if (typeof value === 'string') return safeText.test(value) ? value : null
  return value === null || typeof value === 'number' || typeof value === 'boolean' ? value : null
}
