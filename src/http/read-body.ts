/**
 * Reads a request's body as JSON, bounded in bytes, keys, values and depth, and in the memory of all requests together. Every error is a
 * refusal. Small bodies are parsed at once. Larger ones are parsed on a worker thread, with tenants taking turns, because the worst of them
 * would block every other request for seconds.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { type Clock, openThread, Refusal, type Thread, TookTooLong } from '#base'
import { type HeldBody, holdBody } from '#request-logs'
import { boundsOf } from './body-limits.ts'
import { jsonInForm } from './form-body.ts'
import { type FormKind, formKind, readFormFields } from './form-fields.ts'
import type { JsonBounds } from './json-limits.ts'
import { parseJson } from './parse-json.ts'
import type { LargeBody, ReadBody } from './read-body-thread.ts'
import { type BodyMemory, ClientLeft, claimedBy, openBodyMemory } from './v1/body-memory.ts'
import { connectionOf, releaseWhenGone } from './v1/caller-connection.ts'
import type { Endpoint } from './v1/define-endpoint.ts'
import { coveredPath } from './v1/request-fingerprint.ts'

/** The worst body of this size takes a few milliseconds to parse, and thousands of them fit into memory. */
export const smallOctets = 262_144
const mebibyte = 1_048_576
/** The worst body takes one or two seconds; a loaded machine takes longer. */
const readWithinMs = 20_000
/** Longer than a request takes to arrive, be parsed and be answered. An answer takes longer if it waits behind another one or is read slowly. */
const maxHeldMs = 120_000
/** A thread that has parsed large bodies keeps much memory, and a new one starts in a tenth of a second. */
const idleMs = 10_000

const jsonTypes = /^application\/json\s*(;|$)/i

/** Fields of a form whose values are JSON, and those that the request log must not have. */
export interface FormFields {
  json?: readonly string[]
  hidden?: readonly string[]
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The body may be a form: with the JSON in its field `params`, or with fields that stand for the members. */
    takesForms?: 'params' | 'fields'
    formFields?: FormFields
    /** Reads the parameters of a form of another vendor's protocol. */
    readForm?: (form: Buffer) => Promise<object>
  }
  interface FastifyRequest {
    /** Closes when the request is answered or its connection ends. */
    response: ServerResponse | null
    /** Fingerprint of a large body that came with an Idempotency-Key. */
    fingerprint: { path: string; sha256: Buffer } | null
    /** Pending while a large body waits for its thread or is being parsed there. */
    beingRead: Promise<unknown> | null
  }
}

export interface BodyReader {
  /**
   * Returns the parsed body, or `{}` without a body. Refuses `payload_too_large`, `invalid_content_type`, `invalid_json` and
   * `validation_error`.
   */
  read(request: FastifyRequest, payload: IncomingMessage): Promise<unknown>
}

interface BodyDeps {
  clock: Clock
  /** Called for a body of unannounced length that is larger than a small one. */
  weigh: (request: FastifyRequest, octets: number) => Promise<void>
}

