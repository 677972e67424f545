/** `postrider dns`: the DNS records to publish, of the platform's own names, and their current state in DNS. */
import { getDomain } from 'tldts'
import { readDnsUpdates, zoneFile } from '#dns-updates'
import { readPlatform } from '#doctor'
import { listDkimTargets, type PlatformRecord } from '#domains'
import type { Installation } from '#installation'
import { openResolver } from '#net'
import { type Command, jsonOption } from './command-definition.ts'
import { unpublishable } from './domains.ts'
import { shade } from './styles.ts'

const says: Record<string, string> = {
  OK: 'published',
  Missing: 'missing: publish it',
  Invalid: 'has another value: change it',
  unknown: 'lookup failed: try again, or check POSTRIDER_DNS',
}

/** With the result of DNS updates. */
interface ShownRecord extends PlatformRecord {
  /** The registrable domain of the name, and the name relative to it. */
  zone: string
  relativeName: string
  writtenByPostrider: boolean
  /** When Postrider last read it back. */
  seenAt: Date | null
  problem: string | null
}

function line({ type, name, relativeName, zone, value, status, found, writtenByPostrider, problem }: ShownRecord): string {
  const instead = status === 'Invalid' && found ? `\n        found  ${found.join('\n               ')}` : ''
  const written = writtenByPostrider ? ', written by Postrider' : ''
  const trouble = problem ? `\n        not written: ${problem}` : ''
  const relative = relativeName === name ? '' : `\n        in ${zone}: ${relativeName}`
  return `  ${shade(status ?? '?', 8)}${type.padEnd(6)}${name} ${says[status ?? 'unknown']}${written}\n        value  ${value}${relative}${instead}${trouble}`
}

const relativeTo = (name: string, zone: string) =>
  name === zone ? '@' : name.endsWith(`.${zone}`) ? name.slice(0, -zone.length - 1) : name

async function shownRecords(installation: Installation): Promise<ShownRecord[]> {
  const { config, clock, ids, db } = installation
  const records = await readPlatform(installation, openResolver({ servers: config.resolvers, clock, ids }))
  const { records: written, problems } = await readDnsUpdates(db)
  return records.map((record) => {
    const zone = record.type === 'PTR' ? record.name : (getDomain(record.name, { allowPrivateDomains: false }) ?? record.name)
    const isOfSet = (one: { name: string; type: string }) => one.name === record.name.toLowerCase() && one.type === record.type
    const mine = written.find(isOfSet)
    return {
      ...record,
      zone,
      relativeName: record.type === 'PTR' ? record.name : relativeTo(record.name, zone),
      writtenByPostrider: mine !== undefined,
      seenAt: mine?.seenAt ?? null,
      problem: problems.find(isOfSet)?.problem ?? null,
    }
  })
}

/** The records of the platform with the targets of CNAME records. */
async function zoneText(installation: Installation, records: readonly ShownRecord[]): Promise<string> {
  const { db, config } = installation
  const targets = config.dnsUpdate ? await listDkimTargets(db, config.hostname) : []
  const zone = getDomain(config.hostname, { allowPrivateDomains: false }) ?? config.hostname
  return zoneFile(zone, [...records, ...targets.map((one) => ({ ...one, type: 'TXT' }))]).trimEnd()
}

/** The last run of DNS updates, below the list. */
async function runText({ db, config }: Installation): Promise<string> {
  if (!config.dnsUpdate) return ''
  const { run, records, problems } = await readDnsUpdates(db)
  if (!run) return '\n\nPOSTRIDER_DNS_UPDATE is set: the running service will write these records.'
  const state = run.problem ?? (problems.length > 0 ? `${problems.length} record sets could not be written` : 'all is written')
  const trouble = problems.map(({ type, name, problem }) => `\n  ${type} ${name}: ${problem}`).join('')
  return `\n\nDNS updates: ${records.length} records written by Postrider; last run ${run.endedAt.toISOString()}: ${state}${trouble}`
}

export const dns: Command = {
  name: 'dns',
  summary: "list the DNS records of the platform's names, and their current values",
  help: `postrider dns [--zone-file] [--json]

Lists the DNS records that mail and tracking need below POSTRIDER_HOSTNAME, and their current values: the addresses, the MX and SPF of the
return path (rp.), SPF (spf.), the tracking name (track.), the DKIM key and the DMARC record of the sandbox sender's domain, the records for
DMARC and TLS reports, those of the MTA-STS policy (POSTRIDER_MTA_STS), the PTR of each address, and the names and PTRs of the egress sources
(postrider source). The addresses are those of the host name in DNS, or else the public addresses of this machine. With POSTRIDER_DNS_UPDATE,
it names the records that Postrider wrote, and the problems.
--zone-file   prints the records as a zone file, with names relative to the zone, for import at a DNS provider. For a sending domain, see
              postrider domain show --help
With --json: [{type, name, value, status, found, zone, relativeName, writtenByPostrider, seenAt, problem}]; status is OK, Missing, Invalid,
or null after a failed lookup.`,
  options: { ...jsonOption, 'zone-file': { type: 'boolean' } },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const records = await shownRecords(installation)
      if (given.options['zone-file'] === true) return deps.print(await zoneText(installation, records))
      deps.print(
        given.options.json === true
          ? JSON.stringify(records)
          : `${records.map(line).join('\n')}${await runText(installation)}${unpublishable(installation.config.hostname)}`,
      )
    }),
}
