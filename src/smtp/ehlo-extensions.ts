/**
 * Parses a peer's extensions from its reply to EHLO (RFC 5321 section 4.1.1.1). Unknown and malformed keywords are ignored.
 */
import type { Extensions } from './types.ts'

export interface Hello {
  extensions: Extensions
  startTls: boolean
  /** Names of login mechanisms in upper case. */
  auth: string[]
}

export const noExtensions: Hello = {
  extensions: { size: null, pipelining: false, eightBitMime: false, smtpUtf8: false },
  startTls: false,
  auth: [],
}

export function parseExtensions(replyText: string): Hello {
  const offered = new Map<string, string[]>()
  for (const line of replyText.split('\n').slice(1)) {
    // Some old servers write "AUTH=PLAIN".
    const [keyword = '', ...parameters] = line
      .slice(4)
      .trim()
      .toUpperCase()
      .replace(/^AUTH=/, 'AUTH ')
      .split(/\s+/)
    offered.set(keyword, [...(offered.get(keyword) ?? []), ...parameters])
  }
  return {
    extensions: {
      size: sizeOf(offered.get('SIZE')),
      pipelining: offered.has('PIPELINING'),
      eightBitMime: offered.has('8BITMIME'),
      smtpUtf8: offered.has('SMTPUTF8'),
    },
    startTls: offered.has('STARTTLS'),
    auth: offered.get('AUTH') ?? [],
  }
}

/** The first number counts; 0 and invalid values mean no limit (RFC 1870 section 4). */
function sizeOf(parameters: string[] | undefined): number | null {
  if (!parameters) return null
  const [first = ''] = parameters
  return /^\d{1,20}$/.test(first) ? Number(first) : 0
}
