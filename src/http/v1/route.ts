/**
 * How an endpoint is declared: as data, from which come its registration, its place in the OpenAPI document, the permission check and
 * the contract tests. The schema of what comes in and goes out stands in the declaration, and the handler's types come from it.
 */

import type { Static, TSchema } from 'typebox'
import type { Accept, Answer } from '#accept'
import { type Clock, type Config, type FieldProblem, type Ids, Refusal, type RefusalCode, type Secrets } from '#base'
import type { Credential, Credentials, Permission } from '#credentials'
import type { Db } from '#db'
import type { Standstills } from '#delivery'
import type { Domains, ShownDomains } from '#domains'
import type { LimitSettings, RateVerdict, Standing } from '#limits'
import type { Resolver } from '#net'
import type { Tenants } from '#tenants'
import type { Tracks } from '#tracking'
import type { Usage } from '#usage'
import type { Live, Webhooks } from '#webhooks'
import { type Page, page, pageOf, success, successOf } from './envelope.ts'
import { queryReader } from './query.ts'
import { refusalOf, shapeOf } from './shape.ts'
import { tenantInBody } from './wire.ts'

/** What the endpoints use. */
export interface ApiDeps {
  db: Db
  clock: Clock
  accept: Accept
  credentials: Credentials
  domains: Domains
  shownDomains: ShownDomains
  tracks: Tracks
  tenants: Tenants
  limitSettings: LimitSettings
  webhooks: Webhooks
  live: Live
  usage: Usage
  resolver: Resolver
  standstills: Standstills
  ids: Ids
  secrets: Secrets
  config: Pick<Config, 'maxAttempts' | 'revealKeys' | 'hostname'>
}

type ParamsOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Record<Name, string> & ParamsOf<Rest> : unknown

/** One admitted request, read and checked. */
export interface Call<Path extends string, Query, Body> {
  requestId: string
  params: ParamsOf<Path>
  query: Query
  body: Body
  credential: Credential
  /** The one tenant this call may see, which exists; null: all of the organisation. */
  tenantId: string | null
  rate: RateVerdict
  /** The Idempotency-Key header; several are joined by commas, which no key may contain. */
  idempotencyKey: string | undefined
  /** Of a large body, whose fingerprint was taken where it was read; `path` is the one that it covers. */
  fingerprint?: { path: string; sha256: Buffer } | null
  /** The Accept header. */
  accept: string | undefined
  /** The Last-Event-ID header, of those that stream. */
  lastEventId: string | undefined
}

interface Declaration<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below /v1, as in the contract. */
  path: Path
  /** The contract's log name, `emails.send`: also the operation's id, the metrics' label and the request log's endpoint. */
  name: string
  summary: string
  permission: Permission | 'full access' | 'full access, or any key of the tenant' | 'any key'
  /** `organisation`: tenant-scoped keys are refused; or only where the path names no tenant. */
  scope: 'organisation or tenant' | 'organisation' | 'organisation, or the tenant in the path'
  /** `both`: also served under /tenants/{tenantId}, by the same handler. */
  families: 'organisation' | 'both'
  query?: Query
  body?: Body
  /** What the document says of the body, where the handler itself checks a part of it. */
  documentedBody?: TSchema
  /** Octets of body; 1 MiB when absent. */
  bodyLimit?: number
  /** 201 when it makes a stored resource of configuration, 'either' when that may be there already; else 200. */
  status?: 201 | 'either'
  /** What it may refuse with, besides what every endpoint may. */
  refuses: readonly RefusalCode[]
  /** Media types besides JSON in which it answers. */
  otherTypes?: readonly string[]
  /** The schema of `data`; of one item for a list. */
  data: Data
}

/** An endpoint as the app, the OpenAPI document and the tests see it. */
export interface Endpoint extends Omit<Declaration<string, TSchema, TSchema, TSchema>, 'data'> {
  /** The whole answer, envelope included. */
  reply: TSchema
  /** Answers with server-sent events that do not end. */
  streams: boolean
  /** Takes send capacity: answers carry the send-limit headers, requests may carry an Idempotency-Key. */
  sends: boolean
  /** Whether its path, query or body may name a tenant; elsewhere tenantId is a parameter that nobody knows, and ignored. */
  takesTenant: boolean
  respond(call: Call<string, unknown, unknown>, deps: ApiDeps): Promise<Answered>
}

/** A download. What goes wrong before the first piece is a refusal like any other. */
export interface File {
  type: string
  name: string
  pieces: AsyncIterable<string>
}

/** Pieces until `signal` aborts; none is made before the last was read. What goes wrong before the first is a refusal. */
export type Pieces = (signal: AbortSignal) => AsyncIterable<string>

