/**
 * The ARC chain of a received message (RFC 8617): its form and the newest message signature are checked without DNS, then all signatures
 * with the keys in DNS. Fields, sets and lookups are limited.
 */
import { nextTurn } from '#base'
import { relaxedHeader } from './canonical.ts'
import {
  bare,
  type Field,
  type FindTxt,
  formsOf,
  hashesOf,
  holds,
  isWhole,
  label,
  maxSignatureLength,
  namedFields,
  namesIn,
  signedOctets,
  tagsOfList,
  verifyingKey,
  withoutSignature,
} from './verify.ts'

/** RFC 8617 section 4.4. */
export type ChainStatus = 'none' | 'pass' | 'fail'

/** One ARC set: its fields in canonical form, each with CRLF. */
export interface ArcSet {
  /** Of the seal. */
  tags: ReadonlyMap<string, string>
  /** ARC-Authentication-Results and ARC-Message-Signature. */
  results: string
  seal: string
  /** The seal as it was signed, without CRLF. */
  unsigned: string
}

export interface FoundChain {
  /** `open`: the keys in DNS decide. `ended`: its newest seal records that it failed before, so it gets no further set. */
  state: 'none' | 'open' | 'fail' | 'ended'
  /** The highest instance of its fields; 0 without one. */
  highest: number
  /** In order; empty unless `open`. */
  sets: readonly ArcSet[]
  /** Of the newest set. */
  message: { tags: ReadonlyMap<string, string>; octets: Uint8Array } | undefined
}

const kinds = ['arc-authentication-results', 'arc-message-signature', 'arc-seal'] as const
/** RFC 8617 section 4.2.1. */
export const maxInstances = 50

/** The part whose time grows with the size of the message. Of several From fields, a signature could cover one that is not shown. */
export function arcChainOf(message: Buffer, atMs: number): FoundChain {
  const { named, start } = namedFields(message)
  const fields = kinds.flatMap((kind) => named.get(kind) ?? [])
  if (fields.length === 0) return { state: 'none', highest: 0, sets: [], message: undefined }
  const placed = fields.map((field) => ({ field, instance: instanceOf(field) }))
  const highest = placed.reduce((most, { instance }) => Math.max(most, instance), 0)
  const without = { highest, sets: [], message: undefined }
  const newestSeals = placed.filter(({ field, instance }) => field.name === 'arc-seal' && instance === highest)
  if (newestSeals.some(({ field }) => statusIn(tagsIn(field)) === 'fail')) return { state: 'ended', ...without }
  if (fields.length !== highest * kinds.length || named.get('from')?.length !== 1) return { state: 'fail', ...without }

  const byInstance = Map.groupBy(placed, ({ instance }) => instance)
  const sets: ArcSet[] = []
  for (let instance = 1; instance <= highest; instance++) {
    const set = setOf(
      (byInstance.get(instance) ?? []).map(({ field }) => field),
      instance,
    )
    if (!set) return { state: 'fail', ...without }
    sets.push(set)
  }
  const newest = byInstance.get(highest)?.find(({ field }) => field.name === 'arc-message-signature')?.field
  const tags = newest && dkimTagsOf(tagsIn(newest))
  if (!tags || !isWhole(tags, atMs) || namesIn(tags).includes('arc-seal')) return { state: 'fail', ...without }
  if (hashesOf(message, start)(formsOf(tags).body) !== bare(tags.get('bh'))) return { state: 'fail', ...without }
  const octets = signedOctets(tags, named, newest)
  return octets ? { state: 'open', highest, sets, message: { tags, octets } } : { state: 'fail', ...without }
}

/**
 * RFC 8617 section 5.2, with each key looked up once, and a turn for other work between the signatures. `findTxt` may throw, and its error
 * is passed on.
 */
export async function chainStatus({ state, sets, message }: FoundChain, findTxt: FindTxt): Promise<ChainStatus> {
  if (state === 'none') return 'none'
  if (state !== 'open' || !message) return 'fail'
  const records = new Map<string, Promise<readonly string[]>>()
  const isSigned = async (tags: ReadonlyMap<string, string>, octets: Uint8Array): Promise<boolean> => {
    const name = `${tags.get('s')}._domainkey.${tags.get('d')}`.toLowerCase()
    const lookup = records.get(name) ?? findTxt(name)
    records.set(name, lookup)
    const [record = '', second] = await lookup
    const key = second === undefined ? verifyingKey(record, tags, true) : undefined
    return key !== undefined && holds(tags, key, octets)
  }
  if (!(await isSigned(message.tags, message.octets))) return 'fail'
  for (let nth = sets.length - 1; nth >= 0; nth--) {
    const set = sets[nth]
    await nextTurn()
    if (set && !(await isSigned(set.tags, Buffer.from(`${chainText(sets.slice(0, nth))}${set.results}${set.unsigned}`, 'latin1'))))
      return 'fail'
  }
  return 'pass'
}

/** The canonical text of sets, oldest first. */
export const chainText = (sets: readonly ArcSet[]): string => sets.map(({ results, seal }) => results + seal).join('')

const valueOf = ({ text }: Field) => text.slice(text.indexOf(':') + 1)
const tagsIn = (field: Field) => (field.text.length <= maxSignatureLength ? tagsOfList(valueOf(field)) : new Map<string, string>())
const statusIn = (tags: ReadonlyMap<string, string>) => tags.get('cv')?.toLowerCase()
const canonicalOf = (field: Field) => relaxedHeader({ name: field.name, value: valueOf(field) })

/** 0 for a field without a valid instance. */
function instanceOf(field: Field): number {
  const text =
    field.name === 'arc-authentication-results'
      ? /^\s{0,100}i\s{0,100}=\s{0,100}(\d+)\s{0,100};/.exec(valueOf(field))?.[1]
      : tagsIn(field).get('i')
  const instance = /^\d{1,2}$/.test(text ?? '') ? Number(text) : 0
  return instance <= maxInstances ? instance : 0
}

/** In place of the instance, the tags have the version that DKIM requires (RFC 8617 section 4.1.2). */
const dkimTagsOf = (tags: ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
  new Map([...tags].filter(([name]) => name !== 'i')).set('v', '1')

/** Undefined unless the fields are one of each kind, with a seal of the form that RFC 8617 sections 4.1.3 and 5.2 ask for. */
function setOf(fields: readonly Field[], instance: number): ArcSet | undefined {
  const [results, signature, seal] = kinds.map((kind) => fields.find((field) => field.name === kind))
  if (fields.length !== kinds.length || !results || !signature || !seal) return undefined
  const tags = dkimTagsOf(tagsIn(seal))
  const areNames = [tags.get('d'), tags.get('s')].every((name) => (name ?? '').split('.').every((one) => label.test(one)))
  if (!areNames || tags.has('h') || statusIn(tags) !== (instance === 1 ? 'none' : 'pass')) return undefined
  return {
    tags,
    results: `${canonicalOf(results)}\r\n${canonicalOf(signature)}\r\n`,
    seal: `${canonicalOf(seal)}\r\n`,
    unsigned: canonicalOf(withoutSignature(seal)),
  }
}
