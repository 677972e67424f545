/** Commands for recipient domains that require TLS. */
import { listTlsRequirements, removeTlsRequirement, requireTls } from '#delivery'
import { parseAddress } from '#mail'
import { type Command, type CommandArguments, jsonOption, printed, UsageError } from './command-definition.ts'

function domainOf({ positionals: [given = ''] }: CommandArguments): string {
  const domain = parseAddress(`a@${given}`)?.domain
  if (domain === undefined) throw new UsageError(`"${given}" is not a domain`)
  return domain
}

export const tlsRequire: Command = {
  name: 'tls require',
  audited: true,
  summary: "send to a recipients' domain over TLS only",
  help: `postrider tls require DOMAIN [--any-certificate] [--json]

Mail for DOMAIN is sent over TLS 1.2 or later only, to mail servers whose certificate is valid for their name; otherwise it waits and is
tried again. In force within a second for new connections. What the domain publishes itself (DANE, an enforced MTA-STS policy) goes first.
Not for mail that goes through POSTRIDER_RELAY.

--any-certificate  encrypted, to whoever answers: for servers with a certificate of their own making`,
  options: { 'any-certificate': { type: 'boolean' }, ...jsonOption },
  positionals: ['DOMAIN'],
  run: (given, deps) =>
    deps.withInstallation(async ({ db, clock }) => {
      const domain = domainOf(given)
      const certificate = given.options['any-certificate'] === true ? 'any' : 'valid'
      await requireTls(db, domain, certificate, clock.nowMs())
      const what = certificate === 'any' ? 'with any certificate' : 'with a valid certificate'
      printed(given, deps, { domain, certificate, required: true }, `mail for ${domain} is sent over TLS ${what} only`)
    }),
}

export const tlsRemove: Command = {
  name: 'tls remove',
  audited: true,
  summary: 'take TLS as it comes again',
  help: 'postrider tls remove DOMAIN [--json]\n\nEnds what `postrider tls require` began.',
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
  summary: 'the domains that get mail over TLS only',
  help: 'postrider tls list [--json]\n\nThe domains given to `postrider tls require`, and which certificate will do.',
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async ({ db }) => {
      const required = await listTlsRequirements(db)
      const lines = required.map(({ domain, certificate, at }) => `${domain.padEnd(40)} ${certificate.padEnd(6)} ${at.toISOString()}`)
      printed(given, deps, { required }, lines.length > 0 ? lines.join('\n') : 'TLS is required for no domain')
    }),
}
