/** Splits a list of addresses that comes as one text. */

/**
 * Splits at commas outside quotes; empty parts are left out. Stops after one part more than `most`, which is enough to refuse the list. Takes
 * time in proportion to the text, whose length the caller limits.
 */
export function splitAddresses(text: string, most: number): string[] {
  const parts: string[] = []
  // A hostile list of commas leaves no garbage.
  const take = (part: string) => part !== '' && parts.push(part)
  let start = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '\\' && isQuoted) at++
    else if (character === '"') isQuoted = !isQuoted
    else if (character === ',' && !isQuoted) {
      take(text.slice(start, at).trim())
      if (parts.length > most) return parts
      start = at + 1
    }
  }
  take(text.slice(start).trim())
  return parts
}
