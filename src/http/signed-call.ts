/** Requests to another vendor's API that a signature identifies, before their body is read or, if the signature needs it, after that. */
import type { FastifyRequest } from 'fastify'
import type { Credential } from '#credentials'

declare module 'fastify' {
  interface FastifyRequest {
    /** Pending until the body was checked against the request's signature. */
    checkBody: ((octets: Buffer) => Promise<void>) | null
    /** The key that the request names; its signature may not be checked yet. */
    claimed: Credential | null
  }
}

/** A request whose signature is being checked. */
export interface SignedCall {
  /** Undefined: the signature covers the body, which is not known yet. */
  credential: Credential | undefined
  claimed: Credential
  /** Refuses a body that differs from the signed one; returns the credential. */
  check(octets: Buffer): Promise<Credential>
}

/** Admits a signed request before its body is read, or after it if the signature needs the body. */
export async function admitSigned(request: FastifyRequest, signed: SignedCall, admit: (by: Credential) => Promise<void>): Promise<void> {
  if (signed.credential) await admit(signed.credential)
  request.claimed = signed.claimed
  request.checkBody = async (octets) => {
    request.checkBody = null
    const credential = await signed.check(octets)
    if (!signed.credential) await admit(credential)
  }
}
