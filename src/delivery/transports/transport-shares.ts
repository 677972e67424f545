/**
 * Shares of transports in percent, by a hash of the email id. Pure. An email has the same slot of a hundred for ever, so a retry takes the
 * same transport, and a changed share moves only the emails of the slots that it takes or returns.
 */

export const slotCount = 100
/** The name of the default in a slot. */
export const defaultSlot = ''

/** The transport of each slot; `defaultSlot` for the default of the installation. */
export type TransportSlots = readonly string[]

export const emptySlots: TransportSlots = Array.from({ length: slotCount }, () => defaultSlot)

/**
 * The slot of an email, from 0. FNV-1a over the id, then the finaliser of MurmurHash3: without it, ids of the same millisecond would fill
 * neighbouring slots.
 */
export function slotOf(emailId: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < emailId.length; index++) hash = Math.imul(hash ^ emailId.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) % slotCount
}

/**
 * The slots with another share (0 to 100) for one transport. A growing share takes slots of the default only, the lowest first; a shrinking
 * one returns its highest. Undefined: the default has not enough slots left.
 */
export function withShare(slots: TransportSlots, transport: string, percent: number): TransportSlots | undefined {
  const missing = percent - percentOf(slots, transport)
  if (missing > percentOf(slots, defaultSlot)) return undefined
  const [from, to] = missing > 0 ? [defaultSlot, transport] : [transport, defaultSlot]
  const candidates = slots.flatMap((one, index) => (one === from ? [index] : []))
  const moved = new Set(missing > 0 ? candidates.slice(0, missing) : candidates.slice(candidates.length + missing))
  return slots.map((one, index) => (moved.has(index) ? to : one))
}

export const percentOf = (slots: TransportSlots, transport: string): number => slots.filter((one) => one === transport).length

/** The shares of the named transports, in the order of their names. */
export const sharesOf = (slots: TransportSlots): { transport: string; percent: number }[] =>
  [...new Set(slots)]
    .filter((one) => one !== defaultSlot)
    .sort()
    .map((transport) => ({ transport, percent: percentOf(slots, transport) }))
