/**
 * Reads a DMARC aggregate report (RFC 7489 appendix C, RFC 9990) into one row for each source and From domain. Tolerates the dialects of
 * reporters: namespaces, missing fields, several signatures. Rows and texts are limited in number and length.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { getDomain } from 'tldts'
import { scanXml, type XmlVisitor } from './scan-xml.ts'
import { UnreadableReport } from './unreadable-report.ts'

export interface AggregateReport {
  /** Empty if the report does not name it. */
  reporter: string
  /** Empty if the report does not say. */
  reportId: string
  beginMs: number
  endMs: number
  policy: PublishedPolicy
  rows: AggregateRow[]
}

export interface PublishedPolicy {
  /** Lower case. */
  domain: string
  p: string
  sp: string
  strictDkim: boolean
  strictSpf: boolean
}

export interface AggregateRow {
  /** Normalised IP address; '': one of more sources than are kept. */
  source: string
  /** Lower case. */
  headerFrom: string
  messages: number
  /** By DKIM, SPF or both. */
  aligned: number
  dkimAligned: number
  spfAligned: number
  quarantined: number
  rejected: number
  /** Names whose DKIM signatures passed, with the selector: `sel._domainkey.example.com`. */
  signers: string[]
  /** Domains whose SPF check passed. */
  spfDomains: string[]
}

const maxRows = 5_000
const maxNames = 5
const maxTextLength = 300
const maxMessages = 1e12
/** Records with more authentication results than this are not of a mail server. */
const maxResults = 100
/** A record has about twenty. */
const maxElements = 1_000_000
/** No path that is read is longer. Below such a path, elements count as it: joining all levels at each tag would take a microsecond. */
const maxPathLength = 50

/** One record while it is read. */
interface RecordFacts {
  source: string
  count: string
  disposition: string
  dkim: string
  spf: string
  headerFrom: string
  results: { kind: 'dkim' | 'spf'; domain: string; selector: string; result: string }[]
}

const emptyRecord = (): RecordFacts => ({ source: '', count: '', disposition: '', dkim: '', spf: '', headerFrom: '', results: [] })

/** Throws UnreadableReport. */
export function readAggregate(xml: string): AggregateReport {
  const reading = new AggregateReading()
  scanXml(xml, reading)
  return reading.report()
}

class AggregateReading implements XmlVisitor {
  /** The paths of the open elements, from the root; '' is that of the root. */
  readonly #paths: string[] = []
  #elements = 0
  #text = ''
  readonly #facts = new Map<string, string>()
  #record = emptyRecord()
  #messages = 0
  readonly #rows = new Map<string, AggregateRow>()
  /** More sources than are kept, together. */
  #others: AggregateRow | undefined

