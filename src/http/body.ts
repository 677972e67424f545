/**
 * Reads a request's body as JSON, bounded in octets, in depth, and in what all requests together keep in memory. Whatever is wrong
 * with it is a refusal; nothing that walks the result can recurse deeper than the bound.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Refusal } from '#base'
import { holdBody } from '#request-logs'
import { isDeeperThan } from './json-depth.ts'

/** Deeper than anything the API takes. */
const deepest = 32
/** Bodies up to this size are read without asking for room: thousands of them fit. */
const smallOctets = 1_048_576
/** What larger bodies may occupy together; more wait their turn, as long as a request may take. */
const roomOctets = 268_435_456

const jsonTypes = /^application\/json\s*(;|$)/i

declare module 'fastify' {
  interface FastifyRequest {
    /** Closes when the request has been answered or its connection has ended. */
    response: ServerResponse | null
  }
}

/** Gives room back; harmless when called again. */
type Leave = () => void

export interface BodyRoom {
  /** Resolves when there is room for `octets`, first come first served. `gone` is aborted when the caller has left. */
  enter(octets: number, gone: AbortSignal): Promise<Leave>
}

/** Room for large bodies, shared by all requests of this process. */
export function openBodyRoom(capacity = roomOctets): BodyRoom {
  let free = capacity
  const queue: { octets: number; admit: () => void }[] = []
  const admitNext = () => {
    for (let first = queue[0]; first && first.octets <= free; first = queue[0]) {
      queue.shift()
      free -= first.octets
      first.admit()
    }
  }
  return {
    enter(wanted, gone) {
      const octets = Math.min(wanted, capacity)
      return new Promise((resolve, reject) => {
        let inside = true
        const leave = () => {
          if (inside) free += octets
          inside = false
          admitNext()
        }
        const place = { octets, admit: () => resolve(leave) }
        queue.push(place)
        gone.addEventListener(
          'abort',
          () => {
            const at = queue.indexOf(place)
            if (at === -1) return
            queue.splice(at, 1)
            reject(new ClientLeft())
            admitNext()
          },
          { once: true },
        )
        admitNext()
      })
    },
  }
}

/** The connection ended before the request did: there is nobody to answer. */
export class ClientLeft extends Error {}

/** The parsed body; `{}` when there is none. Refuses `payload_too_large`, `invalid_content_type` and `invalid_json`. */
export async function readBody(request: FastifyRequest, payload: IncomingMessage, room: BodyRoom): Promise<unknown> {
  const { 'content-type': type, 'content-encoding': encoding } = request.headers
  const octets = await collect(payload, {
    announced: request.headers['content-length'] === undefined ? undefined : Number(request.headers['content-length']),
    limit: request.routeOptions.bodyLimit,
    enterRoom: (size) => enterUntilAnswered(size, request, room),
  })
  request.octets = holdBody(octets)
  if (octets.length === 0) return {}
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    throw new Refusal('invalid_content_type', {
      message: 'the body must not have a Content-Encoding',
      suggestion: 'Send the body as plain JSON',
    })
  }
  if (type !== undefined && !jsonTypes.test(type)) throw new Refusal('invalid_content_type')
  return parseJson(octets)
}

/** Takes room that is given back when the request has been answered or its connection has ended. */
async function enterUntilAnswered(octets: number, { response }: FastifyRequest, room: BodyRoom): Promise<void> {
  const gone = new AbortController()
  response?.once('close', () => gone.abort())
  const leave = await room.enter(octets, gone.signal)
  if (gone.signal.aborted) leave()
  else gone.signal.addEventListener('abort', leave, { once: true })
}

interface Bounds {
  /** Content-Length. */
  announced: number | undefined
  limit: number
  enterRoom: (octets: number) => Promise<void>
}

/** All octets of the body. What is over the limit is left to the server, which reads and drops it. */
async function collect(payload: IncomingMessage, { announced, limit, enterRoom }: Bounds): Promise<Buffer> {
  if (announced !== undefined && announced > limit) throw tooLarge(limit)
  if (announced !== undefined && announced > smallOctets) await enterRoom(announced)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let mayGrow = announced !== undefined
    const stop = () => payload.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose)
    const fail = (error: unknown) => {
      stop()
      reject(error)
    }
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) return fail(tooLarge(limit))
      chunks.push(chunk)
      // A body of unannounced length that turns out large may become as large as the limit.
      if (!mayGrow && size > smallOctets) {
        mayGrow = true
        payload.pause()
        enterRoom(limit).then(() => payload.resume(), fail)
      }
    }
    const onEnd = () => {
      stop()
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size))
    }
    const onError = () => fail(new ClientLeft())
    const onClose = () => fail(new ClientLeft())
    payload.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
  })
}

const tooLarge = (limit: number) => new Refusal('payload_too_large', { message: `the body is larger than ${limit / smallOctets} MiB` })

const byteOrderMark = 0xef

/** JSON as RFC 8259 has it: UTF-8 without a byte order mark. The last of duplicate keys wins. */
export function parseJson(octets: Buffer): unknown {
  const refuse = (message: string) => new Refusal('invalid_json', { message: `the body is not JSON: ${message}` })
  if (octets[0] === byteOrderMark) throw refuse('it begins with a byte order mark')
  if (!isUtf8(octets)) throw refuse('it is not UTF-8')
  if (isDeeperThan(octets, deepest)) throw refuse(`it is nested deeper than ${deepest} levels`)
  try {
    return JSON.parse(octets.toString('utf8'))
  } catch {
    throw refuse('it breaks the syntax')
  }
}
