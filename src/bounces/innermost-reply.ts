/**
 * Extracts the relevant part of a reply. Servers nest replies in replies and reasons in frames; the innermost reply, and the text after
 * the frame, concern this message. The text is limited, and each expression looks a limited number of letters ahead.
 */

export interface Essence {
  text: string
  /** The codes of the reply enclosed in the text; undefined without an enclosed reply: the outer codes then count. */
  enclosed: { code: number; enhanced: string | null } | undefined
}

/**
 * Phrases that introduce a nested reply: `host mx said: 550 …`, `the other server returned was: 550 …`, `error 550-'5.7.1 …`, `-> 550 …`,
 * `<421 …>`.
 */
const announced =
  /(?:\b(?:said|says|returned|returned was|responded|responded with|response|response was|replied|reply|answered|answer|error|error was|reason|diagnostic|failure)\b[ '"-]{0,4}[:;=<([][\s'"<([-]{0,6}|\b(?:error|returned|responded|replied|answered|failed with|rejected with|was) ['"<([]{0,3}|\] ?: {0,3}|-> {0,3}|[<[(])([45]\d\d)(?=[- ][^\d]|[ -]{1,2}[#('"]{0,2}[245]\.\d|[ -][45]\d\d[ -])/giu

/** Every check of Postfix writes `Recipient address rejected:` (and other servers much the same); the reason follows the colon. */
const frame = /\b(?:recipient|rcpt)(?: to)?(?: address(?:es)?)? (?:rejected|refused|denied) ?:/gi

const letters = /\p{L}{3}/u

export function essenceOf(text: string): Essence {
  const whole = text.replace(/\(in reply to [^()]{1,60}\)/gi, ' ')
  const leading = /^[\s'"<]{0,4}([45]\d\d)([ -])/.exec(whole)
  let start = 0
  let code: number | undefined
  for (const match of whole.matchAll(announced)) {
    // The joined lines of one reply: 550-5.7.1 … 550-5.7.1 …
    if (leading?.[2] === '-' && leading[1] === match[1]) continue
    const at = match.index + match[0].length - 3
    if (!saysSomething(whole.slice(at, at + 400))) continue
    start = at
    code = Number(match[1])
  }
  const quoted = whole.slice(start)
  const enhanced = /^\d{3}(?:[ -]{1,2}[45]\d\d)?[ -]{1,3}[#('"]{0,2}([245]\.\d{1,3}\.\d{1,3})(?![.\d])/.exec(quoted)?.[1] ?? null
  return { text: withoutFrame(quoted), enclosed: code === undefined ? undefined : { code, enhanced } }
}

function withoutFrame(text: string): string {
  let rest = text
  for (const match of text.matchAll(frame)) {
    const behind = text.slice(match.index + match[0].length)
    if (saysSomething(behind)) rest = behind
  }
  return rest
}

/** Text other than codes, addresses and links. */
const saysSomething = (text: string) =>
  letters.test(
    text
      .slice(0, 400)
      .replace(/[^\s<>]{0,100}@[^\s<>]{1,255}/g, ' ')
      .replace(/\b(?:see |https?:\/\/|www\.)\S{0,300}/gi, ' '),
  )

/** Names the command whose reply a text quotes, if it came before any RCPT. */
const early =
  /(?:\b(?:in (?:reply|response) to|reply to|response to|answer to|after|sent|sending|step|command)\b[^\p{L}\n]{1,6}(?:the )?|\(SENT_|>>> ?|\[)(EHLO|HELO|MAIL[ _]FROM|MAIL(?= command)|initial connection)(?:[\s:<,)\]_]|$)/iu
const laterOne = /(?:in (?:reply|response) to|after|>>> ?|\[)[^\p{L}\n]{0,6}(?:RCPT|DATA|end of data)/iu

export const isBeforeRecipient = (text: string): boolean => {
  const start = text.slice(0, 4_000)
  return early.test(start) && !laterOne.test(start)
}
