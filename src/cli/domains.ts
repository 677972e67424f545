/** Commands for sending domains: add, check, trust without a check, and remove, by name. */
import { Refusal } from '#base'
import { deleteDomain } from '#delivery'
import { addDomain, type DnsRecord, type Domain, makeDomain, openDomainService, openDomains, recordsOf, trustDomain } from '#domains'
import type { Installation } from '#installation'
import { parseDomain } from '#mail'
import { openResolver } from '#net'
import { openTenants } from '#tenants'
import { type Command, type CommandArguments, jsonOption, printed, tenantOf, text } from './command-definition.ts'

const ofTenant = { tenant: { type: 'string' }, ...jsonOption } as const

/** The domain of that name, of the given or the default tenant. */
async function domainOf(given: CommandArguments, installation: Installation): Promise<Domain> {
  const tenant = await tenantOf(installation, text(given, 'tenant'))
  const name = given.positionals[0] as string
  const domain = await openDomains(installation).find(tenant.id, parseDomain(name) ?? name)
  if (!domain || domain.testOnly)
    throw new Refusal('not_found', {
      message: `tenant ${tenant.id} has no sending domain ${name}`,
      suggestion: 'Run postrider domain list for all domains and their tenants. Use --tenant ID for another tenant',
    })
  return domain
}

export const shownDomain = ({ id, uuid, name, tenantId, verified, verifiedAt, trusted, createdAt }: Domain) => ({
  id,
  uuid,
  name,
  tenantId,
  verified,
  verifiedAt,
  trusted,
  createdAt,
})

/** A note below a list of records. */
export const unpublishable = (hostname: string) =>
  hostname.includes('.')
    ? ''
    : `\n\nThe records use "${hostname}", which is not a public host name. First set POSTRIDER_HOSTNAME to the public name of this machine.`

export const domainAdd: Command = {
  name: 'domain add',
  audited: true,
  summary: 'add a sending domain with its own DKIM keys',
  help: `postrider domain add NAME [--tenant ID] [--trust] [--json]

Adds a sending domain and prints the DNS records to publish. Then run postrider domain verify NAME.
--tenant  tenant of the domain (default: the default tenant)
--trust   lets the tenant use the domain without DNS verification (private networks, relays); recorded as trusted`,
  options: { ...ofTenant, trust: { type: 'boolean' } },
  positionals: ['NAME'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const tenant = await tenantOf(installation, text(given, 'tenant'))
      const wanted = { tenantId: tenant.id, name: given.positionals[0] as string, trusted: given.options.trust === true }
      const made = await makeDomain(wanted, { nowMs: installation.clock.nowMs(), ids: installation.ids, secrets: installation.secrets })
      const domain = await installation.db
        .transaction((tx) => addDomain(tx, made))
        .catch((error: unknown) => {
          throw error instanceof Refusal && error.code === 'domain_already_exists' ? hasIt(error, wanted) : error
        })
      const records = recordsOf(domain, installation.config.hostname)
      const { id, name, trusted } = domain
      const lines = [records.spf, records.dkim, records.returnPath, records.dkimEd25519].map(
        (one) => `  ${one.type.padEnd(6)}${one.fullName}\n        ${one.value}`,
      )
      printed(
        given,
        deps,
        { ...shownDomain(domain), dnsRecords: records },
        `domain ${name} (${id}) of tenant ${tenant.id}${trusted ? ', trusted: ready to use' : ''}\n\nRecords to publish:\n${lines.join('\n')}${unpublishable(installation.config.hostname)}`,
      )
    }),
}

const hasIt = (refusal: Refusal, { name, trusted }: { name: string; trusted: boolean }) =>
  new Refusal(refusal.code, {
    message: refusal.message,
    suggestion: trusted
      ? `To use it without DNS verification: postrider domain trust ${name}`
      : `To check DNS: postrider domain verify ${name}`,
  })

export const domainTrust: Command = {
  name: 'domain trust',
  audited: true,
  summary: 'allow a sending domain without DNS verification',
  help: `postrider domain trust NAME [--tenant ID] [--json]

Marks an existing domain as trusted, as postrider domain add --trust does: its tenant can send from it without DNS verification. For
private networks, relays and tests; receivers on the internet still check SPF and DKIM. Takes effect within one second. To undo, remove
the domain and add it again.
--tenant  tenant of the domain (default: the default tenant)`,
  options: ofTenant,
  positionals: ['NAME'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const domain = await trustDomain(installation.db, await domainOf(given, installation), installation.clock.nowMs())
      printed(given, deps, shownDomain(domain), `domain ${domain.name} (${domain.id}) is trusted: ready to use`)
    }),
}

const state: Record<string, string> = { OK: 'OK', Missing: 'missing', Invalid: 'wrong', null: 'lookup failed' }

const recordLine = ({ type, fullName, value, status, found, problem }: DnsRecord) =>
  [
    `  ${type.padEnd(6)}${fullName} ${state[String(status)]}${problem ? `: ${problem}` : ''}`,
    ...(status === 'OK' ? [] : [`        publish ${value}`]),
    ...(status !== 'OK' && found?.length ? [`        found   ${found.join('\n                ')}`] : []),
  ].join('\n')

export const domainVerify: Command = {
  name: 'domain verify',
  audited: true,
  summary: 'check the DNS records of a sending domain now',
  help: `postrider domain verify NAME [--tenant ID] [--json]

Looks up the records of a domain and reports each as OK, missing or wrong. Takes up to ten seconds. A verified domain that fails this
check is no longer verified. The exit code is 1 while the tenant cannot send from the domain.
--tenant  tenant of the domain (default: the default tenant)
Same as POST /v1/domains/ID/verify. In the background, Postrider checks DNS every 10 minutes for the first week.`,
  options: ofTenant,
  positionals: ['NAME'],
  async run(given, deps) {
    const verified = await deps.withInstallation(async (installation) => {
      const { id, tenantId } = await domainOf(given, installation)
      const { config, clock, ids } = installation
      const resolver = openResolver({ servers: config.resolvers, clock, ids })
      const domains = openDomainService({ ...installation, tenants: openTenants(installation), resolver, hostname: config.hostname })
      const domain = await domains.verify(String(id), tenantId)
      const { spf, dkim, returnPath, dkimEd25519 } = domain.dnsRecords
      const verdict = domain.trusted ? 'trusted, regardless of DNS' : domain.verified ? 'verified' : 'not verified'
      printed(
        given,
        deps,
        { ...shownDomain(domain), dnsRecords: domain.dnsRecords },
        `domain ${domain.name} (${id}) is ${verdict}\n\n${[spf, dkim, returnPath, dkimEd25519].map(recordLine).join('\n')}${unpublishable(config.hostname)}`,
      )
      return domain.verified
    })
    if (!verified) throw new Error('the tenant cannot send from this domain')
  },
}

export const domainRemove: Command = {
  name: 'domain remove',
  audited: true,
  summary: 'remove a sending domain and its DKIM keys',
  help: `postrider domain remove NAME [--tenant ID] [--json]

Removes a domain from its tenant, with its DKIM keys and its track domains. Queued mail from the domain fails within seconds, so let the
queue drain first (postrider queue). A domain that is added again gets new keys, and you must publish their records.
--tenant  tenant of the domain (default: the default tenant)`,
  options: ofTenant,
  positionals: ['NAME'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const domain = await domainOf(given, installation)
      await deleteDomain(installation.db, domain, installation.clock.nowMs())
      printed(given, deps, { id: domain.id, name: domain.name, tenantId: domain.tenantId }, `domain ${domain.name} removed`)
    }),
}
