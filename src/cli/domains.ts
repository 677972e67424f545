/** Commands for sending domains: add, list, show, check, trust without a check, and remove, by name. */
import { readFileSync } from 'node:fs'
import { Refusal } from '#base'
import { ApiError, type Domain, type DomainsListData } from '#client'
import { zoneFile } from '#dns-updates'
import { addDomain, makeDomain, type OwnKey, trustDomain } from '#domains'
import type { Installation } from '#installation'
import { parseDomain } from '#mail'
import { simulatorDomain } from '#simulator'
import { openTenants } from '#tenants'
import { apiHelp, apiUsage, type OpenedApi, plain, scopeOf, tenantApiOptions, withApi } from './api.ts'
import { givenTenant } from './command-arguments.ts'
import { type Command, type CommandArguments, type CommandDeps, jsonOption, printed, text, UsageError } from './command-definition.ts'
import { shade } from './styles.ts'

const ofTenant = '--tenant      tenant of the domain, if several tenants have a domain of this name'

type Listed = DomainsListData['domains'][number]

const ownDomains = async (service: OpenedApi, given: CommandArguments): Promise<Listed[]> =>
  (await scopeOf(service, given).domains.list()).domains.filter(({ name }) => name !== simulatorDomain)

/** The domain of the given name, among those that the caller may see. Refuses `not_found`. */
async function domainOf(service: OpenedApi, given: CommandArguments): Promise<Listed> {
  const [name = ''] = given.positionals
  const wanted = parseDomain(name) ?? name
  const [found, ...others] = (await ownDomains(service, given)).filter((one) => one.name === wanted)
  if (!found)
    throw new Refusal('not_found', {
      message: `no sending domain ${name}`,
      suggestion: 'Run postrider domain list for all domains and their tenants',
    })
  if (others.length > 0) {
    const owners = [found, ...others].map(({ tenantId }) => tenantId).join(', ')
    throw new UsageError(`several tenants have a domain ${name}: ${owners}. Name one with --tenant ID`)
  }
  return found
}

const verdictOf = ({ verified }: Pick<Domain, 'verified'>) => (verified ? 'verified' : 'not verified')

/** A note below a list of records. */
export const unpublishable = (hostname: string) =>
  hostname.includes('.')
    ? ''
    : `\n\nThe records use "${hostname}", which is not a public host name. First set POSTRIDER_HOSTNAME to the public name of this machine.`

const noteOf = ({ installation }: OpenedApi) => (installation ? unpublishable(installation.config.hostname) : '')

const needed = ({ dnsRecords: { spf, dkim, returnPath, dkimEd25519 } }: Domain) => [spf, dkim, returnPath, dkimEd25519]

export const domainAdd: Command = {
  name: 'domain add',
  audited: true,
  summary: 'add a sending domain with its own DKIM keys',
  help: `postrider domain add NAME [--tenant ID] [--trust] [--selector S --dkim-key FILE] ${apiUsage}

Adds a sending domain and prints the DNS records to publish. Then run postrider domain verify NAME.
--tenant      tenant of the domain (default: the tenant of the key, or the default tenant)
--trust       lets the tenant use the domain without DNS verification (private networks, relays); recorded as trusted. On this machine only
--selector    selector of an RSA key that is published already; with --dkim-key, so that no DNS record of DKIM changes. On this machine only
--dkim-key    file with that private key, in PEM form
${apiHelp}

Example: postrider domain add news.example.com`,
  options: { ...tenantApiOptions, trust: { type: 'boolean' }, selector: { type: 'string' }, 'dkim-key': { type: 'string' } },
  positionals: ['NAME'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const isTrusted = given.options.trust === true
      if (isTrusted) refuseRemote(service, '--trust')
      const [name = ''] = given.positionals
      const ownKey = ownKeyOf(given)
      if (ownKey) refuseRemote(service, '--dkim-key')
      const { domains } = scopeOf(service, given)
      const creating = ownKey ? withOwnKey(service, given, { name, ownKey }) : domains.create({ name })
      const made = await creating.catch((error: unknown) => {
        throw error instanceof ApiError && error.code === 'domain_already_exists' ? hasIt(error, name, isTrusted) : error
      })
      const domain = isTrusted ? await trusted(service, made) : made
      const lines = needed(domain).map((one) => `  ${one.type.padEnd(6)}${one.fullName}\n        ${one.value}`)
      const title = `domain ${domain.name} (${domain.id}) of tenant ${domain.tenantId}${isTrusted ? ', trusted: ready to use' : ''}`
      printed(
        given,
        deps,
        { ...domain },
        `${title}\n\nRecords to publish:\n${lines.join('\n')}${noteOf(service)}${isTrusted ? '' : `\n\nThen run: postrider domain verify ${domain.name}`}`,
      )
    }),
}

