/**
 * Responses without an end: sent while the caller reads, is still admitted, and the server runs. Their number is bounded per key, per tenant
 * and per process. A slow reader slows down the source of the pieces.
 */
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { type Clock, pause, Refusal } from '#base'
import { connectionOf } from './v1/caller-connection.ts'

const maxPerKey = 10
/** Of the keys and members of a tenant. Those of the organisation are the operator's. */
const maxPerTenant = 50
const maxAtOnce = 200
/** A change of a key is known within 900 ms, and must be in force within a second. */
const checkEveryMs = 50
/** Time for the last bytes before the connection is cut, at a lost permission and at an orderly stop. */
const cutOffAfterMs = 50
const stopAfterMs = 1000

export interface Stream {
  credentialId: number
  /** The tenant to which the credential belongs; null: the organisation. */
  tenantId: string | null
  /** Ends when `signal` aborts. */
  pieces: (signal: AbortSignal) => AsyncIterable<string>
  /** Throws a refusal once the caller may no longer read the stream. */
  checkAllowed: () => Promise<void>
}

export interface Streams {
  /** Refuses `rate_limit_exceeded` if there are too many streams. */
  send(reply: FastifyReply, stream: Stream): FastifyReply
  /** Ends all streams and accepts no more. */
  stop(): void
}

interface Open {
  credentialId: number
  tenantId: string | null
  signal: AbortSignal
  end: (cutAfterMs: number) => void
}

function refuseMore({ credentialId, tenantId }: Stream, open: readonly Open[]): void {
  const ofKey = open.filter((one) => one.credentialId === credentialId)
  const ofTenant = tenantId === null ? [] : open.filter((one) => one.tenantId === tenantId)
  const refuse = (message: string) => {
    throw new Refusal('rate_limit_exceeded', { message, retryAfterSeconds: 1 })
  }
  if (ofKey.length >= maxPerKey) refuse(`the key has ${maxPerKey} open streams, the maximum: close one first`)
  if (ofTenant.length >= maxPerTenant) refuse(`the tenant has ${maxPerTenant} open streams, the maximum: close one first`)
  if (open.length >= maxAtOnce) refuse(`the server has ${maxAtOnce} open streams, the maximum`)
}

export function openStreams(clock: Clock): Streams {
  const open = new Set<Open>()
  let stopping = false

  const check = async ({ checkAllowed }: Stream, { signal, end }: Open) => {
    while (!signal.aborted) {
      await pause(clock, checkEveryMs, signal)
      // Only a refusal ends the stream. If the check itself fails (5xx), the next one may succeed.
      await checkAllowed().catch((error: unknown) => error instanceof Refusal && error.status < 500 && end(cutOffAfterMs))
    }
  }

  return {
    send(reply, stream) {
      refuseMore(stream, [...open])
      const { raw } = reply
      const { gone } = connectionOf(raw)
      const ended = new AbortController()
      const one: Open = {
        credentialId: stream.credentialId,
        tenantId: stream.tenantId,
        signal: ended.signal,
        end(cutAfterMs) {
          ended.abort()
          clock.after(cutAfterMs, () => {
            open.delete(one)
            // Not the connection: an earlier request on it may wait for its answer.
            raw.destroy()
          })
        },
      }
      open.add(one)
      const leave = () => {
        open.delete(one)
        ended.abort()
      }
      if (gone.aborted) leave()
      else gone.addEventListener('abort', leave, { once: true })
      if (stopping) one.end(stopAfterMs)
      void check(stream, one)
      return (
        reply
          .type('text/event-stream; charset=utf-8')
          // A kept-alive connection would outlive its stream and delay an orderly stop.
          .headers({ 'cache-control': 'no-store, no-cache, no-transform', 'x-accel-buffering': 'no', connection: 'close' })
          .send(Readable.from(stream.pieces(one.signal), { objectMode: false }))
      )
    },
    stop() {
      stopping = true
      for (const one of open) one.end(stopAfterMs)
    },
  }
}
