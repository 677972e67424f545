/** Scans JSON as bytes, to inspect a text before or without parsing it. */

const quote = 0x22
const backslash = 0x5c

/** Scans this far byte by byte, which is faster for short strings; then by `indexOf`, which is faster over megabytes. */
const nearOctets = 256

/**
 * Returns the position of the quote that ends the string begun at `start`, or -1. UTF-8 bytes of other characters never equal a quote or
 * backslash.
 */
export function endOfJsonString(json: Uint8Array, start: number): number {
  for (let at = start + 1; at < json.length; ) {
    for (const stop = Math.min(at + nearOctets, json.length); at < stop; at++) {
      if (json[at] === quote) return at
      if (json[at] === backslash) at++
    }
    const end = json.indexOf(quote, at)
    if (end === -1) return -1
    let escapes = 0
    while (end - escapes > at && json[end - 1 - escapes] === backslash) escapes++
    // Escaped backslashes come in pairs; an odd one escapes the quote.
    if (escapes % 2 === 0) return end
    at = end + 1
  }
  return -1
}
