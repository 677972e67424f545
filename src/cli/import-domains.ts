/** `postrider import domains`: adds the sending domains of an account at another service. */
import { domainVendors, importDomains, listVendorDomains } from '#imports'
import { openGuard, openPost, openResolver } from '#net'
import { plain } from './api.ts'
import { type Command, jsonOption, needed, printed, tenantOf, text, UsageError } from './command-definition.ts'

export const importDomainsCommand: Command = {
  name: 'import domains',
  audited: 'unnamed',
  summary: 'add the sending domains of an account at another service',
  help: `postrider import domains --from VENDOR [--key KEY] [--api URL] [--dry-run] [--tenant ID] [--json]

Asks the API of the service for its sending domains, and adds those that are missing here. Each gets new DKIM keys, because services do not give
theirs away: publish the records that postrider domain show NAME prints. Domains that exist here stay as they are, so the command may be repeated.
--from     ${domainVendors.join(', ')}
--key      key of the service that may read domains; for Postmark the token of the account (default: the variable VENDOR_KEY, which other users
           of the machine cannot see)
--api      scheme and host of the API, such as https://api.eu.mailgun.net (default: the usual one)
--dry-run  compares, and adds nothing
--tenant   the tenant that gets the domains (default: the default tenant)

Example: VENDOR_KEY=re_123 postrider import domains --from resend --dry-run`,
  options: {
    from: { type: 'string' },
    key: { type: 'string' },
    api: { type: 'string' },
    'dry-run': { type: 'boolean' },
    tenant: { type: 'string' },
    ...jsonOption,
  },
  values: { from: domainVendors },
  run(given, deps) {
    const from = needed(given, 'from')
    const vendor = domainVendors.find((one) => one === from)
    if (!vendor) throw new UsageError(`--from must be one of ${domainVendors.join(', ')}: ${from}`)
    const key = text(given, 'key') ?? deps.environment.VENDOR_KEY
    if (!key || !/^[\x21-\x7e]+$/.test(key)) throw new UsageError('give --key, or set VENDOR_KEY')
    const dryRun = given.options['dry-run'] === true
    return deps.withInstallation(async (installation) => {
      const { config, clock, ids } = installation
      const tenant = await tenantOf(installation, text(given, 'tenant'))
      const resolver = openResolver({ servers: config.resolvers, clock, ids })
      const http = openPost({ resolver, guard: openGuard(config.allowedNetworks), openedNetworks: config.allowedNetworks, clock })
      const names = await listVendorDomains({ vendor, key, apiUrl: text(given, 'api') }, http.get)
      const report = await importDomains(names, tenant.id, dryRun, installation)
      const lines = [
        `${report.found} domains at ${vendor}: ${report.added.length} ${dryRun ? 'missing' : 'added'}, ${report.existing} here already`,
        ...report.added.map((name) => `  ${name}`),
        ...report.failed.map(({ name, problem }) => `  ${plain(name)}: ${plain(problem)}`),
        ...(dryRun || report.added.length === 0 ? [] : ['Next: postrider domain show NAME prints the records to publish.']),
      ]
      printed(given, deps, { dryRun, tenantId: tenant.id, ...report }, lines.join('\n'))
    })
  },
}
