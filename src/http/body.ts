/**
 * Reads a request's body as JSON, bounded in octets, in keys, values and depth, and in what all requests together keep in memory.
 * Whatever is wrong with it is a refusal. Small bodies are read at once; larger ones on a thread of their own, tenant by tenant, because
 * the worst of them would hold up every other request for seconds.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { type Clock, openThread, Refusal, type Thread, TookTooLong } from '#base'
import { type HeldBody, holdBody } from '#request-logs'
import { boundsOf } from './body-bounds.ts'
import { type BodyRoom, ClientLeft, openBodyRoom } from './body-room.ts'
import type { LargeBody, ReadBody } from './body-thread.ts'
import type { JsonBounds } from './json-bounds.ts'
import { parseJson } from './parse-json.ts'
import type { Endpoint } from './v1/route.ts'

/** The worst body of this size takes some milliseconds to read, and thousands of them fit into memory. */
const smallOctets = 262_144
const mebibyte = 1_048_576
/** The worst body takes a second or two; a machine that is busy with other things takes longer. */
const readWithinMs = 20_000
/** A thread that has read large bodies keeps much memory, and starts in a tenth of a second. */
const idleMs = 10_000

const jsonTypes = /^application\/json\s*(;|$)/i

declare module 'fastify' {
  interface FastifyRequest {
    /** Closes when the request has been answered or its connection has ended. */
    response: ServerResponse | null
    /** Of a large body that came with an Idempotency-Key. */
    fingerprint: { path: string; sha256: Buffer } | null
    /** A large body that waits for its thread or is read there. */
    beingRead: Promise<unknown> | null
  }
}

export interface BodyReader {
  /** The parsed body; `{}` when there is none. Refuses `payload_too_large`, `invalid_content_type`, `invalid_json` and `validation_error`. */
  read(request: FastifyRequest, payload: IncomingMessage): Promise<unknown>
}

interface BodyDeps {
  clock: Clock
  /** Told of a body whose length was not announced, and which is larger than a small one. */
  weigh: (request: FastifyRequest, octets: number) => Promise<void>
}

export function openBodyReader({ clock, weigh }: BodyDeps): BodyReader {
  const room = openBodyRoom()
  const thread = openThread<LargeBody, ReadBody>(new URL('./body-thread.ts', import.meta.url), { clock, deadlineMs: readWithinMs, idleMs })
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
        enterRoom: (size) => enterUntilAnswered(size, request, room),
      })
      if (announced === undefined && octets.length > smallOctets) await weigh(request, octets.length)
      if (octets.length === 0) {
        request.octets = holdBody(octets)
        return {}
      }
      const isLarge = octets.length > smallOctets
      const wrongType = refusalOfType(request)
      if (wrongType) {
        request.octets = isLarge
          ? { ...holdBody(Buffer.from(octets.subarray(0, mostHeldOctets))), size: octets.length, cut: true }
          : holdBody(octets)
        throw wrongType
      }
      if (isLarge) return readLarge(request, octets, boundsFor(request), thread)
      request.octets = holdBody(octets)
      return parseJson(octets, boundsFor(request))
    },
  }
}

/** Of a body that is not looked at. */
const mostHeldOctets = 32_768

function refusalOfType({ headers }: FastifyRequest): Refusal | undefined {
  const { 'content-type': type, 'content-encoding': encoding } = headers
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    return new Refusal('invalid_content_type', {
      message: 'the body must not have a Content-Encoding',
      suggestion: 'Send the body as plain JSON',
    })
  }
  return type !== undefined && !jsonTypes.test(type) ? new Refusal('invalid_content_type') : undefined
}

/** Those who take turns with their large bodies: tenants, and all of the organisation. */
const whoseOf = ({ credential }: FastifyRequest) => credential?.tenantId ?? ''

async function readLarge(
  request: FastifyRequest,
  octets: Buffer,
  bounds: JsonBounds,
  thread: Thread<LargeBody, ReadBody>,
): Promise<unknown> {
  const { endpoint } = request.routeOptions.config
  const once = endpoint?.sends && request.headers['idempotency-key'] !== undefined
  const path = `/v1${endpoint?.path}`
  const size = octets.length
  const task: LargeBody = {
    octets: octets.buffer as ArrayBuffer,
    size,
    bounds,
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

/** What comes from a thread are plain arrays of octets. */
const bufferOf = (octets: Uint8Array) => Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
const heldHere = ({ octets, head, ...held }: HeldBody): HeldBody => ({
  ...held,
  octets: bufferOf(octets),
  ...(head ? { head: bufferOf(head) } : {}),
})

const tookTooLong = () =>
  new Refusal('validation_error', {
    message: 'the body could not be read in time, because the server has much to do',
    suggestion: 'Send the request again, or send less in one request',
    shouldRetry: true,
  })

/** Takes room that is given back when the request has been answered or its connection has ended, and nothing reads its body any more. */
async function enterUntilAnswered(octets: number, request: FastifyRequest, room: BodyRoom): Promise<void> {
  const gone = new AbortController()
  request.response?.once('close', () => gone.abort())
  const leaveRoom = await room.enter(whoseOf(request), octets, gone.signal)
  const leave = () => void Promise.allSettled([request.beingRead]).then(leaveRoom)
  if (gone.signal.aborted) leave()
  else gone.signal.addEventListener('abort', leave, { once: true })
}

interface Bounds {
  /** Content-Length. */
  announced: number | undefined
  limit: number
  enterRoom: (octets: number) => Promise<void>
}

/**
 * All octets of the body; a body that is not small lies at the start of memory of its own. What is over the limit is left to the server,
 * which reads and drops it.
 */
async function collect(payload: IncomingMessage, { announced, limit, enterRoom }: Bounds): Promise<Buffer> {
  if (announced !== undefined && announced > limit) throw tooLarge(limit)
  if (announced !== undefined && announced > smallOctets) await enterRoom(announced)
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let size = 0
    // Filled as it comes: putting 64 MiB together at the end would take a tenth of a second.
    let whole = announced !== undefined && announced > smallOctets ? Buffer.allocUnsafeSlow(announced) : undefined
    const stop = () => payload.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose)
    const fail = (error: unknown) => {
      stop()
      reject(error)
    }
    let isWaiting = false
    /** Memory is taken when there is room for it: bodies that are never finished would take it all the same. */
    const goOnInRoom = () => {
      const room = Buffer.allocUnsafeSlow(limit)
      let at = 0
      for (const one of chunks) at += one.copy(room, at)
      chunks = []
      whole = room
      payload.resume()
    }
    const onData = (chunk: Buffer) => {
      if (whole) chunk.copy(whole, size)
      else chunks.push(chunk)
      size += chunk.length
      if (size > limit) return fail(tooLarge(limit))
      // A body of unannounced length that turns out large may become as large as the limit.
      if (!whole && !isWaiting && size > smallOctets) {
        isWaiting = true
        payload.pause()
        enterRoom(limit).then(goOnInRoom, fail)
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
