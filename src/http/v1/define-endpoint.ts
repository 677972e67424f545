/**
 * Endpoint declarations as data. Registration, the OpenAPI document, the permission check and the contract tests come from them. A
 * declaration holds the schemas of input and output, from which the handler's types are inferred.
 */

import type { Static, TSchema } from 'typebox'
import type { Accept, SubmissionResponse } from '#accept'
import { type Clock, type Config, type FieldProblem, type Ids, Refusal, type RefusalCode, type Secrets } from '#base'
import type { Credential, Credentials, Permission } from '#credentials'
import type { Db } from '#db'
import type { DelayReasons } from '#delivery'
import type { DomainService, Domains } from '#domains'
import type { LimitSettings, RateVerdict, SendLimitUsage } from '#limits'
import type { LinkChecks } from '#message-checks'
import type { Resolver } from '#net'
import type { Routes } from '#received-mail'
import type { Templates } from '#templates'
import type { Tenants } from '#tenants'
import type { Tracks } from '#tracking'
import type { Usage } from '#usage'
import type { EventStream, Webhooks } from '#webhooks'
import type { AnswerMemory } from './answer-memory.ts'
import type { CallerConnection } from './caller-connection.ts'
import { tenantInBody } from './common-schemas.ts'
import { refuseHiddenContent } from './content-access.ts'
import type { EmailContents } from './email-contents.ts'
import { queryReader } from './query-parameters.ts'
import { largePage, largeSuccess, type Page, page, pageOf, success, successOf } from './response-envelope.ts'
import { compileSchema, refusalOf } from './validate.ts'

/** Dependencies of the endpoints. */
export interface ApiDeps {
  db: Db
  clock: Clock
  accept: Accept
  credentials: Credentials
  domains: Domains
  shownDomains: DomainService
  tracks: Tracks
  tenants: Tenants
  templates: Templates
  routes: Routes
  limitSettings: LimitSettings
  webhooks: Webhooks
  live: EventStream
  usage: Usage
  resolver: Resolver
  linkChecks: LinkChecks
  contents: EmailContents
  answerMemory: AnswerMemory
  delayReasons: DelayReasons
  ids: Ids
  secrets: Secrets
  config: Pick<Config, 'maxAttempts' | 'revealKeys' | 'hostname' | 'relay' | 'allowedNetworks'>
}

type ParamsOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Record<Name, string> & ParamsOf<Rest> : unknown

/** One admitted request, parsed and checked. */
export interface Call<Path extends string, Query, Body> {
  requestId: string
  params: ParamsOf<Path>
  query: Query
  body: Body
  credential: Credential
  /** The only tenant visible to this call, which exists; null: the whole organisation. */
  tenantId: string | null
  rate: RateVerdict
  /** The Idempotency-Key header. Several are joined by commas, which a valid key cannot contain. */
  idempotencyKey: string | undefined
  /** The fingerprint of a large body, computed where the body was parsed; `path` is the path it covers. */
  fingerprint?: { path: string; sha256: Buffer } | null
  /** The Accept header. */
  accept: string | undefined
  /** The Last-Event-ID header, for streams. */
  lastEventId: string | undefined
  /** Absent: no connection waits for the answer. */
  connection?: CallerConnection
}

interface Declaration<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below /v1, as in the contract. */
  path: Path
  /** The contract's log name, such as `emails.send`. Also the operation's id, the metrics label and the request log's endpoint. */
  name: string
  summary: string
  permission: Permission | 'full access' | 'full access, or any key of the tenant' | 'any key'
  /** `organisation` refuses tenant-scoped keys; with `or the tenant in the path`, only where the path names no tenant. */
  scope: 'organisation or tenant' | 'organisation' | 'organisation, or the tenant in the path'
  /** Of the signed-in people, only owners may call it. */
  sessions?: 'owners'
  /** It can lead contents elsewhere: refused to members from whom they are hidden. */
  leadsContentOut?: true
  /** `both`: also served under /tenants/{tenantId}, by the same handler. */
  families: 'organisation' | 'both'
  query?: Query
  body?: Body
  /** The body's schema in the document, if the handler itself checks a part of the body. */
  documentedBody?: TSchema
  /** Another schema, for a body in which this field is neither absent nor null. */
  bodyWith?: { field: string; schema: TSchema }
  /** Bytes of body; default 1 MiB. */
  bodyLimit?: number
  /** 201 if it creates a stored configuration resource, 'either' if the resource may already exist; otherwise 200. */
  status?: 201 | 'either'
  /** Additional refusals; those of every endpoint are implied. */
  refuses: readonly RefusalCode[]
  /** Response media types other than JSON. */
  otherTypes?: readonly string[]
  /** Answers may have megabytes: they are encoded in steps. */
  large?: true
  /** The schema of `data`; for a list, of one item. */
  data: Data
}

