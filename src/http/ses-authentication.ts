/**
 * Checks the signature of a request to SES's API: before its body is read, if a header has the body's hash, and otherwise after it. Wrong
 * signatures from one address are limited, because they may need the whole body.
 */
import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { nextTurn, Refusal } from '#base'
import { canonicalHeaders, isSignedWith, noMatch, readSignature, type SignedRequest, unknownAccessKey } from '#ses'
import type { SignedCall, VendorDeps } from './vendor-api.ts'

/** Octets that are hashed in one turn of the event loop: a few milliseconds. */
const octetsInTurn = 4_194_304

async function sha256(octets: Buffer): Promise<string> {
  const hash = createHash('sha256')
  for (let at = 0; at < octets.length; at += octetsInTurn) {
    if (at > 0) await nextTurn()
    hash.update(octets.subarray(at, at + octetsInTurn))
  }
  return hash.digest('hex')
}

/** Path and query as the client sent them, and the names of the server that it may have used. */
function signedRequest(request: FastifyRequest): SignedRequest {
  const { method, originalUrl, headers, host, raw } = request
  return {
    method,
    url: originalUrl,
    headers: canonicalHeaders(raw.rawHeaders),
    // A trusted proxy reports the name that the client signed, if it changes Host.
    hosts: [...new Set([headers.host ?? '', host ?? ''])],
  }
}

export async function authenticateSes(request: FastifyRequest, deps: VendorDeps): Promise<SignedCall> {
  const { clock, credentials, secrets, rateLimiter, limitSettings } = deps
  const failures = `signature:${request.ip}`
  const perSecond = limitSettings.usualRate()
  const { allowed, limit, retryAfterSeconds } = rateLimiter(failures, perSecond, 'only look')
  if (!allowed) throw new Refusal('rate_limit_exceeded', { message: `more than ${limit} wrong signatures per second`, retryAfterSeconds })
  const counted = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work()
    } catch (error) {
      if (error instanceof Refusal && error.code === 'invalid_api_key') rateLimiter(failures, perSecond)
      throw error
    }
  }
  return counted(async () => {
    const signed = signedRequest(request)
    const signature = readSignature(signed, clock.nowMs())
    const key = await credentials.findSigningKey(signature.accessKeyId, secrets)
    if (!key) throw unknownAccessKey()
    const { credential, secret } = key
    const verify = (bodyHash: string) => {
      if (!isSignedWith(secret, signature, signed, bodyHash)) throw noMatch()
      credentials.recordUse(credential)
    }
    const announced = signature.bodyHash
    if (announced !== undefined) verify(announced)
    return {
      credential: announced === undefined ? undefined : credential,
      check: (octets) =>
        counted(async () => {
          const bodyHash = await sha256(octets)
          if (announced === undefined) verify(bodyHash)
          else if (bodyHash !== announced) throw noMatch()
          return credential
        }),
    }
  })
}
