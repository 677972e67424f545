/**
 * SPF, DKIM and DMARC results of a received message. Evaluation is that of mailauth, signatures are verified by the module dkim, and all
 * queries go to Postrider's resolver, limited in number, size and time. Results are facts for the receiver of the event: no mail is refused
 * for them.
 */
import { createRequire } from 'node:module'
import type * as MailauthDmarc from 'mailauth/lib/dmarc/index.js'
import type * as MailauthSpf from 'mailauth/lib/spf/index.js'
import { type Clock, nextTurn, pause, sanitiseText } from '#base'
import { type FoundSignature, holdsWithKey } from '#dkim'
import type { DnsAnswer, Resolver } from '#net'

export const spfResults = ['pass', 'fail', 'softfail', 'neutral', 'none', 'temperror', 'permerror'] as const
export const dkimResults = ['pass', 'fail', 'temperror'] as const
export const dmarcResults = ['pass', 'fail', 'none', 'temperror', 'permerror'] as const

export interface Authentication {
  /** `domain`: of the envelope sender, or the name in EHLO for the null reverse-path. */
  spf: { result: (typeof spfResults)[number]; domain: string }
  /** The first signatures, of any domain. */
  dkim: { result: (typeof dkimResults)[number]; domain: string; selector: string }[]
  /** `domain`: of From; `policy`: the one to apply if the result is fail. */
  dmarc: { result: (typeof dmarcResults)[number]; domain: string; policy: string | null }
}

/** In the order in which callers get them; the database keeps no order. */
export const shownAuthentication = ({ spf, dkim, dmarc }: Authentication): Authentication => ({
  spf: { result: spf.result, domain: spf.domain },
  dkim: dkim.map(({ result, domain, selector }) => ({ result, domain, selector })),
  dmarc: { result: dmarc.result, domain: dmarc.domain, policy: dmarc.policy },
})

export interface AuthenticationDeps {
  resolver: Pick<Resolver, 'txt' | 'mx' | 'addresses' | 'ptr' | 'cname'>
  clock: Clock
  hostname: string
}

export interface AuthenticationFacts {
  /** The client's address and the name in its EHLO. */
  client: string
  greeting: string
  /** Envelope sender; empty: the null reverse-path. */
  sender: string
  /** Address in From; empty unless it is exactly one. */
  from: string
  signatures: readonly FoundSignature[]
}

/** The sending server waits. */
const maxMs = 8_000
const maxQueries = 120
/** SPF and DMARC records are far shorter; the time of an evaluation grows with their length. */
const maxRecordLength = 8_192
/** Each costs up to 10 µs, in each of ten records. */
const maxTerms = 200
const maxNameLength = 255
/**
 * The patterns of mailauth take quadratic time for an expanded term. Its longest part without a dot is the term with its macros, of which none
 * is longer than a label or a local part (RFC 1035 section 2.3.4, RFC 5321 section 4.5.3.1.1).
 */
const maxTermLength = 300
const maxTermMacros = 8
const maxRecordMacros = 40
const maxLabelLength = 63
const maxLocalLength = 64

/** Loaded with the first message. */
const require = createRequire(import.meta.url)
let evaluators: ReturnType<typeof loadEvaluators> | undefined
const loadEvaluators = () => ({
  spf: (require('mailauth/lib/spf/index.js') as typeof MailauthSpf).spf,
  dmarc: (require('mailauth/lib/dmarc/index.js') as typeof MailauthDmarc).dmarc,
})

/** Never rejects; checks that are not done in time have the result temperror. */
export async function authenticate(deps: AuthenticationDeps, facts: AuthenticationFacts): Promise<Authentication> {
  const { clock } = deps
  const ended = new AbortController()
  const found = unfinished(facts)
  const work = evaluate(deps, facts, found).catch(() => undefined)
  await Promise.race([work, pause(clock, maxMs, ended.signal)])
  ended.abort()
  return structuredClone(found)
}