export function openBodyReader({ clock, weigh }: BodyDeps): BodyReader {
  const memory = openBodyMemory()
  const thread = openThread<LargeBody, ReadBody>(new URL('./read-body-thread.ts', import.meta.url), {
    clock,
    deadlineMs: readWithinMs,
    idleMs,
  })
  const bounds = new Map<Endpoint | undefined, JsonBounds>()
  const boundsFor = (request: FastifyRequest) => {
    const { endpoint } = request.routeOptions.config
    const known = bounds.get(endpoint) ?? boundsOf(endpoint)
    bounds.set(endpoint, known)
    return known
  }
  return {
    async read(request, payload) {
      const announced = request.headers['content-length'] === undefined ? undefined : Number(request.headers['content-length'])
      const octets = await collect(payload, {
        announced,
        limit: request.routeOptions.bodyLimit,
        reserve: (size) => reserveUntilAnswered(size, request, { clock, memory }),
      })
      await request.checkBody?.(octets)
      if (announced === undefined && octets.length > smallOctets) await weigh(request, octets.length)
      if (octets.length === 0) {
        request.octets = holdBody(octets)
        return {}
      }
      const isLarge = octets.length > smallOctets
      const { readForm } = request.routeOptions.config
      if (readForm && formType.test(request.headers['content-type'] ?? '')) return readParameters(request, octets, readForm)
      if (request.routeOptions.config.takesForms === 'params' && formType.test(request.headers['content-type'] ?? '')) {
        const json = jsonInForm(octets)
        // The log holds the JSON: encoded, secrets and addresses would not be found in it.
        request.octets = { ...holdBody(json ?? Buffer.alloc(0)), size: octets.length }
        if (json === undefined)
          throw new Refusal('payload_too_large', { message: 'a form is larger than 1 MiB: send the parameters as application/json' })
        return json.length === 0 ? {} : parseJson(json, boundsFor(request))
      }
      const form = formOf(request)
      const wrongType = form ? refusalOfEncoding(request) : refusalOfType(request)
      if (wrongType) {
        request.octets = isLarge
          ? { ...holdBody(Buffer.from(octets.subarray(0, maxHeldOctets))), size: octets.length, cut: true }
          : holdBody(octets)
        throw wrongType
      }
      if (isLarge) return readLarge(request, octets, { bounds: boundsFor(request), form }, thread)
      if (form) {
        // A form that cannot be read is not logged: encoded, secrets would not be found in it.
        request.octets = { ...holdBody(Buffer.alloc(0)), size: octets.length }
        const { body, shown } = readFormFields(octets, form, limitsOf(request, boundsFor(request)))
        request.octets = { ...holdBody(shown), size: octets.length }
        return body
      }
      request.octets = holdBody(octets)
      return parseJson(octets, boundsFor(request))
    },
  }
}

/** The log holds the parameters as JSON, in which secrets and addresses are found. Raw messages are left out, as in JSON bodies. */
async function readParameters(request: FastifyRequest, octets: Buffer, readForm: (form: Buffer) => Promise<object>): Promise<object> {
  const size = octets.length
  // A form that cannot be read is not logged: encoded, its secrets would not be found.
  request.octets = { ...holdBody(Buffer.alloc(0)), size }
  const parameters = await readForm(octets)
  request.octets = { ...holdBody(shownParameters(parameters)), size }
  return parameters
}

/** The log keeps less of the text: writing 64 MiB of control characters as JSON would hold the loop for seconds. */
const maxShownCharacters = 65_536

/** The parameters of a form as the request log holds them. */
export function shownParameters(parameters: object): string {
  let left = maxShownCharacters
  return JSON.stringify(parameters, (name, value: unknown) => {
    if (name === 'RawMessage') return blanked
    if (typeof value !== 'string') return value
    const kept = value.slice(0, left)
    left -= kept.length
    return kept
  })
}

const blanked = '[redacted]'
const formType = /^application\/x-www-form-urlencoded\s*(;|$)/i
/** Most bytes kept of a body that is not parsed. */
const maxHeldOctets = 32_768

function refusalOfEncoding({ headers }: FastifyRequest): Refusal | undefined {
  const { 'content-encoding': encoding } = headers
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return undefined
  return new Refusal('invalid_content_type', {
    message: 'the body must not have a Content-Encoding',
    suggestion: 'Send the body as plain JSON',
  })
}

function refusalOfType(request: FastifyRequest): Refusal | undefined {
  const type = request.headers['content-type']
  return refusalOfEncoding(request) ?? (type !== undefined && !jsonTypes.test(type) ? new Refusal('invalid_content_type') : undefined)
}

const formOf = ({ headers, routeOptions }: FastifyRequest): FormKind | undefined =>
  routeOptions.config.takesForms === 'fields' ? formKind(headers['content-type'] ?? '') : undefined
const limitsOf = ({ routeOptions }: FastifyRequest, bounds: JsonBounds) => {
  const { json = [], hidden = [] } = routeOptions.config.formFields ?? {}
  return { json, hidden, bounds }
}

/**
 * The key by which large bodies take turns: one per tenant, and one for the whole organisation. Until a signature is checked, one for all
 * requests that name a key of the tenant: by its addresses, one tenant would have the memory of many, and a stranger who knows the id of a
 * key must not take that of the tenant.
 */
const whoseOf = ({ credential, claimed }: FastifyRequest) =>
  claimed && !credential ? claimedBy(claimed.tenantId) : (credential?.tenantId ?? '')

