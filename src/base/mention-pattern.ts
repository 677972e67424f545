/** Finds an address in any text: the whole address, not the end or the beginning of a longer one. */

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Also after an escape of JSON, whose letter would look like a part of the address. Quotes and = are common before an address in text. */
const before = String.raw`(^|[^a-z0-9._+-]|\\[bfnrt]|\\u[0-9a-f]{4})`
/** A point or hyphen after an address may end a sentence. */
const after = '($|[^a-z0-9.-]|[.-]($|[^a-z0-9]))'

/** For PostgreSQL and JavaScript. The address and the text are in lower case. */
export const mentionPattern = (address: string): string => before + escaped(address) + after

/** For a text that was cut off within the address. */
export const cutMentionPattern = (start: string): string => `${before}${escaped(start)}$`
