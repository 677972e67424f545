/** What no text of a record may hold, because no database could store it or nobody could show it: refused, or made storable. */
import { wrongField } from './refusals.ts'

/** Refuses half a surrogate pair and NUL, naming the field. */
export function refuseOddText(field: string, text: string): void {
  const message = text.includes('\0') ? 'has a NUL character' : text.isWellFormed() ? undefined : 'has half of a surrogate pair'
  if (message !== undefined) throw wrongField(field, message)
}

/** As JSON.stringify writes NUL and half a surrogate pair; the first alternative steps over a backslash that is meant. */
const unstorable = /\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g

/**
 * JSON that PostgreSQL takes, whatever its strings hold: a stranger's text, cut by us within a character, must not keep what is written with
 * it from being written.
 */
export function storableJson(value: unknown): string {
  const json = JSON.stringify(value)
  return json.includes('\\u') ? json.replace(unstorable, (found) => (found === '\\\\' ? found : '\ufffd')) : json
}

/** A stranger's text, bounded and such that PostgreSQL can store it. */
export const storable = (text: string, most: number): string => text.slice(0, most).toWellFormed().replaceAll('\0', '\ufffd')