const hasIt = ({ message }: ApiError, name: string, isTrusted: boolean) =>
  new Refusal('domain_already_exists', {
    message,
    suggestion: isTrusted
      ? `To use it without DNS verification: postrider domain trust ${name}`
      : `To check DNS: postrider domain verify ${name}`,
  })

/** Only the operator of the machine vouches for a domain: the API cannot. */
function refuseRemote({ installation }: OpenedApi, what: string): void {
  if (!installation) throw new UsageError(`${what} works only on the machine of the installation, without --url`)
}

function ownKeyOf(given: CommandArguments): OwnKey | undefined {
  const [selector, file] = [text(given, 'selector'), text(given, 'dkim-key')]
  if (selector === undefined && file === undefined) return undefined
  if (selector === undefined || file === undefined) throw new UsageError('--selector and --dkim-key belong together')
  return { selector, privateKey: readFileSync(file, 'utf8') }
}

/** A private key does not go through the API. */
async function withOwnKey(
  { api, installation }: OpenedApi,
  given: CommandArguments,
  { name, ownKey }: { name: string; ownKey: OwnKey },
): Promise<Domain> {
  const { db, clock, ids, secrets } = installation as Installation
  const tenantId = (await givenTenant(given, installation as Installation)) ?? (await openTenants({ db, clock }).default()).id
  const made = await makeDomain({ tenantId, name, trusted: false, ownKey }, { nowMs: clock.nowMs(), ids, secrets })
  const { id } = await db.transaction((tx) => addDomain(tx, made))
  return api.domains.retrieve(String(id))
}

/** Trusts the domain, and returns its new record. */
async function trusted({ api, installation }: OpenedApi, { id, tenantId }: Pick<Listed, 'id' | 'tenantId'>): Promise<Domain> {
  if (installation) await trustDomain(installation.db, { id, tenantId }, installation.clock.nowMs())
  return api.domains.retrieve(id)
}

export const domainTrust: Command = {
  name: 'domain trust',
  audited: true,
  summary: 'allow a sending domain without DNS verification',
  help: `postrider domain trust NAME [--tenant ID] [--json]

Marks an existing domain as trusted, as postrider domain add --trust does: its tenant can send from it without DNS verification. For
private networks, relays and tests; receivers on the internet still check SPF and DKIM. Takes effect within one second. To undo, remove
the domain and add it again.
${ofTenant}

Example: postrider domain trust intranet.example`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  positionals: ['NAME'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      refuseRemote(service, 'domain trust')
      const domain = await trusted(service, await domainOf(service, given))
      printed(given, deps, { ...domain }, `domain ${domain.name} (${domain.id}) is trusted: ready to use`)
    }),
}

export const domainList: Command = {
  name: 'domain list',
  summary: 'list sending domains and their verification status',
  help: `postrider domain list [--tenant ID] ${apiUsage}

Lists the sending domains of all tenants, or of one. A trusted domain is always verified. To see missing DNS records: postrider domain
verify NAME.
${apiHelp}

Example: postrider domain list --url https://mail.example.com`,
  options: tenantApiOptions,
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const domains = await ownDomains(service, given)
      const lines = domains.map((one) => `${String(one.id).padEnd(12)}${one.name}  ${shade(verdictOf(one))}, tenant ${one.tenantId}`)
      printed(given, deps, { domains }, lines.join('\n') || 'no sending domains. To add one: postrider domain add NAME')
    }),
}

const state: Record<string, string> = { OK: 'OK', Missing: 'missing', Invalid: 'wrong', null: 'lookup failed' }

function recordLine({ type, fullName, value, status, found, problem }: Domain['dnsRecords']['spf'], isChecked: boolean): string {
  const statusText = isChecked || status !== null ? ` ${shade(state[String(status)] ?? '')}${problem ? `: ${plain(problem)}` : ''}` : ''
  return [
    `  ${type.padEnd(6)}${fullName}${statusText}`,
    ...(status === 'OK' ? [] : [`        publish ${value}`]),
    ...(status !== 'OK' && found.length > 0 ? [`        found   ${found.map(plain).join('\n                ')}`] : []),
  ].join('\n')
}

const minKeyBits = 2048