async function readLarge(
  request: FastifyRequest,
  octets: Buffer,
  { bounds, form }: { bounds: JsonBounds; form: FormKind | undefined },
  thread: Thread<LargeBody, ReadBody>,
): Promise<unknown> {
  const { endpoint } = request.routeOptions.config
  const once = endpoint?.sends && request.headers['idempotency-key'] !== undefined
  const path = request.admission ? coveredPath(`/v1${endpoint?.path}`, request.admission) : `/v1${endpoint?.path}`
  const size = octets.length
  const task: LargeBody = {
    octets: octets.buffer as ArrayBuffer,
    size,
    bounds,
    form: form && { kind: form, limits: limitsOf(request, bounds) },
    fingerprintOf: once ? { method: request.method, path } : null,
  }
  const reading = thread.run(whoseOf(request), task, [task.octets])
  request.beingRead = reading
  const { held, read } = await reading.catch((error: unknown) => {
    throw error instanceof TookTooLong ? tookTooLong() : error
  })
  request.octets = heldHere(held)
  if ('refused' in read) {
    const { code, message, suggestion } = read.refused
    throw new Refusal(code, { message, suggestion })
  }
  if (read.fingerprint) request.fingerprint = { path, sha256: bufferOf(read.fingerprint) }
  return read.body
}

/** The thread returns plain byte arrays. */
const bufferOf = (octets: Uint8Array) => Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
const heldHere = ({ octets, head, ...held }: HeldBody): HeldBody => ({
  ...held,
  octets: bufferOf(octets),
  ...(head ? { head: bufferOf(head) } : {}),
})

const tookTooLong = () =>
  new Refusal('validation_error', {
    message: 'the body was not read in time: the server is overloaded',
    suggestion: 'Send the request again, or split it into smaller requests',
    shouldRetry: true,
  })

/** Reserves memory until the request is answered or its connection ends, and its body is no longer being read. */
async function reserveUntilAnswered(octets: number, request: FastifyRequest, { clock, memory }: MemoryDeps): Promise<void> {
  if (!request.response) throw new Error('a body arrived before its request')
  const connection = connectionOf(request.response)
  const release = await memory.reserve(whoseOf(request), octets, connection.gone)
  const releaseLater = () => void Promise.allSettled([request.beingRead]).then(release)
  releaseWhenGone(connection, { clock, withinMs: maxHeldMs, release: releaseLater })
}

interface MemoryDeps {
  clock: Clock
  memory: BodyMemory
}

interface Bounds {
  /** Content-Length. */
  announced: number | undefined
  limit: number
  reserve: (octets: number) => Promise<void>
}

/**
 * Reads the whole body. A body that is not small gets its own allocation. Bytes over the limit are left to the server, which reads and
 * discards them.
 */
async function collect(payload: IncomingMessage, { announced, limit, reserve }: Bounds): Promise<Buffer> {
  if (announced !== undefined && announced > limit) throw tooLarge(limit)
  if (announced !== undefined && announced > smallOctets) await reserve(announced)
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let size = 0
    // Filled as the bytes arrive: joining 64 MiB at the end would take a tenth of a second.
    let whole = announced !== undefined && announced > smallOctets ? Buffer.allocUnsafeSlow(announced) : undefined
    const stop = () => payload.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose)
    const fail = (error: unknown) => {
      stop()
      reject(error)
    }
    let isWaiting = false
    /** The memory is allocated only when the budget permits it, because unfinished bodies occupy it as well. */
    const goOnWithMemory = () => {
      const buffer = Buffer.allocUnsafeSlow(limit)
      let at = 0
      for (const one of chunks) at += one.copy(buffer, at)
      chunks = []
      whole = buffer
      payload.resume()
    }
    const onData = (chunk: Buffer) => {
      if (whole) chunk.copy(whole, size)
      else chunks.push(chunk)
      size += chunk.length
      if (size > limit) return fail(tooLarge(limit))
      // A large body of unannounced length may grow up to the limit, so the limit is reserved.
      if (!whole && !isWaiting && size > smallOctets) {
        isWaiting = true
        payload.pause()
        reserve(limit).then(goOnWithMemory, fail)
      }
    }
    const onEnd = () => {
      stop()
      resolve(whole ? whole.subarray(0, size) : chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size))
    }
    const onError = () => fail(new ClientLeft())
    const onClose = () => fail(new ClientLeft())
    payload.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
  })
}

const tooLarge = (limit: number) => new Refusal('payload_too_large', { message: `the body is larger than ${limit / mebibyte} MiB` })
