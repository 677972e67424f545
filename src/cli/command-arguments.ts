/** Arguments that several commands take: domains and tenants. */
import { Refusal } from '#base'
import type { Installation } from '#installation'
import { parseDomain } from '#mail'
import { openTenants, type Tenant } from '#tenants'
import { type CommandArguments, text, UsageError } from './command-definition.ts'

/** A domain in A-labels; refuses other text. `name`: the option or argument. */
export function domainIn(text: string, name: string): string {
  const domain = parseDomain(text)
  if (domain === undefined) throw new UsageError(`${name}: "${text}" is not a domain`)
  return domain
}

/** The tenant with this id, or the default tenant; refuses `not_found`. */
export async function tenantOf(installation: Installation, id: string | undefined): Promise<Tenant> {
  const tenants = openTenants(installation)
  const tenant = id === undefined ? await tenants.default() : await tenants.find(id)
  if (!tenant) throw new Refusal('not_found', { message: `no such tenant: ${id}`, suggestion: 'Run postrider tenant list for all ids' })
  return tenant
}

/** The id from --tenant, of an existing tenant; undefined without the option. */
export async function givenTenant(given: CommandArguments, installation: Installation): Promise<string | undefined> {
  const id = text(given, 'tenant')
  return id === undefined ? undefined : (await tenantOf(installation, id)).id
}