  open(name: string): void {
    const parent = this.#paths.at(-1)
    if (parent === undefined && name !== 'feedback') throw new UnreadableReport('is not a DMARC aggregate report')
    if (++this.#elements > maxElements) throw new UnreadableReport(`has more than ${maxElements} elements`)
    const at = parent === undefined ? '' : parent === '' ? name : parent.length > maxPathLength ? parent : `${parent}/${name}`
    this.#paths.push(at)
    this.#text = ''
    if (at === 'record') this.#record = emptyRecord()
    const kind = /^record\/auth_results\/(dkim|spf)$/.exec(at)?.[1]
    if (kind && this.#record.results.length < maxResults)
      this.#record.results.push({ kind: kind as 'dkim' | 'spf', domain: '', selector: '', result: '' })
  }

  text(text: string): void {
    if (this.#text.length < maxTextLength) this.#text += text.slice(0, maxTextLength)
  }

  close(): void {
    const at = this.#paths.pop() ?? ''
    const text = this.#text.trim().slice(0, maxTextLength)
    this.#text = ''
    if (at === 'record') this.#endRecord()
    else if (at.startsWith('record/')) this.#inRecord(at.slice(7), text)
    else if (/^(?:report_metadata|policy_published)\//.test(at) && !this.#facts.has(at)) this.#facts.set(at, text)
  }

  report(): AggregateReport {
    const fact = (name: string) => this.#facts.get(name) ?? ''
    const domain = domainOf(fact('policy_published/domain'))
    const range = ['begin', 'end'].map((end) => fact(`report_metadata/date_range/${end}`))
    if (domain === '') throw new UnreadableReport('does not name a domain')
    if (!range.every((second) => /^\d{1,11}(?:\.\d{1,9})?$/.test(second))) throw new UnreadableReport('does not name its period')
    const [begin, end] = range.map((second) => Math.floor(Number(second)) * 1000) as [number, number]
    const policy = {
      domain,
      p: fact('policy_published/p').toLowerCase(),
      sp: fact('policy_published/sp').toLowerCase(),
      strictDkim: fact('policy_published/adkim').toLowerCase() === 's',
      strictSpf: fact('policy_published/aspf').toLowerCase() === 's',
    }
    const reporter = fact('report_metadata/org_name') || fact('report_metadata/email').split('@').at(-1) || ''
    return {
      reporter,
      reportId: fact('report_metadata/report_id'),
      beginMs: begin,
      endMs: end,
      policy,
      rows: [...this.#rows.values(), ...(this.#others ? [this.#others] : [])],
    }
  }

  #inRecord(at: string, text: string): void {
    const record = this.#record
    const result = record.results.at(-1)
    if (at === 'row/source_ip') record.source = text
    else if (at === 'row/count') record.count = text
    else if (at === 'row/policy_evaluated/disposition') record.disposition = text.toLowerCase()
    else if (at === 'row/policy_evaluated/dkim') record.dkim = text.toLowerCase()
    else if (at === 'row/policy_evaluated/spf') record.spf = text.toLowerCase()
    else if (at === 'identifiers/header_from' || at === 'identities/header_from') record.headerFrom = domainOf(text)
    else if (!result) return
    else if (at === `auth_results/${result.kind}/domain`) result.domain = domainOf(text)
    else if (at === `auth_results/${result.kind}/result`) result.result = text.toLowerCase()
    else if (at === 'auth_results/dkim/selector' && result.kind === 'dkim') result.selector = domainOf(text)
  }

  #endRecord(): void {
    const record = this.#record
    if (!/^\d{1,13}$/.test(record.count)) throw new UnreadableReport('has a record without a count')
    const messages = Number(record.count)
    this.#messages += messages
    if (this.#messages > maxMessages) throw new UnreadableReport(`counts more than ${maxMessages} messages`)
    const headerFrom = record.headerFrom || domainOf(this.#facts.get('policy_published/domain') ?? '')
    const isDkim = this.#isAligned('dkim', headerFrom)
    const isSpf = this.#isAligned('spf', headerFrom)
    const row = this.#rowOf(sourceOf(record.source), headerFrom)
    row.messages += messages
    if (isDkim || isSpf) row.aligned += messages
    if (isDkim) row.dkimAligned += messages
    if (isSpf) row.spfAligned += messages
    if (record.disposition === 'quarantine') row.quarantined += messages
    if (record.disposition === 'reject') row.rejected += messages
    for (const { kind, domain, selector, result } of record.results) {
      if (result !== 'pass' || domain === '') continue
      if (kind === 'spf') addName(row.spfDomains, domain)
      else addName(row.signers, selector === '' ? domain : `${selector}._domainkey.${domain}`)
    }
  }

  /** The reporter's own evaluation; some omit it, and then the results decide. */
  #isAligned(kind: 'dkim' | 'spf', headerFrom: string): boolean {
    const evaluated = this.#record[kind]
    if (evaluated !== '') return evaluated === 'pass'
    const isStrict = this.#facts.get(`policy_published/a${kind}`)?.toLowerCase() === 's'
    return this.#record.results.some((one) => one.kind === kind && one.result === 'pass' && isSameName(one.domain, headerFrom, isStrict))
  }

  #rowOf(source: string, headerFrom: string): AggregateRow {
    const key = `${source} ${headerFrom}`
    const known = this.#rows.get(key)
    if (known) return known
    const row = source !== '' && this.#rows.size < maxRows ? emptyRow(source, headerFrom) : undefined
    if (row) this.#rows.set(key, row)
    this.#others ??= row ? undefined : emptyRow('', headerFrom)
    return row ?? (this.#others as AggregateRow)
  }
}

const emptyRow = (source: string, headerFrom: string): AggregateRow => ({
  source,
  headerFrom,
  messages: 0,
  aligned: 0,
  dkimAligned: 0,
  spfAligned: 0,
  quarantined: 0,
  rejected: 0,
  signers: [],
  spfDomains: [],
})

/** Lower case, without a final dot; empty if it cannot be a name. */
function domainOf(text: string): string {
  const name = text.trim().toLowerCase().replace(/\.$/, '')
  return name.length <= 253 && /^[a-z0-9_\u0080-\uffff](?:[-a-z0-9_.\u0080-\uffff]*[a-z0-9_\u0080-\uffff])?$/.test(name) ? name : ''
}

/** The usual spelling of an address; empty if it is not an address. */
const sourceOf = (text: string) => (isIP(text) === 0 || text.includes('%') ? '' : ipaddr.process(text).toString())

function addName(names: string[], name: string): void {
  if (names.length < maxNames && !names.includes(name)) names.push(name)
}

/** RFC 7489 section 3.1: relaxed alignment compares organisational domains. */
function isSameName(one: string, other: string, isStrict: boolean): boolean {
  if (one === other) return true
  const organisation = getDomain(one, { allowPrivateDomains: true })
  return !isStrict && organisation !== null && organisation === getDomain(other, { allowPrivateDomains: true })
}
