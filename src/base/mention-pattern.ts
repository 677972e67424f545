/** Finds an address in any text: the whole address, not the end or the beginning of a longer one. */

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Of the characters that may precede an address, in URLs (%3c) and quoted-printable (=3c). %2b and %2e are parts of a longer address. */
const encoded = '[%=](0[9ad]|2[0-26-9cf]|3[a-f]|5[bd]|7[bc])'
/** Points, and marks as in _ann@x.test_, that begin no address. */
const marks = String.raw`\.\.|(^|[^a-z0-9._+-])[_+]`
/** Also after an escape of JSON, whose letter would look like a part of the address. Quotes and = are common before an address in text. */
const before = String.raw`(^|[^a-z0-9._+-]|\\[bfnrt]|\\u[0-9a-f]{4}|${encoded}|${marks})`
/** A point or hyphen after an address may end a sentence. */
const after = '($|[^a-z0-9.-]|[.-]($|[^a-z0-9]))'

/** For PostgreSQL and JavaScript. The address and the text are in lower case. */
export const mentionPattern = (address: string): string => before + escaped(address) + after

/** For a text that was cut off within the address. */
export const cutMentionPattern = (start: string): string => `${before}${escaped(start)}$`
