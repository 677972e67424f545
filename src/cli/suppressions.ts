/** Commands for the suppression lists of the organisation and of tenants. */
import type { Suppression } from '#client'
import { apiHelp, apiUsage, maxListed, perRequest, plain, scopeOf, tenantApiOptions, withApi } from './api.ts'
import { type Command, printed, text } from './command-definition.ts'

const ofList = '--tenant      the list of this tenant (default: the list of the organisation, which applies to every tenant)'

const line = ({ address, reason, source, createdAt, tenantId }: Suppression) =>
  `${plain(address).padEnd(40)} ${createdAt.slice(0, 10)}  ${(tenantId ?? 'all tenants').padEnd(25)}  ${source}${reason === undefined ? '' : `  ${plain(reason)}`}`

export const suppressionList: Command = {
  name: 'suppression list',
  summary: 'list suppressed addresses',
  help: `postrider suppression list [--address PART] [--tenant ID] ${apiUsage}

Lists the newest ${maxListed} suppressed addresses with date, tenant, source and reason. An address without a tenant is suppressed for all tenants.
--address     only addresses that contain this text
--tenant      only the list of this tenant (default: all lists)
${apiHelp}

Example: postrider suppression list --address example.com`,
  options: { address: { type: 'string' }, ...tenantApiOptions },
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const query = { perPage: perRequest, address: text(given, 'address'), all: text(given, 'tenant') === undefined }
      const suppressions = await scopeOf(service, given).suppressions.list(query).take(maxListed)
      printed(given, deps, { suppressions }, suppressions.map(line).join('\n') || 'no suppressed addresses')
    }),
}

export const suppressionAdd: Command = {
  name: 'suppression add',
  audited: 'unnamed',
  summary: 'suppress an address',
  help: `postrider suppression add ADDRESS [--reason TEXT] [--tenant ID] ${apiUsage}

Suppresses an address, or changes its reason. New mail to a suppressed address gets the status held and is not sent.
--reason      shown in the list
${ofList}
${apiHelp}

Example: postrider suppression add ann@example.com --reason 'asked by phone'`,
  options: { reason: { type: 'string' }, ...tenantApiOptions },
  positionals: ['ADDRESS'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const wanted = { address: given.positionals[0] as string, reason: text(given, 'reason') }
      const entry = await scopeOf(service, given).suppressions.create(wanted)
      printed(given, deps, { ...entry }, `${plain(entry.address)} is suppressed`)
    }),
}

export const suppressionRemove: Command = {
  name: 'suppression remove',
  audited: 'unnamed',
  summary: 'remove an address from the suppression list',
  help: `postrider suppression remove ADDRESS [--tenant ID] ${apiUsage}

Removes an address from the list, so that mail to it is sent again.
${ofList}
${apiHelp}

Example: postrider suppression remove ann@example.com`,
  options: tenantApiOptions,
  positionals: ['ADDRESS'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const [address = ''] = given.positionals
      await scopeOf(service, given).suppressions.delete(address)
      printed(given, deps, { address, removed: true }, `${plain(address)} is no longer suppressed`)
    }),
}
