/** The wait that an HTTP server asks for. */

/** A Retry-After header (RFC 9110 section 10.2.3) in milliseconds from now; null if absent or invalid. */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000
  const atMs = Date.parse(header)
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs)
}
