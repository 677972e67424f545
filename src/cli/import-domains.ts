/** `postrider import domains`: adds the sending domains of an account at another service. */
import { domainVendors, importDomains, listSesDomains, listVendorDomains, patientGet } from '#imports'
import type { Installation } from '#installation'
import { plain } from './api.ts'
import { tenantOf } from './command-arguments.ts'
import {
  type Command,
  type CommandArguments,
  type CommandDeps,
  jsonOption,
  needed,
  printed,
  text,
  UsageError,
} from './command-definition.ts'
import { outboundOf } from './import-webhooks.ts'

export const importDomainsCommand: Command = {
  name: 'import domains',
  audited: 'unnamed',
  summary: 'add the sending domains of an account at another service',
  help: `postrider import domains --from VENDOR [--key KEY] [--region REGION] [--api URL] [--dry-run] [--tenant ID] [--json]

Asks the API of the service for its sending domains, and adds those that are missing here. Each gets new DKIM keys, because services do not give
theirs away: publish the records that postrider domain show NAME prints. Domains that exist here stay as they are, so the command may be repeated.
--from     ${domainVendors.join(', ')}
--key      key of the service that may read domains; for Postmark the token of the account (default: the variable VENDOR_KEY, which other users
           of the machine cannot see). For SES ID:SECRET or ID:SECRET:TOKEN of a key that may call ses:ListEmailIdentities (default: also
           AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN)
--region   region of SES, such as eu-central-1 (default: AWS_REGION)
--api      scheme and host of the API, such as https://api.eu.mailgun.net (default: the usual one)
--dry-run  compares, and adds nothing
--tenant   the tenant that gets the domains (default: the default tenant)

Example: VENDOR_KEY=re_123 postrider import domains --from resend --dry-run`,
  options: {
    from: { type: 'string' },
    key: { type: 'string' },
    region: { type: 'string' },
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
    const listNames = listerOf(given, deps, vendor)
    const dryRun = given.options['dry-run'] === true
    return deps.withInstallation(async (installation) => {
      const tenant = await tenantOf(installation, text(given, 'tenant'))
      const report = await importDomains(await listNames(installation), tenant.id, dryRun, installation)
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

/** Checks the options of the service; the result asks it. */
function listerOf(given: CommandArguments, { environment }: CommandDeps, vendor: (typeof domainVendors)[number]) {
  const key = text(given, 'key') ?? environment.VENDOR_KEY ?? (vendor === 'ses' ? awsKeyOf(environment) : undefined)
  if (!key || !/^[\x21-\x7e]+$/.test(key)) throw new UsageError('give --key, or set VENDOR_KEY')
  const apiUrl = text(given, 'api')
  if (vendor !== 'ses') return (installation: Installation) => listVendorDomains({ vendor, key, apiUrl }, getOf(installation))
  const region = text(given, 'region') ?? environment.AWS_REGION
  if (!region || !/^[a-z0-9-]{1,40}$/.test(region)) throw new UsageError('give --region with a region of AWS, such as eu-central-1')
  const [accessKeyId = '', secret, sessionToken] = key.split(':')
  if (!secret) throw new UsageError('--key of SES must be ID:SECRET')
  const account = { key: { accessKeyId, secret, sessionToken }, region, apiUrl }
  return (installation: Installation) => listSesDomains(account, getOf(installation), installation.clock)
}

const getOf = (installation: Installation) => patientGet(outboundOf(installation).post.get, installation.clock)

const awsKeyOf = ({ AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token }: CommandDeps['environment']) =>
  id && secret ? [id, secret, ...(token ? [token] : [])].join(':') : undefined
