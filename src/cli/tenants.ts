/** Commands for tenants: create, list, show, delete. */
import type { Tenant } from '#client'
import { apiHelp, apiOptions, apiUsage, maxListed, perRequest, plain, withApi } from './api.ts'
import { type Command, confirmed, needed, printed } from './command-definition.ts'

const line = ({ id, name, status, isDefault, pauseReason }: Tenant) =>
  [
    `${id}  ${plain(name)}`,
    ...(isDefault ? ['default tenant'] : []),
    ...(status === 'active' ? [] : [status]),
    ...(pauseReason === null ? [] : [`paused (${plain(pauseReason)}); to resume: postrider tenant resume ${id}`]),
  ].join(', ')

export const tenantCreate: Command = {
  name: 'tenant create',
  audited: true,
  summary: 'create a tenant',
  help: `postrider tenant create --name N ${apiUsage}

Creates a tenant: a customer with its own domains, keys, mail and suppression list.
${apiHelp}

Example: postrider tenant create --name 'Second shop'`,
  options: { name: { type: 'string' }, ...apiOptions },
  run: (given, deps) =>
    withApi(given, deps, async ({ api }) => {
      const tenant = await api.tenants.create({ name: needed(given, 'name') })
      printed(given, deps, { ...tenant }, `tenant ${tenant.id} (${plain(tenant.name)})`)
    }),
}

export const tenantList: Command = {
  name: 'tenant list',
  summary: 'list tenants and their ids',
  help: `postrider tenant list ${apiUsage}

Lists the newest ${maxListed} tenants, by name, with id. Marks the default tenant and tenants that are suspended, archived or paused.
${apiHelp}

Example: postrider tenant list --json`,
  options: apiOptions,
  run: (given, deps) =>
    withApi(given, deps, async ({ api }) => {
      const tenants = await api.tenants.list({ perPage: perRequest }).take(maxListed)
      tenants.sort((one, other) => one.name.localeCompare(other.name, 'en'))
      printed(given, deps, { tenants }, tenants.map(line).join('\n'))
    }),
}

export const tenantShow: Command = {
  name: 'tenant show',
  summary: 'show a tenant and its sending domains',
  help: `postrider tenant show ID ${apiUsage}

Prints a tenant with its status, metadata and sending domains.
${apiHelp}

Example: postrider tenant show tq3v6k2m`,
  options: apiOptions,
  positionals: ['ID'],
  run: (given, deps) =>
    withApi(given, deps, async ({ api }) => {
      const [id = ''] = given.positionals
      const [tenant, { domains }] = [await api.tenants.retrieve(id), await api.tenant(id).domains.list()]
      const metadata = Object.entries(tenant.metadata).map(([name, value]) => `  ${plain(name)}: ${plain(String(value))}`)
      const lines = [
        line(tenant),
        `created ${tenant.createdAt}`,
        `domains: ${domains.map(({ name }) => name).join(', ') || 'none'}`,
        ...(metadata.length === 0 ? [] : ['metadata:', ...metadata]),
      ]
      printed(given, deps, { ...tenant, domains }, lines.join('\n'))
    }),
}

export const tenantDelete: Command = {
  name: 'tenant delete',
  audited: true,
  summary: 'delete a tenant and its configuration',
  help: `postrider tenant delete ID [--yes] ${apiUsage}

Deletes a tenant with its domains, keys, webhooks and suppressions; its queued mail fails. Its emails and logs are kept for their retention
period. The default tenant cannot be deleted. Asks first on a terminal; elsewhere it needs --yes.
--yes         deletes without a question
${apiHelp}

Example: postrider tenant delete tq3v6k2m --yes`,
  options: { yes: { type: 'boolean' }, ...apiOptions },
  positionals: ['ID'],
  run: (given, deps) =>
    withApi(given, deps, async ({ api }) => {
      const { id, name } = await api.tenants.retrieve(given.positionals[0] as string)
      await confirmed(given, deps, `Delete tenant ${id} (${plain(name)}) with its domains, keys, webhooks and suppressions?`)
      await api.tenants.delete(id)
      printed(given, deps, { id, name, deleted: true }, `tenant ${id} (${plain(name)}) is deleted`)
    }),
}
