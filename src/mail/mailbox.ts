/** A mailbox as callers of the API write it: a person's text, not a header field, and more is allowed in its name. */
import { type Mailbox, parseAddress } from './address.ts'
import { mailboxText } from './header.ts'
import { isMisleading, parseMailboxField } from './mailbox-field.ts'

const longestMailbox = 1000

/**
 * `addr`, `Name <addr>` or `"Quoted name" <addr>` (spec section 2.3), where the name may have any characters but angle brackets and quotes;
 * or what a header field may hold. Undefined when it is neither.
 */
export function parseMailbox(text: string): Mailbox | undefined {
  if (text.length > longestMailbox || /[\r\n\0]/.test(text)) return undefined
  const trimmed = text.trim()
  const open = trimmed.endsWith('>') ? trimmed.lastIndexOf('<') : -1
  const address = parseAddress(open < 0 ? trimmed : trimmed.slice(open + 1, -1).trim())
  const name = parseName(trimmed.slice(0, Math.max(0, open)).trim())
  if (address && name !== undefined) return { name: name === '' ? undefined : name, address }
  return parseMailboxField(inLatin1(trimmed))
}

/**
 * The same, for mail that is to be sent: undefined also when the field written from it, or the text itself as people read it, names another
 * address to some reader. What was accepted before there was this rule is still read by `parseMailbox`.
 */
export function parseSender(text: string): Mailbox | undefined {
  const mailbox = parseMailbox(text)
  if (!mailbox) return undefined
  const { name, address } = mailbox
  const written = parseMailboxField(inLatin1(mailboxText(mailbox)))
  if (written?.address.text !== address.text) return undefined
  return name !== undefined && !text.trim().startsWith('"') && isMisleading(name, address, false) ? undefined : mailbox
}

/** As fields are read: an octet a character. */
const inLatin1 = (text: string) => Buffer.from(text).toString('latin1')

/** The display name without its quotes, or undefined when it is malformed. */
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
