/**
 * Counts keys, values and depth of JSON text without parsing it: one pass over the bytes, without recursion or allocation. A parser would
 * build every key and value before they could be counted, and recurse as deep as the input.
 */
import { endOfJsonString } from '#base'

export interface JsonBounds {
  /** Arrays and objects open at once. */
  depth: number
  /** Keys of all objects together, including repeated ones. */
  keys: number
  /** Strings, numbers, literals, arrays and objects together. */
  values: number
  /** Octets of one key as written. */
  keyOctets: number
}

const open = 1
const close = 2
const comma = 3
const colon = 4
const string = 5
/** The meaning of each octet outside of strings; 0: no meaning. */
const meanings = new Uint8Array(256)
for (const [character, meaning] of Object.entries({ '[': open, '{': open, ']': close, '}': close, ',': comma, ':': colon, '"': string }))
  meanings[character.charCodeAt(0)] = meaning

/**
 * Returns the first bound that `json` exceeds, if any. Characters inside strings do not count. For invalid JSON the result is arbitrary.
 */
export function passedBound(json: Uint8Array, bounds: JsonBounds): keyof JsonBounds | undefined {
  let depth = 0
  let keys = 0
  // Every value but the first either follows a comma or comes first in an array or object.
  let values = 1
  let lastStringOctets = 0
  for (let at = 0; at < json.length; at++) {
    const meaning = meanings[json[at] as number]
    if (meaning === 0) continue
    if (meaning === string) {
      const end = endOfJsonString(json, at)
      if (end === -1) return undefined
      lastStringOctets = end - at - 1
      at = end
    } else if (meaning === comma) {
      if (++values > bounds.values) return 'values'
    } else if (meaning === colon) {
      if (++keys > bounds.keys) return 'keys'
      if (lastStringOctets > bounds.keyOctets) return 'keyOctets'
    } else if (meaning === open) {
      if (++depth > bounds.depth) return 'depth'
      if (++values > bounds.values) return 'values'
    } else depth--
  }
  return undefined
}
