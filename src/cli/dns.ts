/** `postrider dns`: the DNS records to publish for the platform's own names, and their current state in DNS. */
import { readPlatform } from '#doctor'
import type { PlatformRecord } from '#domains'
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

function line({ type, name, value, status, found }: PlatformRecord): string {
  const instead = status === 'Invalid' && found ? `\n        found  ${found.join('\n               ')}` : ''
  return `  ${shade(status ?? '?', 8)}${type.padEnd(6)}${name} ${says[status ?? 'unknown']}\n        value  ${value}${instead}`
}

export const dns: Command = {
  name: 'dns',
  summary: "list the DNS records of the platform's names, and their current values",
  help: `postrider dns [--json]

Lists the DNS records that mail and tracking need below POSTRIDER_HOSTNAME, and their current values: the addresses, the MX and SPF of the
return path (rp.), SPF (spf.), the tracking name (track.), the DKIM key of the sandbox sender's domain, the PTR of each address, and the
names and PTRs of the egress sources (postrider source). The addresses are those of the host name in DNS, or else the public addresses of
this machine.
With --json: [{type, name, value, status, found}]; status is OK, Missing, Invalid, or null after a failed lookup.`,
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const records = await readPlatform(
        installation,
        openResolver({ servers: installation.config.resolvers, clock: installation.clock, ids: installation.ids }),
      )
      deps.print(
        given.options.json === true
          ? JSON.stringify(records)
          : `${records.map(line).join('\n')}${unpublishable(installation.config.hostname)}`,
      )
    }),
}
