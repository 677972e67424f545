/** DNS checks of this installation: whether DNS works, the names that mail depends on, and the policies for incoming mail. */
import ipaddr from 'ipaddr.js'
import { getDomain } from 'tldts'
import { listSources } from '#delivery'
import { findDmarcRecord, type PlatformRecord, returnPathDomainOf, tlsReportName } from '#domains'
import { isStsRecord, isTlsReportRecord } from '#net'
import { addressesOf, type Check, type CheckResult, checkResult, type DoctorDeps, ok } from './check-result.ts'

/** A domain that certainly has mail servers. */
const knownDomain = 'gmail.com'

export const checkResolver: Check = async ({ resolver }) => {
  const name = 'resolver'
  const answer = await resolver.mx(knownDomain, 'fresh')
  if (answer.kind === 'found') return [ok(name, `resolves ${knownDomain}`)]
  const problem =
    answer.kind === 'trouble'
      ? `cannot resolve the mail servers of ${knownDomain} (${answer.code})`
      : `returns no mail servers for ${knownDomain}`
  return [checkResult(name, 'problem', problem, 'Set POSTRIDER_DNS to a working resolver, preferably on this machine (unbound)')]
}

const isPublic = (name: string) =>
  getDomain(name, { allowPrivateDomains: true }) !== null && !/\.(local|internal|lan|home|arpa|test|invalid|localhost)$/i.test(name)

const isOf = (name: string, hostname: string) => name === hostname || name.endsWith(`.${hostname}`)

/** A PTR depends on the name that it shall contain. */
const restsOn = ({ type, name, value }: PlatformRecord, hostname: string) => isOf(type === 'PTR' ? value : name, hostname)

const consequences = 'receivers refuse or distrust this mail, bounces do not arrive, and opens and clicks are not counted'

/**
 * The problem with the host name, if it has no records; undefined if it has some, or DNS did not answer. Other checks that depend on the
 * name do not repeat the problem.
 */
export function nameless({ records, config: { hostname } }: Pick<DoctorDeps, 'records' | 'config'>): CheckResult | undefined {
  const name = 'EHLO name'
  const set = 'set POSTRIDER_HOSTNAME to the public name of this machine, such as mail.example.com'
  if (!isPublic(hostname))
    return checkResult(name, 'problem', `"${hostname}" is not a public name: ${consequences}`, `${set[0]?.toUpperCase()}${set.slice(1)}`)
  const below = records.filter((record) => record.type !== 'PTR' && restsOn(record, hostname))
  if (below.length === 0 || below.some(({ status }) => status !== 'Missing')) return undefined
  const called = records.flatMap((record) => (record.type === 'PTR' && restsOn(record, hostname) ? (record.found ?? []) : []))
  const hint = called.length === 0 ? '' : ` (the PTR of its address: ${called.join(', ')})`
  return checkResult(
    name,
    'problem',
    `DNS has no records for "${hostname}" and the names below it: ${consequences}`,
    `If that is this machine, publish the records that \`postrider dns\` lists. Otherwise ${set}${hint}`,
  )
}

export const checkHostname: Check = async (deps) => [nameless(deps) ?? ok('EHLO name', deps.config.hostname)]

/**
 * Detects two installations with the same name: during a move between machines, or from a copied settings file. Behind NAT there is no
 * result.
 */
export const checkWhereNameLeads: Check = async ({ db, records, config, ownAddresses }) => {
  const published = addressesOf({ records: records.filter(({ status }) => status === 'OK'), config })
  if (config.relay || published.length === 0 || ownAddresses.length === 0) return []
  const known = [...published, ...(await listSources(db)).map(({ address }) => address)].map((address) => ipaddr.parse(address).toString())
  if (ownAddresses.some((address) => known.includes(ipaddr.parse(address).toString()))) return []
  return [
    checkResult(
      'machine of the name',
      'warning',
      `${config.hostname} resolves to ${published.join(', ')}, but this machine has ${ownAddresses.join(', ')}`,
      'If another installation uses that name, set another POSTRIDER_HOSTNAME here: otherwise bounces go to the other installation (docs/install.md, moving). If one installation has several machines, add this address to the name in DNS, or with postrider source add',
    ),
  ]
}

const titles: Record<string, (record: PlatformRecord, hostname: string) => string> = {
  A: () => 'address of the host',
  AAAA: () => 'address of the host',
  MX: () => 'return path, MX',
  CNAME: () => 'tracking name',
  PTR: ({ name }) => `PTR ${name}`,
  TXT: ({ name }, hostname) =>
    name === returnPathDomainOf(hostname)
      ? 'return path, SPF'
      : name === `spf.${hostname}`
        ? 'SPF of the platform'
        : name.includes('._report._dmarc.')
          ? 'DMARC reports about sending domains'
          : 'DKIM of the sandbox sender',
}

/** Receivers do not trust mail without these; the other records serve additional features. */
const needed = new Set(['A', 'AAAA', 'PTR', 'MX', 'SPF'])

