/** Commands for recipient domains that require TLS. */
import { listTlsRequirements, removeTlsRequirement, requireTls } from '#delivery'
import { listRecentReports } from '#tls-reports'
import { domainIn } from './command-arguments.ts'
import { type Command, type CommandArguments, jsonOption, printed } from './command-definition.ts'

const domainOf = ({ positionals: [given = ''] }: CommandArguments): string => domainIn(given, 'DOMAIN')

export const tlsRequire: Command = {
  name: 'tls require',
  audited: true,
  summary: 'require TLS for a recipient domain',
  help: `postrider tls require DOMAIN [--any-certificate] [--json]

Sends mail for DOMAIN only over TLS 1.2 or later, to mail servers whose certificate is valid for their name. Otherwise the mail stays queued
and is retried. Takes effect within one second for new connections. The domain's own policy (DANE, or MTA-STS in enforce mode) has
precedence. Does not apply to mail through POSTRIDER_RELAY.

--any-certificate  requires encryption but accepts any certificate, for servers with a self-signed one`,
  options: { 'any-certificate': { type: 'boolean' }, ...jsonOption },
  positionals: ['DOMAIN'],
  run: (given, deps) =>
    deps.withInstallation(async ({ db, clock }) => {
      const domain = domainOf(given)
      const certificate = given.options['any-certificate'] === true ? 'any' : 'valid'
      await requireTls(db, domain, certificate, clock.nowMs())
      const what = certificate === 'any' ? 'with any certificate' : 'with a valid certificate'
      printed(given, deps, { domain, certificate, required: true }, `mail for ${domain} now requires TLS ${what}`)
    }),
}

export const tlsRemove: Command = {
  name: 'tls remove',
  audited: true,
  summary: 'remove a TLS requirement',
  help: 'postrider tls remove DOMAIN [--json]\n\nRemoves the requirement that `postrider tls require` set.',
  options: jsonOption,
  positionals: ['DOMAIN'],
  run: (given, deps) =>
    deps.withInstallation(async ({ db, clock }) => {
      const domain = domainOf(given)
      const removed = await removeTlsRequirement(db, domain, clock.nowMs())
      printed(given, deps, { domain, removed }, removed ? `TLS is no longer required for ${domain}` : `TLS was not required for ${domain}`)
    }),
}

export const tlsList: Command = {
  name: 'tls list',
  summary: 'list recipient domains that require TLS',
  help: 'postrider tls list [--json]\n\nLists the domains of `postrider tls require` and the required certificate.',
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async ({ db }) => {
      const required = await listTlsRequirements(db)
      const lines = required.map(({ domain, certificate, at }) => `${domain.padEnd(40)} ${certificate.padEnd(6)} ${at.toISOString()}`)
      printed(given, deps, { required }, lines.length > 0 ? lines.join('\n') : 'no domain requires TLS')
    }),
}

const maxReports = 200

export const tlsReports: Command = {
  name: 'tls reports',
  summary: 'list the TLS reports that were sent',
  help: `postrider tls reports [--json]

Lists the newest ${maxReports} TLS reports (RFC 8460) to other domains: the day, the domain, its destination, the state, and the counted sessions. With
--json also the number of tries. POSTRIDER_TLS_REPORTS turns them on.`,
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async ({ db }) => {
      const reports = await listRecentReports(db, maxReports)
      const lines = reports.map(
        ({ day, domain, destination, state, successful, failed, problem }) =>
          `${day} ${domain.padEnd(30)} ${state.padEnd(7)} ${String(successful).padStart(6)} successful, ${String(failed).padStart(6)} failed  ${destination}${problem === null ? '' : ` (${problem})`}`,
      )
      printed(given, deps, { reports }, lines.length > 0 ? lines.join('\n') : 'no TLS report was sent')
    }),
}