const domainOf = (address: string) => sanitiseText(address.slice(address.lastIndexOf('@') + 1).toLowerCase(), maxNameLength)

const isBounded = (name: string) => name.length <= maxNameLength && name.split('.').every((label) => label.length <= maxLabelLength)

/** A name that cannot exist becomes `-`, which has no record. */
function boundedSender(sender: string): string {
  const at = sender.lastIndexOf('@')
  const domain = sender.slice(at + 1)
  if (sender === '') return ''
  return `${sender.slice(0, Math.max(0, at)).slice(0, maxLocalLength)}@${isBounded(domain) ? domain : '-'}`
}

const macrosIn = (text: string) => text.split('%{').length - 1

/** Whether an SPF record, or the text that explains a result, costs too much to evaluate. More than one redirect is an error (RFC 7208 section 6). */
function isCostly(text: string): boolean {
  if (macrosIn(text) > maxRecordMacros) return true
  if (!/^\s*v=spf1/i.test(text)) return false
  const terms = text.trim().split(/\s+/)
  if (terms.length > maxTerms) return true
  if (terms.filter((term) => /^redirect=/i.test(term)).length > 1) return true
  return terms.some((term) => term.length > maxTermLength || macrosIn(term) > maxTermMacros)
}

const unfinished = ({ sender, greeting, from, signatures }: AuthenticationFacts): Authentication => ({
  spf: { result: 'temperror', domain: domainOf(sender === '' ? greeting : sender) },
  dkim: signatures.map(({ domain, selector }) => ({
    result: 'temperror',
    domain: sanitiseText(domain, maxNameLength),
    selector: sanitiseText(selector, maxNameLength),
  })),
  dmarc: { result: from === '' ? 'permerror' : 'temperror', domain: domainOf(from), policy: null },
})

/** Fills in the results in `found`, so that those done in time count. */
async function evaluate({ resolver, hostname }: AuthenticationDeps, facts: AuthenticationFacts, found: Authentication): Promise<void> {
  const { client, greeting, sender, from, signatures } = facts
  evaluators ??= loadEvaluators()
  const { spf, dmarc } = evaluators
  const resolve = resolveWith(resolver)
  const findTxt = textsOf(resolve)
  const checkSpf = async () => {
    const [given, helo] = [boundedSender(sender), isBounded(greeting) ? greeting : '']
    const { status } = await spf({ sender: given, ip: client, helo, mta: hostname, resolver: resolve, maxElapsedTime: maxMs })
    found.spf.result = spfResults.find((one) => one === status.result) ?? 'neutral'
  }
  const checkSignatures = async () => {
    for (const [nth, signature] of signatures.entries()) {
      const one = found.dkim[nth]
      if (!one) continue
      const verdict = await holdsWithKey(signature, findTxt).catch(() => undefined)
      one.result = verdict === undefined ? 'temperror' : verdict ? 'pass' : 'fail'
    }
  }
  await Promise.all([checkSpf().catch(() => undefined), checkSignatures()])
  if (from === '') return
  const passed = found.dkim.filter(({ result }) => result === 'pass')
  const given = {
    headerFrom: [from],
    spfDomains: found.spf.result === 'pass' ? [found.spf.domain] : [],
    dkimDomains: passed.map(({ domain }) => ({ domain })),
    resolver: resolve,
  }
  const judged = await dmarc(given)
  if (!judged) return void (found.dmarc.result = 'permerror')
  const result = dmarcResults.find((one) => one === judged.status.result) ?? 'none'
  const policy = /^(?:none|quarantine|reject)$/.test(judged.policy) ? judged.policy : null
  // A signature whose key could not be looked up might have passed.
  const isOpen = result === 'fail' && (found.spf.result === 'temperror' || found.dkim.some((one) => one.result === 'temperror'))
  found.dmarc = { ...found.dmarc, result: isOpen ? 'temperror' : result, policy }
}