export interface Answered {
  body: string | Buffer | File | Pieces
  standing?: Standing
  replayed?: boolean
  /** Of the emails that it made. */
  emailIds?: readonly string[]
  /** Of an endpoint whose status is 'either'. */
  status?: 200 | 201
}

const mebibyte = 1_048_576
export const usualBodyLimit = mebibyte
const sendBodyLimit = 64 * mebibyte

type Handle<Path extends string, Query extends TSchema, Body extends TSchema, Result> = (
  call: Call<Path, Static<Query>, Static<Body>>,
  deps: ApiDeps,
) => Promise<Result>

/** Answers one object. */
export function route<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data> & { handle: Handle<Path, Query, Body, Static<Data>> },
): Endpoint {
  return endpoint(declared, successOf(declared.data), false, async (call, deps) => ({
    body: success(await declared.handle(call, deps), call.requestId),
  }))
}

/** Makes something or finds it there: 201 or 200. */
export function ensureRoute<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data> & { handle: Handle<Path, Query, Body, { made: boolean; data: Static<Data> }> },
): Endpoint {
  return endpoint({ ...declared, status: 'either' }, successOf(declared.data), false, async (call, deps) => {
    const { made, data } = await declared.handle(call, deps)
    return { body: success(data, call.requestId), status: made ? 201 : 200 }
  })
}

/** Answers one page of a list; `data` is the schema of an item. */
export function listRoute<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data> & { handle: Handle<Path, Query, Body, Page<Static<Data>>> },
): Endpoint {
  return endpoint(declared, pageOf(declared.data), false, async (call, deps) => ({
    body: page(await declared.handle(call, deps), call.requestId),
  }))
}

/** Answers a file, as JSON (`data` is its schema, without an envelope) or in one of `otherTypes`. */
export function fileRoute<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data> & { otherTypes: readonly string[]; handle: Handle<Path, Query, Body, File> },
): Endpoint {
  return endpoint(declared, declared.data, false, async (call, deps) => ({ body: await declared.handle(call, deps) }))
}

/** Answers with server-sent events, for as long as the key may read them; `data` is the schema of the text. */
export function streamRoute<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data> & { handle: Handle<Path, Query, Body, Pieces> },
): Endpoint {
  const made = endpoint(declared, declared.data, false, async (call, deps) => ({ body: await declared.handle(call, deps) }))
  return { ...made, streams: true }
}

/** Takes send capacity: the answer's octets are kept with the idempotency key, so acceptance has them rendered by the handler. */
export function sendRoute<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data> & { handle: Handle<Path, Query, Body, Answer> },
): Endpoint {
  return endpoint({ ...declared, bodyLimit: sendBodyLimit }, successOf(declared.data), true, declared.handle)
}

function endpoint<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data>,
  reply: TSchema,
  sends: boolean,
  answer: (call: Call<Path, Static<Query>, Static<Body>>, deps: ApiDeps) => Promise<Answered>,
): Endpoint {
  const { data: _, ...facts } = declared
  const readQuery = declared.query ? queryReader(declared.query) : () => ({})
  const bodyProblems = declared.body ? shapeOf(declared.body) : (): FieldProblem[] => []
  const takesTenant =
    declared.path.includes('{tenantId}') || declared.families === 'both' || hasTenant(declared.query) || hasTenant(declared.body)
  return {
    ...facts,
    reply,
    streams: false,
    sends,
    takesTenant,
    async respond(call, deps) {
      if (typeof call.body !== 'object' || call.body === null || Array.isArray(call.body)) {
        throw new Refusal('validation_error', { message: 'the body must be a JSON object', suggestion: 'Send one JSON object' })
      }
      const problems = bodyProblems(call.body)
      if (problems.length > 0) throw refusalOf(problems)
      // Also where the body is not read: a key of a tenant may name no other anywhere.
      if (takesTenant && call.credential.tenantId !== null) tenantInBody(call.body, call.credential)
      const query = readQuery(call.query as Record<string, unknown>)
      await refuseUnknownTenant(call, deps)
      return answer({ ...call, query } as unknown as Call<Path, Static<Query>, Static<Body>>, deps)
    },
  }
}

const hasTenant = (schema: TSchema | undefined) =>
  Object.hasOwn((schema as { properties?: object } | undefined)?.properties ?? {}, 'tenantId')

/** A key's own tenant exists; one that an organisation-level key names may not. */
async function refuseUnknownTenant({ tenantId, credential }: Call<string, unknown, unknown>, { tenants }: ApiDeps): Promise<void> {
  if (tenantId === null || tenantId === credential.tenantId || (await tenants.find(tenantId))) return
  throw new Refusal('not_found', { field: 'tenantId', message: `tenantId: there is no tenant ${tenantId}` })
}
