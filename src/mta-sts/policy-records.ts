/**
 * The two DNS names of the policy: their present records, and those to publish. A record of the operator at one of them is never listed, so
 * that DNS updates write neither. DNS failures never throw.
 */
import type { PlatformRecord } from '#domains'
import { completeAnswer, type DnsAnswer, isStsRecord, type Resolver } from '#net'
import type { PolicyStage, Seen, Wish } from './next-stage.ts'
import { isOwnRecord, policyHostOf, recordNameOf, recordText } from './policy-text.ts'

export interface NameFacts {
  resolver: Resolver
  hostname: string
  /** The host of POSTRIDER_PUBLIC_URL. */
  publicHost: string
}

const sameName = (one: string, other: string) => one.toLowerCase().replace(/\.$/, '') === other.toLowerCase()

/** Where the policy's host name leads. An alias of the host name, or its addresses, lead here. */
export async function findPolicyHost({ resolver, hostname, publicHost }: NameFacts): Promise<{ name: Seen['name']; found: string[] }> {
  const host = policyHostOf(hostname)
  const alias = await resolver.cname(host, 'fresh')
  if (alias.kind === 'trouble') return { name: 'unknown', found: [] }
  const aliases = alias.kind === 'found' ? alias.value : []
  if (aliases.some((one) => sameName(one, hostname) || sameName(one, publicHost))) return { name: 'here', found: aliases }
  const addresses = completeAnswer(await resolver.addresses(host, 'fresh'))
  if (addresses.kind === 'trouble') return { name: 'unknown', found: aliases }
  if (addresses.kind !== 'found') return { name: aliases.length > 0 ? 'elsewhere' : 'missing', found: aliases }
  const own = await Promise.all([hostname, publicHost].map((one) => resolver.addresses(one, 'fresh')))
  const known = own.flatMap((answer) => (answer.kind === 'found' ? answer.value : []))
  const found = aliases.length > 0 ? aliases : addresses.value
  if (addresses.value.every((one) => known.includes(one))) return { name: 'here', found }
  return { name: own.some((answer) => completeAnswer(answer).kind === 'trouble') ? 'unknown' : 'elsewhere', found }
}

export const findPolicyRecord = (resolver: Resolver, hostname: string): Promise<DnsAnswer<string[]>> =>
  resolver.txt(recordNameOf(hostname), 'fresh')

/** Whether another policy record than those of Postrider stands there. */
export const isForeign = (answer: DnsAnswer<string[]>): boolean =>
  answer.kind === 'found' && answer.value.some((text) => isStsRecord(text) && !isOwnRecord(text))

/** The records to publish now, with their state. None before the setting, and none once the policy is withdrawn. */
export async function listPolicyRecords(facts: NameFacts & { wish: Wish; stage: PolicyStage | undefined }): Promise<PlatformRecord[]> {
  const { resolver, hostname, wish, stage } = facts
  if (wish === 'off' && (stage?.mode ?? null) === null) return []
  const [{ name, found }, texts] = await Promise.all([findPolicyHost(facts), findPolicyRecord(resolver, hostname)])
  if (name === 'elsewhere' || isForeign(texts)) return []
  const statuses = { here: 'OK', missing: 'Missing', unknown: null } as const
  const status = statuses[name]
  const records: PlatformRecord[] = [
    { type: 'CNAME', name: policyHostOf(hostname), value: hostname, status, found: status === null ? null : found },
  ]
  const listed = stage?.listed ?? null
  if (listed === null) return records
  const record = { type: 'TXT' as const, name: recordNameOf(hostname), value: recordText(listed, hostname) }
  if (texts.kind === 'trouble') return [...records, { ...record, status: null, found: null }]
  const own = texts.kind === 'found' ? texts.value.filter(isStsRecord) : []
  const isRight = own.length === 1 && own[0] === record.value
  return [...records, { ...record, status: own.length === 0 ? 'Missing' : isRight ? 'OK' : 'Invalid', found: own }]
}
