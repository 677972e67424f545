/** Commands that list records, for the ids that other commands need. */
import { listCredentials } from '#credentials'
import { listDomains } from '#domains'
import { listLimits } from '#limits'
import { listPauses, listTenantsByName } from '#tenants'
import { listWebhooks, organisationWide } from '#webhooks'
import { type Command, givenTenant, jsonOption, printed } from './command-definition.ts'
import { shownDomain } from './domains.ts'

const maxShown = 1000

export const tenantList: Command = {
  name: 'tenant list',
  summary: 'the tenants with their ids',
  help: `postrider tenant list [--json]

The first ${maxShown} by name, each with its id, which is the default one, and which is suspended, archived or paused.`,
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async ({ db }) => {
      const [listed, pauses] = await Promise.all([listTenantsByName(db, undefined, undefined, maxShown), listPauses(db)])
      const tenants = listed.map((one) => ({
        id: one.id,
        name: one.name,
        status: one.status,
        isDefault: one.isDefault,
        pauseReason: pauses.get(one.id) ?? null,
        createdAt: one.createdAt,
      }))
      const lines = tenants.map(({ id, name, status, isDefault, pauseReason }) =>
        [
          `${id}  ${name}`,
          ...(isDefault ? ['the default tenant'] : []),
          ...(status === 'active' ? [] : [status]),
          ...(pauseReason === null ? [] : [`paused (${pauseReason}); postrider tenant resume ${id} lets its mail go`]),
        ].join(', '),
      )
      printed(given, deps, { tenants }, lines.join('\n'))
    }),
}

export const domainList: Command = {
  name: 'domain list',
  summary: 'the sending domains, and which may be sent from',
  help: `postrider domain list [--tenant ID] [--json]

Of all tenants, or of one. What DNS lacks for one that is not verified: GET /v1/domains/ID, or the dashboard.`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const scope = (await givenTenant(given, installation)) ?? null
      const listed = (await listDomains(installation.db, scope)).filter(({ testOnly }) => !testOnly)
      const domains = listed.map(shownDomain)
      const lines = domains.map(
        ({ id, name, tenantId, verified, trusted }) =>
          `${String(id).padEnd(12)}${name}  ${trusted ? 'trusted' : verified ? 'verified' : 'not verified'}, of ${tenantId}`,
      )
      printed(given, deps, { domains }, lines.join('\n') || 'there are no sending domains: postrider domain add NAME')
    }),
}

export const keyList: Command = {
  name: 'key list',
  summary: 'the API keys and SMTP logins, without their secrets',
  help: `postrider key list [--tenant ID] [--json]

Those of the organisation, or of one tenant: the newest ${maxShown}, each with its id, what it may do, and when it was last used.`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const tenantId = (await givenTenant(given, installation)) ?? null
      const { credentials } = await listCredentials(installation.db, { tenantId }, { number: 1, size: maxShown })
      const lines = credentials.map(({ id, name, type, mode, hold, permissions, lastUsedAt }) =>
        [
          `${String(id).padEnd(12)}${name}  ${type === 'smtp' ? 'SMTP login' : `${mode} key`}`,
          permissions === null ? 'full access' : permissions.join(' '),
          ...(hold ? ['on hold'] : []),
          lastUsedAt === null ? 'never used' : `last used ${lastUsedAt.toISOString().slice(0, 16)}Z`,
        ].join(', '),
      )
      const whose = tenantId === null ? 'the organisation' : 'this tenant'
      printed(given, deps, { keys: credentials }, lines.join('\n') || `${whose} has none: postrider key create --type live`)
    }),
}

export const limitsList: Command = {
  name: 'limits list',
  summary: 'the limits that were set, beside those of the environment',
  help: `postrider limits list [--json]

What postrider limits set and the dashboard have set: of the organisation, of tenants, of keys. For what is not listed
POSTRIDER_RATE_LIMIT and POSTRIDER_SEND_LIMIT of the service hold.`,
  options: { ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async ({ db }) => {
      const limits = await listLimits(db)
      const lines = limits.map(({ scope, ratePerSecond, sendPerHour }) =>
        [
          scope.replace(':', ' ').padEnd(28),
          ...(ratePerSecond === null ? [] : [`${ratePerSecond} requests per second`]),
          ...(sendPerHour === null ? [] : [`${sendPerHour} emails per hour`]),
        ].join('  '),
      )
      printed(given, deps, { limits }, lines.join('\n') || 'none were set: POSTRIDER_RATE_LIMIT and POSTRIDER_SEND_LIMIT hold')
    }),
}

export const webhookList: Command = {
  name: 'webhook list',
  summary: 'the webhooks, and which are disabled',
  help: `postrider webhook list [--tenant ID] [--json]

Those of the organisation, or of one tenant, without their secrets. How they do: GET /v1/webhooks, or the dashboard.`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const tenantId = (await givenTenant(given, installation)) ?? null
      const listed = await listWebhooks(installation.db, tenantId ?? organisationWide)
      const webhooks = listed.map(({ id, uuid, name, url, events, allEvents, enabled, disabledAt, disabledReason }) => ({
        id,
        uuid,
        name,
        tenantId,
        url,
        events,
        allEvents,
        enabled,
        disabledAt,
        disabledReason,
      }))
      const lines = webhooks.map(({ id, name, url, events, allEvents, enabled, disabledReason }) =>
        [
          `${String(id).padEnd(12)}${name}  ${url}`,
          allEvents ? 'all events' : events.join(' '),
          ...(enabled ? [] : [disabledReason === 'endpoint_gone' ? 'disabled, for it answered 410 Gone' : 'disabled']),
        ].join(', '),
      )
      const whose = tenantId === null ? 'the organisation' : 'this tenant'
      printed(given, deps, { webhooks }, lines.join('\n') || `${whose} has none: POST /v1/webhooks, or the dashboard`)
    }),
}
