/** The JSON in the field `params` of a form, as old clients of Postal send it (application/x-www-form-urlencoded of the WHATWG URL standard). */

import { hexDigitOf } from '#base'

/** Decoding a larger form would block other requests for more than a few milliseconds. */
const maxFormOctets = 1_048_576

const ampersand = 0x26
const percent = 0x25
const plus = 0x2b
const space = 0x20
const prefix = Buffer.from('params=')

/**
 * Returns the decoded octets of the first field `params`; empty without one; undefined for a form of over 1 MiB. Reads every octet at most
 * twice.
 */
export function jsonInForm(form: Buffer): Buffer | undefined {
  if (form.length > maxFormOctets) return undefined
  for (let start = 0; start < form.length; ) {
    const next = form.indexOf(ampersand, start)
    const end = next === -1 ? form.length : next
    if (form.compare(prefix, 0, prefix.length, start, Math.min(end, start + prefix.length)) === 0)
      return decoded(form.subarray(start + prefix.length, end))
    start = end + 1
  }
  return Buffer.alloc(0)
}

/** A percent sign without two digits stays as it is. */
export function decoded(value: Buffer): Buffer {
  const out = Buffer.allocUnsafe(value.length)
  let length = 0
  for (let at = 0; at < value.length; at++) {
    const octet = value[at] as number
    const high = octet === percent ? hexDigitOf(value[at + 1]) : -1
    const low = high === -1 ? -1 : hexDigitOf(value[at + 2])
    if (low !== -1) at += 2
    out[length++] = low === -1 ? (octet === plus ? space : octet) : high * 16 + low
  }
  return out.subarray(0, length)
}
