/**
 * Verifies a sending domain in DNS: reports for each record its status, the values found and the recommended action. DNS failures never
 * throw; takes at most `maxCheckMs`, even if resolvers do not answer.
 */
import type { Clock } from '#base'
import type { DnsAnswer, Resolver } from '#net'
import { looksLikeKey, parseKeyRecord } from './dkim-record.ts'
import { findDmarcRecord } from './dmarc-record.ts'
import { type DnsRecord, type PublishedFacts, type RecordKind, type RecordState, type RecordStatus, recordsOf } from './dns-records.ts'
import { countLookups, isSpf, maxLookups, parseSpf } from './spf.ts'

/** `status` is null if the DNS lookup failed. */
export interface RecordProblem extends RecordState {
  status: RecordStatus | null
}

export type DomainCheck = Record<RecordKind, RecordProblem>

const maxCheckMs = 8000
const maxFound = 5
const maxFoundLength = 600

export interface DomainVerificationDeps {
  resolver: Pick<Resolver, 'txt' | 'cname' | 'mx'>
  clock: Clock
  hostname: string
}

/** The questions of one check, which end together. */
function openAsk({ resolver, clock }: Pick<DomainVerificationDeps, 'resolver' | 'clock'>): Ask {
  const untilMs = clock.monotonicMs() + maxCheckMs
  return {
    txt: (name) => answerBy(clock, untilMs, resolver.txt(name, 'fresh')),
    cname: (name) => answerBy(clock, untilMs, resolver.cname(name, 'fresh')),
    mx: async (name) => {
      const answer = await answerBy(clock, untilMs, resolver.mx(name, 'fresh'))
      return answer.kind === 'found' ? found(answer.value.map(({ priority, exchange }) => `${priority} ${exchange || '.'}`)) : answer
    },
  }
}

export async function checkDomain(domain: PublishedFacts, deps: DomainVerificationDeps): Promise<DomainCheck> {
  const { hostname } = deps
  const ask = openAsk(deps)
  const records = recordsOf(domain, hostname)
  const [spf, dkim, returnPath, dkimEd25519, dmarc, mx] = await Promise.all([
    checkSpf(records.spf, `spf.${hostname}`, ask),
    checkKey(records.dkim, 'rsa', domain.rsaPublic, ask),
    checkCname(records.returnPath, ask),
    checkKey(records.dkimEd25519, 'ed25519', domain.ed25519Public, ask),
    checkDmarc(records.dmarc, domain.name, ask),
    checkMx(records.mx, ask),
  ])
  return { spf, dkim, returnPath, dkimEd25519, dmarc, mx }
}

/** Checks one key record alone. */
export const checkKeyRecord = (
  record: DnsRecord,
  key: { algorithm: 'rsa' | 'ed25519'; publicKey: string },
  deps: Pick<DomainVerificationDeps, 'resolver' | 'clock'>,
): Promise<RecordProblem> => checkKey(record, key.algorithm, key.publicKey, openAsk(deps))

/** Checks one CNAME record alone. */
export const checkAlias = (record: DnsRecord, deps: Pick<DomainVerificationDeps, 'resolver' | 'clock'>): Promise<RecordProblem> =>
  checkCname(record, openAsk(deps))

type Ask = Record<'txt' | 'cname' | 'mx', (name: string) => Promise<DnsAnswer<string[]>>>

const found = (value: string[]): DnsAnswer<string[]> => ({ kind: 'found', value })

function answerBy<T>(clock: Clock, untilMs: number, question: Promise<DnsAnswer<T>>): Promise<DnsAnswer<T>> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(untilMs - clock.monotonicMs(), () => resolve({ kind: 'trouble', code: 'TIMEOUT' }))
    question.then(resolve, reject).finally(cancel)
  })
}

/** Makes a value from DNS, which may contain any text, storable and displayable. */
const shown = (value: string) =>
  value
    .slice(0, maxFoundLength)
    .toWellFormed()
    .replace(/\p{Cc}/gu, '\ufffd')

const judged = (
  status: RecordStatus,
  values: readonly string[],
  problem: string | null = null,
  suggestion: string | null = null,
): RecordProblem => ({
  status,
  found: values.slice(0, maxFound).map(shown),
  problem,
  suggestion,
})

const publish = ({ type, fullName, value }: DnsRecord) => `Publish this ${type} record at ${fullName}: ${value}`

/** The result without values to judge: no records, or a failed lookup. */
function withoutValues(answer: Exclude<DnsAnswer<string[]>, { kind: 'found' }>, record: DnsRecord): RecordProblem {
  if (answer.kind !== 'trouble') return judged('Missing', [], `No ${record.type} record at ${record.fullName}`, publish(record))
  return {
    status: null,
    found: [],
    problem: `DNS lookup of ${record.fullName} failed (${answer.code}); the status is from the previous check`,
    suggestion: "Check again later. If it still fails, check the domain's name servers and the resolver of this server",
  }
}