function judged(record: PlatformRecord, hostname: string): CheckResult {
  const name = titles[record.type]?.(record, hostname) ?? record.name
  const at = `${record.type} ${record.name}`
  const isNeeded = needed.has(record.type) || name.endsWith('SPF') || name.startsWith('SPF')
  const status = isNeeded ? 'problem' : 'warning'
  if (record.status === 'OK') return ok(name, `${at}: ${(record.found ?? []).join(', ')}`)
  if (record.status === null) return checkResult(name, 'unknown', `${at}: DNS lookup failed`, 'Try again, or see the check "resolver"')
  const where = record.type === 'PTR' ? 'At the provider of the address (the hoster), set its PTR to' : 'Publish'
  const what = record.type === 'PTR' ? record.value : `${at} with the value ${record.value}`
  if (record.status === 'Missing') return checkResult(name, status, `${at}: not found`, `${where} ${what}`)
  const also = record.type === 'PTR' ? `, and make ${hostname} resolve to the address` : ''
  return checkResult(name, status, `${at}: ${(record.found ?? []).join(', ')}`, `${where} ${what} instead${also}`)
}

/** Listed by `postrider dns`, and judged by `checkDmarc`, `checkIncomingPolicies` and `checkMtaSts`. */
const hasOwnCheck = ({ name }: PlatformRecord) => /^(?:_dmarc|_?mta-sts)\./.test(name) || name.startsWith(tlsReportName(''))

export const checkPlatform: Check = async (deps) => {
  const { hostname } = deps.config
  const wrong = nameless(deps) !== undefined
  const own = deps.records.filter((record) => !(wrong && restsOn(record, hostname)) && !hasOwnCheck(record))
  if (own.length > 0 && own.every(({ status }) => status === null))
    return [checkResult('platform records', 'unknown', 'all DNS lookups failed', 'Try again, or see the check "resolver"')]
  return own.map((record) => judged(record, hostname))
}

export const checkDmarc: Check = async (deps) => {
  const { resolver, config } = deps
  const domain = config.sandboxSender.slice(config.sandboxSender.lastIndexOf('@') + 1)
  const name = `DMARC of ${domain}`
  if (isOf(domain, config.hostname) && nameless(deps)) return []
  if (!isPublic(domain))
    return [
      checkResult(name, 'unknown', `"${domain}" is not a public name`, 'Set POSTRIDER_SANDBOX_SENDER to an address at your own domain'),
    ]
  const lookup = await findDmarcRecord(domain, (at) => resolver.txt(at, 'fresh'))
  const { kind, at } = lookup
  if (kind === 'trouble') return [checkResult(name, 'unknown', `${at}: DNS lookup failed (${lookup.code})`, 'Try again')]
  const warning = (detail: string, remedy: string) => [checkResult(name, 'warning', detail, remedy)]
  if (kind === 'none')
    return warning('none', `Publish TXT ${at} with the value v=DMARC1; p=none. Use a stricter policy when all your mail passes`)
  const { records } = lookup
  if (kind === 'several') return warning(`${at} has ${records.length} records, so receivers ignore all`, 'Keep only one record')
  if (kind === 'policy') return [ok(name, `${at}: ${records.join()}`)]
  return warning(`${at} has no policy: ${records.join()}`, 'Add p=none, p=quarantine or p=reject after v=DMARC1;')
}

/** Policies that protect incoming bounces and complaints. Few installations have them, so missing ones are not a problem. */
export const checkIncomingPolicies: Check = async (deps) => {
  if (nameless(deps)) return []
  const { resolver } = deps
  const at = returnPathDomainOf(deps.config.hostname)
  const ask = async (check: string, where: string, isRecord: (text: string) => boolean, what: string): Promise<CheckResult> => {
    const answer = await resolver.txt(where, 'fresh')
    if (answer.kind === 'trouble') return checkResult(check, 'unknown', `${where}: DNS lookup failed (${answer.code})`, 'Try again')
    const [found, ...more] = answer.kind === 'found' ? answer.value.filter(isRecord) : []
    if (found === undefined) return { check, status: 'ok', detail: 'none (optional)', remedy: what }
    // RFC 8461 section 3.1, RFC 8460 section 3.
    return more.length === 0
      ? ok(check, `${where}: ${found}`)
      : checkResult(check, 'warning', `${where} has ${more.length + 1} records, so other servers ignore all`, 'Keep only one record')
  }
  return Promise.all([
    ask(
      'MTA-STS of the return path',
      `_mta-sts.${at}`,
      isStsRecord,
      'Optional: with a policy (POSTRIDER_MTA_STS), servers that support MTA-STS send bounces only over verified TLS',
    ),
    ask(
      'TLS-RPT of the return path',
      tlsReportName(at),
      isTlsReportRecord,
      'Optional: with the record that `postrider dns` lists, other mail servers report TLS failures, and the log shows them',
    ),
  ])
}