/** The remarks on its DKIM keys: a weak one, the next ones, and the CNAME records that it may have. */
function keyLines({ name, dkimKeys: { bits, delegated, aliases, next } }: Domain): string[] {
  const weak = `\nThe DKIM key has ${bits} bits: receivers distrust less than ${minKeyBits}. Replace it: postrider dkim rotate ${name}`
  const offered = '\nInstead of the TXT records of DKIM, these CNAME records let keys rotate without a change of yours:'
  return [
    ...(bits < minKeyBits ? [weak] : []),
    ...(next && !delegated ? [`\nNew DKIM keys wait for their records: postrider dkim show ${name}`] : []),
    ...(aliases.length > 0 && !delegated
      ? [offered, ...aliases.map((one) => `  ${one.type.padEnd(6)}${one.fullName}\n        ${one.value}`)]
      : []),
  ]
}

function shown(given: CommandArguments, deps: CommandDeps, service: OpenedApi, domain: Domain): void {
  const isChecked = domain.dnsCheckedAt !== null
  const verdict = domain.trusted ? `${shade('trusted')}, regardless of DNS` : shade(verdictOf(domain))
  const checked = isChecked ? `DNS checked ${domain.dnsCheckedAt}` : 'DNS not checked yet'
  const title = `domain ${domain.name} (${domain.id}) of tenant ${domain.tenantId} is ${verdict}; ${checked}`
  const lines = [...needed(domain).map((one) => recordLine(one, isChecked)), ...keyLines(domain)]
  printed(given, deps, { ...domain }, `${title}\n\n${lines.join('\n')}${noteOf(service)}`)
}

/** With CNAME records where they are offered, which stand in place of the TXT records of DKIM. MX is left out: its value is an example. */
function zoneOf({ dnsRecords, dkimKeys }: Domain): string {
  const { zone, spf, dkim, returnPath, dkimEd25519, dmarc } = dnsRecords
  const keys = dkimKeys.aliases.length > 0 ? dkimKeys.aliases : [dkim, dkimEd25519, ...(dkimKeys.next?.records ?? [])]
  const records = [spf, ...keys, returnPath, dmarc].map(({ type, fullName, value }) => ({ type, name: fullName, value }))
  return zoneFile(zone, records).trimEnd()
}

export const domainShow: Command = {
  name: 'domain show',
  summary: 'show a sending domain and its DNS records',
  help: `postrider domain show NAME [--tenant ID] [--zone-file] ${apiUsage}

Prints a domain with the DNS records to publish and the result of the last check. To check now: postrider domain verify NAME.
${ofTenant}
--zone-file   prints the records as a zone file, with names relative to the zone, for import at a DNS provider
${apiHelp}

Example: postrider domain show news.example.com`,
  options: { ...tenantApiOptions, 'zone-file': { type: 'boolean' } },
  positionals: ['NAME'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const { id, tenantId } = await domainOf(service, given)
      const domain = await service.api.domains.retrieve(id, { tenantId })
      if (given.options['zone-file'] === true) deps.print(zoneOf(domain))
      else shown(given, deps, service, domain)
    }),
}

export const domainVerify: Command = {
  name: 'domain verify',
  audited: true,
  summary: 'check the DNS records of a sending domain now',
  help: `postrider domain verify NAME [--tenant ID] ${apiUsage}

Looks up the records of a domain and reports each as OK, missing or wrong. Takes up to ten seconds. A verified domain that fails this
check is no longer verified. The exit code is 1 while the tenant cannot send from the domain.
${ofTenant}
${apiHelp}
In the background, Postrider checks DNS every 10 minutes for the first week.

Example: postrider domain verify news.example.com`,
  options: tenantApiOptions,
  positionals: ['NAME'],
  async run(given, deps) {
    const { verified } = await withApi(given, deps, async (service) => {
      const { id, tenantId } = await domainOf(service, given)
      const domain = await service.api.domains.verify(id, { tenantId })
      shown(given, deps, service, domain)
      return domain
    })
    if (!verified) throw new Error('the tenant cannot send from this domain')
  },
}

export const domainRemove: Command = {
  name: 'domain remove',
  audited: true,
  summary: 'remove a sending domain and its DKIM keys',
  help: `postrider domain remove NAME [--tenant ID] ${apiUsage}

Removes a domain from its tenant, with its DKIM keys and its track domains. Queued mail from the domain fails within seconds, so let the
queue drain first (postrider queue). A domain that is added again gets new keys, and you must publish their records.
${ofTenant}
${apiHelp}

Example: postrider domain remove news.example.com`,
  options: tenantApiOptions,
  positionals: ['NAME'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const { id, name, tenantId } = await domainOf(service, given)
      await service.api.domains.delete(id, { tenantId })
      printed(given, deps, { id, name, tenantId }, `domain ${name} removed`)
    }),
}
