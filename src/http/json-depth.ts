/**
 * How deep JSON text is nested, found without parsing it: one pass over the octets, no recursion. A parser or anything that walks
 * its result recurses as deep as a stranger likes; this says no first.
 */

const quote = 0x22
const backslash = 0x5c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** Whether arrays and objects in `json` are nested deeper than `most`. Brackets inside strings do not count; broken JSON gives some answer. */
export function isDeeperThan(json: Uint8Array, most: number): boolean {
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const octet = json[at]
    if (octet === quote) {
      at = endOfString(json, at)
      if (at === -1) return false
    } else if (octet === openBracket || octet === openBrace) {
      if (++depth > most) return true
    } else if (octet === closeBracket || octet === closeBrace) depth--
  }
  return false
}

/** Position of the quote that ends the string begun at `start`, or -1. Octets of UTF-8 never look like a quote or backslash. */
function endOfString(json: Uint8Array, start: number): number {
  for (let from = start + 1; ; ) {
    const end = json.indexOf(quote, from)
    if (end === -1) return -1
    let escapes = 0
    while (json[end - 1 - escapes] === backslash) escapes++
    // Escaped backslashes come in pairs; one left over escapes the quote.
    if (escapes % 2 === 0) return end
    from = end + 1
  }
}
