/**
 * How much JSON text holds, found without parsing it: one pass over the octets, no recursion, nothing built. A parser builds every key
 * and value before anyone can count them, and recurses as deep as a stranger likes; this refuses first.
 */
import { endOfJsonString } from '#base'

export interface JsonBounds {
  /** Arrays and objects that are open at once. */
  depth: number
  /** Keys of all objects together, repeated ones too. */
  keys: number
  /** Strings, numbers, literals, arrays and objects together. */
  values: number
  /** Octets of one key as it is written. */
  keyOctets: number
}

const open = 1
const close = 2
const comma = 3
const colon = 4
const string = 5
/** By octet: what it means outside of strings; 0: nothing. */
const meanings = new Uint8Array(256)
for (const [character, meaning] of Object.entries({ '[': open, '{': open, ']': close, '}': close, ',': comma, ':': colon, '"': string }))
  meanings[character.charCodeAt(0)] = meaning

/** The first bound that `json` passes, if any. Characters inside strings do not count; broken JSON gives some answer. */
export function passedBound(json: Uint8Array, bounds: JsonBounds): keyof JsonBounds | undefined {
  let depth = 0
  let keys = 0
  // Every value but the first follows a comma, or stands first in what was opened.
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
