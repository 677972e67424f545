/**
 * Parses a mailbox as API callers write it: plain text, not a header field, so its name may contain more characters.
 */
import { type Mailbox, parseAddress } from './address.ts'
import { isMisleading, parseMailboxField } from './mailbox-field.ts'
import { mailboxText } from './write-header.ts'

const maxMailboxLength = 1000

/**
 * Accepts `addr`, `Name <addr>` or `"Quoted name" <addr>` (spec section 2.3), where the name may have any characters except angle brackets
 * and quotes; also the form of a header field. Undefined for other text.
 */
export function parseMailbox(text: string): Mailbox | undefined {
  if (text.length > maxMailboxLength || /[\r\n\0]/.test(text)) return undefined
  const trimmed = text.trim()
  const open = trimmed.endsWith('>') ? trimmed.lastIndexOf('<') : -1
  const address = parseAddress(open < 0 ? trimmed : trimmed.slice(open + 1, -1).trim())
  const name = parseName(trimmed.slice(0, Math.max(0, open)).trim())
  if (address && name !== undefined) return { name: name === '' ? undefined : name, address }
  return parseMailboxField(inLatin1(trimmed))
}

/**
 * The same, for mail to be sent: also undefined if some mail program would find another address in the header field written from it, or in
 * the text itself. `parseMailbox` still reads text accepted before this rule existed.
 */
export function parseSender(text: string): Mailbox | undefined {
  const mailbox = parseMailbox(text)
  if (!mailbox) return undefined
  const { name, address } = mailbox
  const written = parseMailboxField(inLatin1(mailboxText(mailbox)))
  if (written?.address.text !== address.text) return undefined
  return name !== undefined && !text.trim().startsWith('"') && isMisleading(name, address, false) ? undefined : mailbox
}

/** Fields are parsed as one character for each octet. */
const inLatin1 = (text: string) => Buffer.from(text).toString('latin1')

/** The display name without its quotes; undefined if it is malformed. */
function parseName(text: string): string | undefined {
  if (/[\p{Cc}]/u.test(text)) return undefined
  if (!text.startsWith('"')) return /[<>"]/.test(text) ? undefined : text
  let name = ''
  for (let index = 1; index < text.length; index++) {
    const character = text[index] as string
    if (character === '"') return index === text.length - 1 ? name : undefined
    if (character === '\\') {
      index++
      if (index >= text.length) return undefined
      name += text[index]
    } else name += character
  }
  return undefined
}
