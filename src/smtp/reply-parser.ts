/**
 * Parses replies from octets, independent of packet boundaries (RFC 5321 section 4.2). Pure: octets in, replies out. Promises: at most one
 * reply of limited size is kept; the text of a reply is printable; work is linear in the input.
 */
import type { Reply, SmtpLimits } from './types.ts'

export type ReplyLimits = Pick<SmtpLimits, 'replyLines' | 'replyLineOctets' | 'replyOctets'>

export interface ReplyReader {
  /** Reads more octets. Returns a complaint if they are not valid SMTP; the reader must not be used after that. */
  push(octets: Buffer): string | undefined
}

const lineFeed = 10
const tooLong = 'the reply is too long'

/** `take` is called for each reply; octets after a reply for which it returns false are discarded. */
export function openReplyReader(limits: ReplyLimits, take: (reply: Reply) => boolean): ReplyReader {
  let rest: Buffer | undefined
  let lines: string[] = []
  let octetsBefore = 0

  const push = (octets: Buffer): string | undefined => {
    const all = rest ? Buffer.concat([rest, octets]) : octets
    rest = undefined
    let start = 0
    for (;;) {
      const end = all.indexOf(lineFeed, start)
      const length = (end < 0 ? all.length : end) - start
      if (length > limits.replyLineOctets || octetsBefore + length > limits.replyOctets) return tooLong
      if (end < 0) {
        // A copy, so that a few octets do not keep a whole network buffer in memory.
        if (length > 0) rest = Buffer.from(all.subarray(start))
        return undefined
      }
      const line = decode(all, start, end)
      start = end + 1
      octetsBefore += length + 1
      const complaint = complaintOf(line)
      if (complaint) return complaint
      const first = lines[0]
      if (first !== undefined && !line.startsWith(first.slice(0, 3))) return 'the lines of one reply have different codes'
      if (lines.length >= limits.replyLines) return tooLong
      if (line[3] === '-') {
        lines.push(line)
        continue
      }
      const text = first === undefined ? line : `${lines.join('\n')}\n${line}`
      lines = []
      octetsBefore = 0
      if (!take({ code: Number(line.slice(0, 3)), enhanced: enhancedOf(text), text })) return undefined
    }
  }

  return { push }
}

/** Without its CR LF, or its LF alone: Postrider never writes a bare LF, but accepts it. */
function decode(octets: Buffer, start: number, end: number): string {
  const stop = end > start && octets[end - 1] === 13 ? end - 1 : end
  const ascii = octets.toString('latin1', start, stop)
  return /^[\x20-\x7e]*$/.test(ascii) ? ascii : escapeUnprintable(octets.toString('utf8', start, stop))
}

/** Control characters, direction marks and invalid UTF-8 must not reach a terminal or a page. */
function escapeUnprintable(text: string): string {
  return text.replace(/[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (character) => {
    const code = character.charCodeAt(0)
    return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

function complaintOf(line: string): string | undefined {
  // Codes outside 2xx to 5xx have no meaning in SMTP (RFC 5321 section 4.2.1); a code may stand alone (section 4.2).
  if (/^[2-5]\d\d(?:[ -]|$)/.test(line)) return undefined
  return `not an SMTP reply: ${line.slice(0, 80)}`
}

function enhancedOf(text: string): string | null {
  return /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})(?!\S)/.exec(text)?.[1] ?? null
}
