/** What no text of a record may hold, because no database could store it or nobody could show it: refused, or made storable. */
import { wrongField } from './refusals.ts'

/** Refuses half a surrogate pair and NUL, naming the field. */
export function refuseOddText(field: string, text: string): void {
  const message = text.includes('\0') ? 'has a NUL character' : text.isWellFormed() ? undefined : 'has half of a surrogate pair'
  if (message !== undefined) throw wrongField(field, message)
}

/** A stranger's text, bounded and such that PostgreSQL can store it. */
export const storable = (text: string, most: number): string => text.slice(0, most).toWellFormed().replaceAll('\0', '\ufffd')
