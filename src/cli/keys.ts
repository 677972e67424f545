/** Commands for API keys: create, update, list, revoke. */
import { keyFormats, permissions } from '#credentials'
import { apiHelp, apiUsage, maxListed, perRequest, scopeOf, tenantApiOptions, withApi } from './api.ts'
import { type Command, needed, printed, text, UsageError } from './command-definition.ts'
import { boundsHelp, boundsIn, boundsOptions, boundsShownOf, boundsUsage, shownBounds } from './key-bounds.ts'

const types: readonly string[] = ['live', 'test', 'smtp']
const kindOf = (type: string) =>
  type === 'smtp' ? ({ type: 'smtp' } as const) : ({ type: 'api', mode: type === 'test' ? 'test' : 'live' } as const)

export const keyCreate: Command = {
  name: 'key create',
  audited: true,
  summary: 'create an API key or SMTP login and print it once',
  help: `postrider key create --type live|test|smtp [--format ses] [--tenant ID] [--permissions a,b] [--name N]
                     ${boundsUsage}
                     ${apiUsage}

Creates an API key, or with --type smtp the SMTP login of a tenant (--tenant), and prints it once. Without --tenant, the key belongs to the organisation;
without --permissions, it has full access.
--format ses  an access key id and a secret, with which the SDKs of Amazon SES sign requests (default: postrider)
Permissions: ${permissions.join(', ')}
${boundsHelp}
${apiHelp}

Example: postrider key create --type live --name shop --permissions emails:send --domain example.com --expires 90d`,
  options: {
    type: { type: 'string' },
    format: { type: 'string' },
    permissions: { type: 'string' },
    name: { type: 'string' },
    ...boundsOptions,
    ...tenantApiOptions,
  },
  values: { type: types, format: keyFormats, permissions },
  run(given, deps) {
    const type = needed(given, 'type')
    if (!types.includes(type)) throw new UsageError(`--type must be one of ${types.join(', ')}`)
    const format = keyFormats.find((one) => one === (text(given, 'format') ?? 'postrider'))
    if (!format) throw new UsageError(`--format must be one of ${keyFormats.join(', ')}`)
    if (format === 'ses' && type === 'smtp') throw new UsageError('--format ses needs --type live or test')
    const words = text(given, 'permissions')
      ?.split(',')
      .map((one) => one.trim())
    const wanted = words?.map((word) => {
      const known = permissions.find((one) => one === word)
      if (known === undefined) throw new UsageError(`--permissions: "${word}" is not one of ${permissions.join(', ')}`)
      return known
    })
    const bounds = boundsIn(given, deps)
    return withApi(given, deps, async (service) => {
      const settings = {
        ...kindOf(type),
        ...(format === 'ses' ? { format } : {}),
        name: text(given, 'name') ?? `${type}-key`,
        permissions: wanted ?? null,
        ...bounds,
      }
      const created = await scopeOf(service, given).credentials.create(settings)
      const { id, key, smtpUsername, accessKeyId, tenantId, permissions: allowed } = created
      const names = { ...(smtpUsername === undefined ? {} : { smtpUsername }), ...(accessKeyId === undefined ? {} : { accessKeyId }) }
      const record = { id, key, ...names, type, tenantId, permissions: allowed, ...boundsShownOf(created) }
      const lines =
        smtpUsername !== undefined
          ? `user name  ${smtpUsername}\npassword   ${key}`
          : accessKeyId !== undefined
            ? `access key id      ${accessKeyId}\nsecret access key  ${key}`
            : `${key}`
      printed(given, deps, record, `${lines}\n\nStore this key now: it is shown only once.`)
    })
  },
}

const kindShown = ({ type, mode, accessKeyId }: { type: string; mode: string; accessKeyId?: string | undefined }) =>
  type === 'smtp' ? 'SMTP login' : accessKeyId === undefined ? `${mode} key` : `${mode} key for SES ${accessKeyId}`

export const keyList: Command = {
  name: 'key list',
  summary: 'list API keys and SMTP logins, without secrets',
  help: `postrider key list [--tenant ID] ${apiUsage}

Lists the newest ${maxListed} keys of the organisation, or of one tenant, with id, last four characters, permissions, bounds and last use.
${apiHelp}

Example: postrider key list --json`,
  options: tenantApiOptions,
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const keys = await scopeOf(service, given).credentials.list({ perPage: perRequest, keyEnd: true }).take(maxListed)
      const lines = keys.map(({ id, name, type, mode, hold, permissions, keyEnd, lastUsedAt, accessKeyId, ...key }) =>
        [
          `${String(id).padEnd(12)}${name}  ${kindShown({ type, mode, accessKeyId })}${keyEnd === undefined ? '' : ` …${keyEnd}`}`,
          permissions === null ? 'full access' : permissions.join(' '),
          ...shownBounds(key),
          ...(hold ? ['on hold'] : []),
          lastUsedAt === null ? 'never used' : `last used ${lastUsedAt.slice(0, 16)}Z`,
        ].join(', '),
      )
      const owner = text(given, 'tenant') === undefined ? 'the organisation' : 'this tenant'
      printed(given, deps, { keys }, lines.join('\n') || `${owner} has no keys. To create one: postrider key create --type live`)
    }),
}

export const keyUpdate: Command = {
  name: 'key update',
  audited: true,
  summary: 'change the bounds of an API key or SMTP login',
  help: `postrider key update ID ${boundsUsage} [--tenant ID]
                     ${apiUsage}

Changes the given bounds of a key and keeps the rest. The word "none" removes a bound; --domain none or --from none removes both kinds of senders.
${boundsHelp}
--tenant           tenant of the key (default: any)
${apiHelp}

Example: postrider key update 17 --expires none --send-limit 200`,
  options: { ...boundsOptions, ...tenantApiOptions },
  positionals: ['ID'],
  run(given, deps) {
    const bounds = boundsIn(given, deps)
    if (Object.keys(bounds).length === 0)
      throw new UsageError('give at least one of --domain, --from, --network, --expires and --send-limit')
    return withApi(given, deps, async (service) => {
      const [id = ''] = given.positionals
      const changed = boundsShownOf(await scopeOf(service, given).credentials.update(id, bounds))
      printed(given, deps, { id: Number(id), ...changed }, `key ${id}: ${shownBounds(changed).join(', ') || 'no bounds'}`)
    })
  },
}

export const keyRevoke: Command = {
  name: 'key revoke',
  audited: true,
  summary: 'revoke an API key or SMTP login',
  help: `postrider key revoke ID [--tenant ID] ${apiUsage}

Revokes a key: requests with it are refused within a second. A revoked key cannot be used again. postrider key list prints the ids.
--tenant      tenant of the key (default: any)
${apiHelp}

Example: postrider key revoke 17`,
  options: tenantApiOptions,
  positionals: ['ID'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const [id = ''] = given.positionals
      await scopeOf(service, given).credentials.delete(id)
      printed(given, deps, { id: Number(id), revoked: true }, `key ${id} is revoked`)
    }),
}
