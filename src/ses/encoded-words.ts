/**
 * Encoded words (RFC 2047), which callers of SES write into subjects and names: SES sends them as they are. Postrider encodes the message, so it
 * decodes them first. Takes time in proportion to the text.
 */
import { fieldText } from '#mail'

export const decodedText = (text: string): string => (text.includes('=?') ? fieldText(Buffer.from(text).toString('latin1')) : text)

/** A mailbox with its name decoded and in quotes, where no character of it has a meaning. Words within quotes stay (RFC 2047 section 5). */
export function decodedMailbox(text: string): string {
  const at = text.lastIndexOf('<')
  const name = at < 0 ? '' : text.slice(0, at)
  if (!name.includes('=?') || name.includes('"')) return text
  return `"${decodedText(name).replace(/["\\]/g, '\\$&')}" ${text.slice(at)}`
}
