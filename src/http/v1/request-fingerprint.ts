/**
 * The fingerprint that distinguishes requests with the same Idempotency-Key: SHA-256 over method, path and the body with its keys sorted
 * (contract section 5).
 */
import { createHash } from 'node:crypto'
import type { Credential } from '#credentials'

/** JSON with the keys of every object sorted. `value` is parsed JSON of bounded depth. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const object = value as Record<string, unknown>
  const members = Object.keys(object)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key])}`)
  return `{${members.join(',')}}`
}

/** With the tenant that an organisation-level key names in the path or the query: the same body for another tenant is another request. */
export const coveredPath = (path: string, by: { credential: Pick<Credential, 'tenantId'>; tenantId: string | null }): string =>
  by.credential.tenantId === null && by.tenantId !== null ? `${path}?tenantId=${by.tenantId}` : path

export function fingerprint(method: string, path: string, body: unknown): Buffer {
  return createHash('sha256').update(`${method} ${path}\n`).update(canonicalJson(body)).digest()
}