async function checkSpf(record: DnsRecord, host: string, ask: Pick<Ask, 'txt'>): Promise<RecordProblem> {
  const answer = await ask.txt(record.fullName)
  if (answer.kind === 'trouble') return withoutValues(answer, record)
  const texts = answer.kind === 'found' ? answer.value.filter(isSpf) : []
  const [text] = texts
  const include = `include:${host}`
  if (text === undefined) return judged('Missing', [], `No SPF record at ${record.fullName}`, publish(record))
  const invalid = (problem: string, suggestion: string) => judged('Invalid', texts, problem, suggestion)
  if (texts.length > 1)
    return invalid(`Found ${texts.length} SPF records: receivers accept exactly one`, `Merge them into one record that contains ${include}`)
  const spf = parseSpf(text)
  const isOurs = ({ name, value }: { name: string; value: string }) => name === 'include' && value === host.toLowerCase()
  const ours = spf.mechanisms.filter(isOurs)
  if (ours.length === 0) {
    if (spf.afterAll.some(isOurs)) return invalid(`${include} is after "all", where receivers ignore it`, `Move ${include} before "all"`)
    return invalid(`The SPF record does not contain ${include}`, `Add ${include} directly after v=spf1`)
  }
  if (ours[0]?.qualifier === '-' || ours[0]?.qualifier === '~')
    return invalid(
      `The SPF record has ${ours[0].qualifier}${include}, which rejects this mail`,
      `Write ${include} without the leading sign`,
    )
  const lookups = await countLookups(spf, async (name) => {
    const included = await ask.txt(name)
    return included.kind === 'found' ? included.value.find(isSpf) : undefined
  })
  if (lookups > maxLookups)
    return invalid(
      `The SPF record needs more than ${maxLookups} DNS lookups, the limit of receivers`,
      'Remove unused include, a and mx terms',
    )
  return judged('OK', texts)
}

async function checkKey(record: DnsRecord, algorithm: 'rsa' | 'ed25519', publicKey: string, ask: Pick<Ask, 'txt'>): Promise<RecordProblem> {
  const answer = await ask.txt(record.fullName)
  if (answer.kind !== 'found') return withoutValues(answer, record)
  const keys = answer.value.filter(looksLikeKey)
  const [text] = keys
  const invalid = (problem: string, values = keys) => judged('Invalid', values, problem, publish(record))
  if (text === undefined) return invalid(`The TXT record at ${record.fullName} is not a DKIM key`, answer.value)
  if (keys.length > 1) return invalid(`Found ${keys.length} DKIM keys at ${record.fullName}: receivers accept exactly one`)
  const key = parseKeyRecord(text)
  if (key.kind === 'malformed') return invalid(`The DKIM record is unusable: ${key.why}`)
  if (key.kind === 'revoked') return invalid('The DKIM record has an empty tag p: the key is revoked')
  if (key.algorithm !== algorithm)
    return invalid(`The DKIM record is for the algorithm ${shown(key.algorithm).slice(0, 40)}, not ${algorithm}`)
  if (key.publicKey !== publicKey) return invalid('The DKIM record has another key, or only a part of the key')
  return judged('OK', keys)
}

const plainHost = (name: string) => name.toLowerCase().replace(/\.$/, '')

async function checkCname(record: DnsRecord, ask: Pick<Ask, 'cname'>): Promise<RecordProblem> {
  const answer = await ask.cname(record.fullName)
  if (answer.kind !== 'found') return withoutValues(answer, record)
  if (answer.value.some((target) => plainHost(target) === record.value.toLowerCase())) return judged('OK', answer.value)
  return judged('Invalid', answer.value, `The CNAME record does not point to ${record.value}`, publish(record))
}

/**
 * Recommended record: large receivers are reluctant to accept bulk mail without DMARC. The organisational domain's record also applies
 * below it.
 */
async function checkDmarc(record: DnsRecord, name: string, ask: Pick<Ask, 'txt'>): Promise<RecordProblem> {
  const lookup = await findDmarcRecord(name, ask.txt)
  if (lookup.kind === 'trouble') return withoutValues(lookup, record)
  if (lookup.kind === 'none') return judged('Missing', [], `No DMARC record for ${name}`, publish(record))
  const { kind, at, records } = lookup
  if (kind === 'policy') return judged('OK', records)
  const invalid = (problem: string, suggestion: string) => judged('Invalid', records, problem, suggestion)
  return kind === 'several'
    ? invalid(`Found ${records.length} DMARC records at ${at}: receivers ignore all of them`, 'Keep only one record')
    : invalid(`The DMARC record at ${at} has no tag p with none, quarantine or reject`, `For example: ${record.value}`)
}

/** Recommended record: replies go to the domain's own mail servers, not to Postrider. */
async function checkMx(record: DnsRecord, ask: Pick<Ask, 'mx'>): Promise<RecordProblem> {
  const answer = await ask.mx(record.fullName)
  const suggestion = `If the domain should receive mail, publish an MX record with its mail server, such as ${record.value}`
  if (answer.kind === 'found') {
    // RFC 7505.
    const isNull = answer.value.every((value) => value.endsWith(' .'))
    return isNull
      ? judged('Invalid', answer.value, 'The MX record is a null MX: the domain accepts no mail', suggestion)
      : judged('OK', answer.value)
  }
  if (answer.kind === 'trouble') return withoutValues(answer, record)
  return judged('Missing', [], `No MX record at ${record.fullName}: replies may not arrive`, suggestion)
}
