/**
 * Checks the signature of a request to SES's API: before its body is read, if a header has the body's hash, and otherwise after it. Wrong
 * signatures of large bodies are limited.
 */
import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { nextTurn, Refusal } from '#base'
import { canonicalHeaders, isSignedWith, noMatch, readSignature, type SignedRequest, unknownAccessKey } from '#ses'
import type { SignedCall } from './signed-call.ts'
import type { VendorDeps } from './vendor-api.ts'

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

/** Larger bodies need memory and time before their signature is known. */
const smallOctets = 262_144

export async function authenticateSes(request: FastifyRequest, deps: VendorDeps): Promise<SignedCall> {
  const { clock, credentials, secrets } = deps
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
  if (announced !== undefined) {
    verify(announced)
    return {
      credential,
      claimed: credential,
      async check(octets) {
        if ((await sha256(octets)) !== announced) throw noMatch()
        return credential
      },
    }
  }
  const isSmall = Number(request.headers['content-length'] ?? (request.headers['transfer-encoding'] ? Number.NaN : 0)) <= smallOctets
  const recordFailure = isSmall ? () => undefined : limitFailures(`signature:${request.ip} ${signature.accessKeyId}`, deps)
  return {
    credential: undefined,
    claimed: credential,
    async check(octets) {
      try {
        verify(await sha256(octets))
      } catch (error) {
        recordFailure()
        throw error
      }
      return credential
    },
  }
}

/** Refuses a caller whose last large bodies had wrong signatures. Without a known key, or from another address, they are not counted. */
function limitFailures(caller: string, { rateLimiter, limitSettings }: VendorDeps): () => void {
  const perSecond = limitSettings.usualRate()
  const { allowed, limit, retryAfterSeconds } = rateLimiter(caller, perSecond, 'only look')
  if (!allowed) throw new Refusal('rate_limit_exceeded', { message: `more than ${limit} wrong signatures per second`, retryAfterSeconds })
  return () => void rateLimiter(caller, perSecond)
}
