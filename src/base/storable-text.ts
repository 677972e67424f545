/** Handles characters that the database cannot store or clients cannot show: refuses or replaces them. */
import { wrongField } from './refusals.ts'

/** Refuses half a surrogate pair and NUL, naming the field. */
export function rejectUnstorableText(field: string, text: string): void {
  const message = text.includes('\0') ? 'contains a NUL character' : text.isWellFormed() ? undefined : 'contains an unpaired surrogate'
  if (message !== undefined) throw wrongField(field, message)
}

/** NUL and half a surrogate pair as JSON.stringify writes them; the first alternative skips an escaped backslash. */
const unstorable = /\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g

/** JSON that PostgreSQL accepts for any strings. Text from outside, truncated within a character, must not block the rest of a write. */
export function sanitiseJson(value: unknown): string {
  const json = JSON.stringify(value)
  return json.includes('\\u') ? json.replace(unstorable, (found) => (found === '\\\\' ? found : '\ufffd')) : json
}

/** Text from outside, truncated and storable by PostgreSQL. */
export const sanitiseText = (text: string, maxLength: number): string => text.slice(0, maxLength).toWellFormed().replaceAll('\0', '\ufffd')