class DnsFailure extends Error {
  readonly code: string
  constructor(code: string) {
    super(`DNS lookup failed: ${code}`)
    this.code = code
  }
}

const noneIfMissing = (error: unknown): string[] => {
  if (error instanceof DnsFailure && ['ENOTFOUND', 'ENODATA'].includes(error.code)) return []
  throw error
}

const textsOf = (resolve: ReturnType<typeof resolveWith>) => (name: string) =>
  resolve(name, 'TXT').then(
    (found) => found.map((texts) => [texts].flat().join('')),
    (error: unknown) => noneIfMissing(error),
  )

/** The TXT records of names, with the same limits; throws if a lookup fails. */
export const limitedTxt = (resolver: AuthenticationDeps['resolver']) => textsOf(resolveWith(resolver))

let lastAnswer: Promise<void> = Promise.resolve()

/**
 * One answer in a turn of the event loop, over all messages: an evaluation works after an answer until its next query, and many of them in one
 * turn would hold up all connections. The messages that are being received, and their queries, limit the number that wait. An evaluation that
 * waits for DNS delays no other.
 */
function turnToAnswer(): Promise<void> {
  lastAnswer = lastAnswer.then(nextTurn)
  return lastAnswer
}

/** Postrider's resolver in the form of Node's `resolve`, with a limit of queries for one message. */
function resolveWith(resolver: AuthenticationDeps['resolver']) {
  let left = maxQueries
  return async (name: string, type: string): Promise<string[] | string[][]> => {
    if (left-- <= 0) throw new DnsFailure('EREFUSED')
    try {
      return (await answersOf(resolver, name, type)) as string[]
    } finally {
      await turnToAnswer()
    }
  }
}

async function answersOf(resolver: AuthenticationDeps['resolver'], name: string, type: string): Promise<readonly unknown[]> {
  switch (type) {
    case 'TXT': {
      const texts = valuesOf(await resolver.txt(name))
      if (texts.some((text) => text.length > maxRecordLength && /^\s*v=/i.test(text))) throw new DnsFailure('ESERVFAIL')
      // SPF then has the result permerror, DMARC no record.
      if (texts.some(isCostly)) throw new DnsFailure('EBADNAME')
      return texts.filter((text) => text.length <= maxRecordLength).map((text) => [text])
    }
    case 'MX':
      return valuesOf(await resolver.mx(name))
    case 'A':
    case 'AAAA': {
      const wanted = valuesOf(await resolver.addresses(name)).filter((address) => address.includes(':') === (type === 'AAAA'))
      if (wanted.length === 0) throw new DnsFailure('ENODATA')
      return wanted
    }
    case 'PTR':
      return valuesOf(await resolver.ptr(addressOfPtr(name)))
    case 'CNAME':
      return valuesOf(await resolver.cname(name))
    default:
      throw new DnsFailure('ENODATA')
  }
}

function valuesOf<Value>(answer: DnsAnswer<Value[]>): Value[] {
  if (answer.kind === 'found') return answer.value
  throw new DnsFailure(answer.kind === 'trouble' ? 'ESERVFAIL' : answer.kind === 'nxdomain' ? 'ENOTFOUND' : 'ENODATA')
}

/** The address in the name of a reverse lookup (RFC 1035 section 3.5, RFC 3596 section 2.5); another name is returned as it is. */
export function addressOfPtr(name: string): string {
  const [, v4] = /^([\d.]+)\.in-addr\.arpa\.?$/i.exec(name) ?? []
  if (v4 !== undefined) return v4.split('.').reverse().join('.')
  const [, v6] = /^((?:[0-9a-f]\.){32})ip6\.arpa\.?$/i.exec(name) ?? []
  if (v6 === undefined) return name
  const digits = v6.replaceAll('.', '').split('').reverse().join('')
  return (digits.match(/.{4}/g) ?? []).join(':')
}
