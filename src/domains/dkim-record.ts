/** Parses a DKIM key's TXT record as a verifier does (RFC 6376 section 3.6.1, tag lists of section 3.2; RFC 8463). */

export type KeyRecord = { kind: 'key'; algorithm: string; publicKey: string } | { kind: 'revoked' } | { kind: 'malformed'; why: string }

const blanks = /[ \t\r\n]+/g
const tagName = /^[A-Za-z][A-Za-z0-9_]*$/

/** Whether a TXT record looks like a DKIM key; a wildcard may add other records at the name. */
export const looksLikeKey = (text: string): boolean => /^\s*v\s*=\s*DKIM1/i.test(text) || /(?:^|;)\s*p\s*=/.test(text)

export function parseKeyRecord(text: string): KeyRecord {
  const tags = new Map<string, string>()
  const pieces = text.split(';')
  // One semicolon at the end is allowed.
  if (pieces.at(-1)?.trim() === '') pieces.pop()
  for (const [index, piece] of pieces.entries()) {
    const equals = piece.indexOf('=')
    const name = piece.slice(0, Math.max(equals, 0)).trim()
    if (equals < 0 || !tagName.test(name)) return { kind: 'malformed', why: 'it is not a list of tags' }
    if (tags.has(name)) return { kind: 'malformed', why: `tag ${name} occurs twice` }
    if (name === 'v' && index > 0) return { kind: 'malformed', why: 'tag v is not the first tag' }
    tags.set(name, piece.slice(equals + 1).trim())
  }
  const version = tags.get('v')
  if (version?.endsWith('\\')) return { kind: 'malformed', why: 'its semicolons are preceded by backslashes' }
  if (version !== undefined && version !== 'DKIM1') return { kind: 'malformed', why: 'tag v is not DKIM1' }
  const publicKey = tags.get('p')?.replace(blanks, '')
  if (publicKey === undefined) return { kind: 'malformed', why: 'tag p is missing' }
  if (publicKey === '') return { kind: 'revoked' }
  const listed = (tag: string, accepted: string[]) => {
    const values = tags.get(tag)?.split(':')
    return values === undefined || values.some((value) => accepted.includes(value.trim().toLowerCase()))
  }
  if (!listed('h', ['sha256'])) return { kind: 'malformed', why: 'tag h does not allow sha256' }
  if (!listed('s', ['*', 'email'])) return { kind: 'malformed', why: 'tag s does not allow email' }
  return { kind: 'key', algorithm: (tags.get('k') ?? 'rsa').toLowerCase(), publicKey }
}
