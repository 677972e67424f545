/**
 * The stored form of bodies. Those of one tenant that are written together are compressed and sealed together: a compressor and a cipher
 * cost more to set up than to run over a body of usual size, and bodies of one tenant resemble each other.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Sealer, Secrets } from '#base'
import type { NumberedEntry } from './log-entry.ts'
import { keptOf } from './redact.ts'

/** The kept parts of a request and its response; null: no body. */
export type BodyPair = readonly [request: Buffer | null, response: Buffer | null]

/** Bodies sealed together. */
export interface SealedBodies {
  /** The request id of the only entry, or those of the first and the last. */
  id: string
  /** Of the first entry. */
  at: Date
  bodies: Buffer
}

export interface SealedGroup extends SealedBodies {
  tenantId: string
  /** By position. */
  entries: readonly NumberedEntry[]
}

const dayMs = 86_400_000
const dayOf = (at: Date) => Math.floor(at.getTime() / dayMs)
/** Opening one entry opens its group. */
const groupOctets = 131_072
/** More than one group, whose last entry may pass the limit by two truncated bodies. */
const largestOctets = 262_144
/** Smaller values do not become smaller by compression. */
const minCompressedOctets = 512
const absent = 0xffffffff
const params = { [constants.ZSTD_c_compressionLevel]: 1 }

/** Given the size, zstd allocates memory for that size only; half of it usually suffices for the output. */
const compressed = (plain: Buffer) => zstdCompressSync(plain, { params, pledgedSrcSize: plain.length, chunkSize: plain.length >> 1 })

const sealName = (id: string) => `request log ${id}`
/** One key per day: random nonces under one key become unsafe after some billion values. */
const sealerOf = (secrets: Secrets, at: Date): Sealer => secrets.sealer(`request logs of ${at.toISOString().slice(0, 10)}`)

/** For each body its length as four octets, and the body: request, response, request, and so on. */
function writePairs(pairs: readonly BodyPair[]): Buffer {
  const parts = pairs.flat().flatMap((body) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(body ? body.length : absent)
    return body ? [length, body] : [length]
  })
  return Buffer.concat(parts)
}

function readPairs(plain: Buffer): BodyPair[] {
  const bodies: (Buffer | null)[] = []
  for (let at = 0; at < plain.length; ) {
    const length = plain.readUInt32BE(at)
    at += 4
    bodies.push(length === absent ? null : plain.subarray(at, at + length))
    if (length !== absent) at += length
  }
  return Array.from({ length: bodies.length / 2 }, (_, nth): BodyPair => [bodies[nth * 2] ?? null, bodies[nth * 2 + 1] ?? null])
}

/** Seals all bodies of a group, in order. */
export function sealPairs(pairs: readonly BodyPair[], { id, at }: Pick<SealedBodies, 'id' | 'at'>, secrets: Secrets): Buffer {
  const plain = writePairs(pairs)
  const isLarge = plain.length >= minCompressedOctets
  return sealerOf(secrets, at).seal(sealName(id), Buffer.concat([Buffer.of(isLarge ? 1 : 0), isLarge ? compressed(plain) : plain]))
}

const openSealed = ({ id, at, bodies }: SealedBodies, secrets: Secrets) => sealerOf(secrets, at).open(sealName(id), bodies)

export function openPairs(sealed: SealedBodies, secrets: Secrets): BodyPair[] {
  const opened = openSealed(sealed, secrets)
  const rest = opened.subarray(1)
  return readPairs(opened[0] === 1 ? zstdDecompressSync(rest, { maxOutputLength: largestOctets }) : rest)
}

/** Sealed with the current secret. */
export const sealAnew = (sealed: SealedBodies, secrets: Secrets): Buffer =>
  sealerOf(secrets, sealed.at).seal(sealName(sealed.id), openSealed(sealed, secrets))

export const hasBodies = ({ request, response }: NumberedEntry): boolean => request.body !== null || response !== null

/** Groups the entries that have bodies by tenant, day and size, and seals each group. */
export function sealGroups(entries: readonly NumberedEntry[], secrets: Secrets): SealedGroup[] {
  const open = new Map<string, { entries: NumberedEntry[]; pairs: BodyPair[]; octets: number }>()
  const full: { entries: NumberedEntry[]; pairs: BodyPair[] }[] = []
  for (const entry of entries) {
    const { request, response, tenantId, at } = entry
    if (!hasBodies(entry)) continue
    const pair: BodyPair = [request.body && keptOf(request.body, request), response && keptOf(response, { isBroken: false })]
    const name = `${dayOf(at)} ${tenantId}`
    const group = open.get(name) ?? { entries: [], pairs: [], octets: 0 }
    group.entries.push(entry)
    group.pairs.push(pair)
    group.octets += (pair[0]?.length ?? 0) + (pair[1]?.length ?? 0)
    if (group.octets < groupOctets) open.set(name, group)
    else {
      full.push(group)
      open.delete(name)
    }
  }
  return [...full, ...open.values()].map(({ entries, pairs }) => {
    const [first, last] = [entries[0] as NumberedEntry, entries.at(-1) as NumberedEntry]
    const named = { id: first === last ? first.requestId : `${first.requestId} ${last.requestId}`, at: first.at }
    return { ...named, tenantId: first.tenantId ?? '', entries, bodies: sealPairs(pairs, named, secrets) }
  })
}
