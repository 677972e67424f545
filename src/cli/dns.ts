/** `postrider dns`: the DNS records to publish for the platform's own names, and their current state in DNS. */
import { readPlatform } from '#doctor'
import type { PlatformRecord } from '#domains'
import { openResolver } from '#net'
import { type Command, jsonOption } from './command-definition.ts'
import { unpublishable } from './domains.ts'

const says: Record<string, string> = {
  OK: 'is published',
  Missing: 'is missing: publish it',
  Invalid: 'says something else: change it',
  unknown: 'could not be looked up: try again, or see POSTRIDER_DNS',
}

function line({ type, name, value, status, found }: PlatformRecord): string {
  const instead = status === 'Invalid' && found ? `\n        found  ${found.join('\n               ')}` : ''
  return `  ${(status ?? '?').padEnd(8)}${type.padEnd(6)}${name} ${says[status ?? 'unknown']}\n        value  ${value}${instead}`
}

export const dns: Command = {
  name: 'dns',
  summary: "the DNS records to publish for the platform's own names, and what was found",
  help: `postrider dns [--json]

Lists the records of the names below POSTRIDER_HOSTNAME that mail and tracking need: its addresses, the MX and SPF of the return path
(rp.), SPF (spf.), the tracking name (track.), the DKIM key of the sandbox sender's domain, the PTR of each address, and the names and
PTR of the addresses that mail is sent from (postrider source); with what DNS answers now. The addresses are those DNS has for the host
name, else those of this machine that are public.
With --json: [{type, name, value, status, found}]; status is OK, Missing, Invalid, or null when DNS could not be asked.`,
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
