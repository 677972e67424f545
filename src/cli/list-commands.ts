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
  summary: 'list tenants and their ids',
  help: `postrider tenant list [--json]

Lists the first ${maxShown} tenants by name, with id. Marks the default tenant and tenants that are suspended, archived or paused.`,
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
          ...(isDefault ? ['default tenant'] : []),
          ...(status === 'active' ? [] : [status]),
          ...(pauseReason === null ? [] : [`paused (${pauseReason}); to resume: postrider tenant resume ${id}`]),
        ].join(', '),
      )
      printed(given, deps, { tenants }, lines.join('\n'))
    }),
}

export const domainList: Command = {
  name: 'domain list',
  summary: 'list sending domains and their verification status',
  help: `postrider domain list [--tenant ID] [--json]

Lists the sending domains of all tenants, or of one. To see missing DNS records: postrider domain verify NAME.`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const scope = (await givenTenant(given, installation)) ?? null
      const listed = (await listDomains(installation.db, scope)).filter(({ testOnly }) => !testOnly)
      const domains = listed.map(shownDomain)
      const lines = domains.map(
        ({ id, name, tenantId, verified, trusted }) =>
          `${String(id).padEnd(12)}${name}  ${trusted ? 'trusted' : verified ? 'verified' : 'not verified'}, tenant ${tenantId}`,
      )
      printed(given, deps, { domains }, lines.join('\n') || 'no sending domains. To add one: postrider domain add NAME')
    }),
}

export const keyList: Command = {
  name: 'key list',
  summary: 'list API keys and SMTP logins, without secrets',
  help: `postrider key list [--tenant ID] [--json]

Lists the newest ${maxShown} keys of the organisation, or of one tenant, with id, permissions and last use.`,
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
      printed(
        given,
        deps,
        { keys: credentials },
        lines.join('\n') || `${whose} has no keys. To create one: postrider key create --type live`,
      )
    }),
}

export const limitsList: Command = {
  name: 'limits list',
  summary: 'list limits that override those of the environment',
  help: `postrider limits list [--json]

Lists the limits of the organisation, of tenants and of keys set by postrider limits set or the dashboard. All others have the defaults
POSTRIDER_RATE_LIMIT and POSTRIDER_SEND_LIMIT.`,
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
      printed(given, deps, { limits }, lines.join('\n') || 'no limits set: POSTRIDER_RATE_LIMIT and POSTRIDER_SEND_LIMIT apply')
    }),
}

export const webhookList: Command = {
  name: 'webhook list',
  summary: 'list webhooks and their status',
  help: `postrider webhook list [--tenant ID] [--json]

Lists the webhooks of the organisation, or of one tenant, without secrets. For their deliveries use the dashboard or GET /v1/webhooks.`,
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
          ...(enabled ? [] : [disabledReason === 'endpoint_gone' ? 'disabled: returned 410 Gone' : 'disabled']),
        ].join(', '),
      )
      const whose = tenantId === null ? 'the organisation' : 'this tenant'
      printed(
        given,
        deps,
        { webhooks },
        lines.join('\n') || `${whose} has no webhooks. To add one: POST /v1/webhooks, or use the dashboard`,
      )
    }),
}
