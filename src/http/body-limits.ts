/**
 * Computes how many keys and values an endpoint's body may have: the most its schema allows, a quarter more, and a thousand unknown ones,
 * which are ignored (contract section 0).
 */
import type { JsonBounds } from './json-limits.ts'
import type { Endpoint } from './v1/define-endpoint.ts'

/** Deeper than any body of the API. */
const deepest = 32
/** The longest header name has 456 octets with every character escaped. */
const maxKeyOctets = 1024
const unknown = 1000
const spare = 1.25

interface Keywords {
  type?: string | readonly string[]
  items?: Keywords
  maxItems?: number
  properties?: Readonly<Record<string, Keywords>>
  additionalProperties?: Keywords
  maxProperties?: number
}

interface ElementCounts {
  keys: number
  values: number
}

const noElements: ElementCounts = { keys: 0, values: 0 }
const plus = (one: ElementCounts, other: ElementCounts): ElementCounts => ({
  keys: one.keys + other.keys,
  values: one.values + other.values,
})
const times = ({ keys, values }: ElementCounts, count: number): ElementCounts => ({ keys: keys * count, values: values * count })
const member: ElementCounts = { keys: 1, values: 0 }

/** The most keys and values that a value matching the schema holds. */
function maxIn({ items, maxItems, properties = {}, additionalProperties, maxProperties }: Keywords): ElementCounts {
  if ((items && maxItems === undefined) || (additionalProperties && maxProperties === undefined))
    throw new Error('the schema of a body does not limit the number of elements')
  const inside = [
    ...Object.values(properties).map((one) => plus(member, maxIn(one))),
    items ? times(maxIn(items), maxItems ?? 0) : noElements,
    additionalProperties ? times(plus(member, maxIn(additionalProperties)), maxProperties ?? 0) : noElements,
  ]
  return inside.reduce(plus, { keys: 0, values: 1 })
}

const withSpare = (count: number) => Math.ceil(count * spare) + unknown

/** Without an endpoint: the bounds of small bodies that have no schema here. */
export function boundsOf(endpoint: Pick<Endpoint, 'body' | 'documentedBody'> | undefined): JsonBounds {
  const schema = endpoint?.documentedBody ?? endpoint?.body
  const { keys, values } = schema ? maxIn(schema as Keywords) : noElements
  return { depth: deepest, keyOctets: maxKeyOctets, keys: withSpare(keys), values: withSpare(values) }
}