/** An endpoint as seen by the app, the OpenAPI document and the tests. */
export interface Endpoint extends Omit<Declaration<string, TSchema, TSchema, TSchema>, 'data'> {
  /** The whole answer, with its envelope. */
  reply: TSchema
  /** Answers with server-sent events without an end. */
  streams: boolean
  /** Uses send capacity: answers carry the send-limit headers, requests may carry an Idempotency-Key. */
  sends: boolean
  /** Whether path, query or body may name a tenant. If not, tenantId is an unknown parameter, which is ignored. */
  takesTenant: boolean
  respond(call: Call<string, unknown, unknown>, deps: ApiDeps): Promise<RouteResponse>
}

/** A download. An error before the first piece is answered as a refusal. */
export interface File {
  type: string
  name: string
  pieces: AsyncIterable<string>
}

/** Yields pieces until `signal` aborts, each only after the last was read. An error before the first is a refusal. */
export type Pieces = (signal: AbortSignal) => AsyncIterable<string>

export interface RouteResponse {
  body: string | Buffer | File | Pieces
  sendLimitUsage?: SendLimitUsage
  replayed?: boolean
  /** Ids of the emails it created. */
  emailIds?: readonly string[]
  /** For an endpoint whose status is 'either'. */
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
    body: await (declared.large ? largeSuccess : success)(await declared.handle(call, deps), call.requestId),
  }))
}

/** Answers 201 if it created the resource, 200 if the resource existed. */
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
    body: await (declared.large ? largePage : page)(await declared.handle(call, deps), call.requestId),
  }))
}

/** Answers a file, as JSON (`data` is its schema, without an envelope) or in one of `otherTypes`. */
export function fileRoute<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data> & { otherTypes: readonly string[]; handle: Handle<Path, Query, Body, File> },
): Endpoint {
  return endpoint(declared, declared.data, false, async (call, deps) => ({ body: await declared.handle(call, deps) }))
}

/** Answers with server-sent events while the key may read them; `data` is the schema of the text. */
export function streamRoute<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data> & { handle: Handle<Path, Query, Body, Pieces> },
): Endpoint {
  const made = endpoint(declared, declared.data, false, async (call, deps) => ({ body: await declared.handle(call, deps) }))
  return { ...made, streams: true }
}

/** Uses send capacity. The response bytes are stored with the idempotency key, so acceptance calls the handler's renderer. */
export function sendRoute<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data> & { handle: Handle<Path, Query, Body, SubmissionResponse> },
): Endpoint {
  return endpoint({ ...declared, bodyLimit: sendBodyLimit }, successOf(declared.data), true, declared.handle)
}

function endpoint<Path extends string, Query extends TSchema, Body extends TSchema, Data extends TSchema>(
  declared: Declaration<Path, Query, Body, Data>,
  reply: TSchema,
  sends: boolean,
  answer: (call: Call<Path, Static<Query>, Static<Body>>, deps: ApiDeps) => Promise<RouteResponse>,
): Endpoint {
  const { data: _, ...facts } = declared
  const readQuery = declared.query ? queryReader(declared.query) : () => ({})
  const bodyProblems = declared.body ? compileSchema(declared.body) : (): FieldProblem[] => []
  const { bodyWith } = declared
  const otherProblems = bodyWith ? compileSchema(bodyWith.schema) : bodyProblems
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
      const isOther = bodyWith !== undefined && (call.body as Record<string, unknown>)[bodyWith.field] != null
      const problems = (isOther ? otherProblems : bodyProblems)(call.body)
      if (problems.length > 0) throw refusalOf(problems)
      // Checked even if the handler ignores the body: a tenant's key may name no other tenant in any place.
      if (takesTenant && call.credential.tenantId !== null) tenantInBody(call.body, call.credential)
      const query = readQuery(call.query as Record<string, unknown>)
      await refuseUnknownTenant(call, deps)
      if (declared.leadsContentOut) {
        // A tenant in a body whose schema has none is ignored: it does not limit the change to its contents.
        const inBody = hasTenant(declared.body) ? tenantInBody(call.body, call.credential) : null
        await refuseHiddenContent(call.credential, call.tenantId ?? inBody, deps)
      }
      return answer({ ...call, query } as unknown as Call<Path, Static<Query>, Static<Body>>, deps)
    },
  }
}

const hasTenant = (schema: TSchema | undefined) =>
  Object.hasOwn((schema as { properties?: object } | undefined)?.properties ?? {}, 'tenantId')

/** A key's own tenant exists; a tenant named by an organisation-level key may not. */
async function refuseUnknownTenant({ tenantId, credential }: Call<string, unknown, unknown>, { tenants }: ApiDeps): Promise<void> {
  if (tenantId === null || tenantId === credential.tenantId || (await tenants.find(tenantId))) return
  throw new Refusal('not_found', { field: 'tenantId', message: `tenantId: no such tenant: ${tenantId}` })
}
