/** Commands for routes, which receive mail: list, add, update, remove. */
import type { Postrider } from '#client'
import { apiHelp, apiUsage, maxListed, perRequest, plain, scopeOf, tenantApiOptions, withApi } from './api.ts'
import { type Command, type CommandArguments, printed, text, UsageError } from './command-definition.ts'

export const routeList: Command = {
  name: 'route list',
  summary: 'list the addresses at which a tenant receives mail',
  help: `postrider route list [--tenant ID] ${apiUsage}

Lists the routes of a tenant (default: the default tenant) by domain and address.
${apiHelp}

Example: postrider route list`,
  options: tenantApiOptions,
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const routes = await scopeOf(service, given).routes.list({ perPage: perRequest }).take(maxListed)
      const lines = routes.map(
        ({ id, address, forwardTo, enabled, replies }) =>
          `${plain(address).padEnd(40)} ${id}${forwardTo === null ? '' : `  to ${plain(forwardTo)}`}${replies ? '  replies' : ''}${enabled ? '' : '  disabled'}`,
      )
      printed(given, deps, { routes }, lines.join('\n') || 'no routes. To receive mail: postrider route add help@mail.example.com')
    }),
}

export const routeAdd: Command = {
  name: 'route add',
  audited: 'unnamed',
  summary: 'receive mail for an address of a verified domain',
  help: `postrider route add ADDRESS [--forward ADDRESS] [--replies] [--tenant ID] ${apiUsage}

Receives mail for an address: stores it, and sends the event MessageReceived to webhooks that name it.
A * stands for any text: orders+*@mail.example.com, or *@mail.example.com for every address of the domain.
--forward     also sends every message to this address
--replies     receives only replies to emails that are sent with the id of the route as replyRouteId
${apiHelp}

Examples: postrider route add help@mail.example.com
          postrider route add 'reply-*@mail.example.com' --replies`,
  options: { forward: { type: 'string' }, replies: { type: 'boolean' }, ...tenantApiOptions },
  positionals: ['ADDRESS'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const [address = ''] = given.positionals
      const forwardTo = text(given, 'forward')
      const wanted = {
        address,
        ...(forwardTo === undefined ? {} : { forwardTo }),
        ...(given.options.replies === true ? { replies: true } : {}),
      }
      const made = await scopeOf(service, given).routes.create(wanted)
      const record = `publish this MX record at ${made.mx.fullName}, if it is not there yet: ${made.mx.value}`
      printed(given, deps, { ...made }, `${plain(made.address)} receives mail (${made.id})\n${record}`)
    }),
}

/** The route of an address, or with an id. */
async function routeOf(routes: Pick<Postrider['routes'], 'list'>, wanted: string) {
  const known = await routes.list({ perPage: perRequest }).take(maxListed)
  const found = known.find(({ id, address }) => id === wanted || address === wanted.toLowerCase())
  if (!found) throw new UsageError(`no such route: ${plain(wanted)}. Compare with the list: postrider route list`)
  return found
}

/** The changes that the options name. */
function changesOf(given: CommandArguments): { forwardTo?: string | null; enabled?: boolean } {
  const { 'no-forward': stops, enable, disable } = given.options
  const forwardTo = text(given, 'forward')
  if (forwardTo !== undefined && stops === true) throw new UsageError('give --forward or --no-forward, not both')
  if (enable === true && disable === true) throw new UsageError('give --enable or --disable, not both')
  const changes = {
    ...(forwardTo === undefined ? {} : { forwardTo }),
    ...(stops === true ? { forwardTo: null } : {}),
    ...(enable === true || disable === true ? { enabled: enable === true } : {}),
  }
  if (Object.keys(changes).length === 0) throw new UsageError('give --forward, --no-forward, --enable or --disable')
  return changes
}

export const routeUpdate: Command = {
  name: 'route update',
  audited: 'unnamed',
  summary: 'forward the mail of a route, or disable it',
  help: `postrider route update ADDRESS [--forward ADDRESS|--no-forward] [--enable|--disable] [--tenant ID]
                       ${apiUsage}

Changes the route of an address, or the route with an id, for messages that arrive from then on.
--forward     also sends every message to this address
--no-forward  forwards no further messages
--disable     refuses mail to the address, until --enable
${apiHelp}

Example: postrider route update help@mail.example.com --forward ann@example.net`,
  options: {
    forward: { type: 'string' },
    'no-forward': { type: 'boolean' },
    enable: { type: 'boolean' },
    disable: { type: 'boolean' },
    ...tenantApiOptions,
  },
  positionals: ['ADDRESS'],
  run(given, deps) {
    const [wanted = ''] = given.positionals
    const changes = changesOf(given)
    return withApi(given, deps, async (service) => {
      const { routes } = scopeOf(service, given)
      const found = await routeOf(routes, wanted)
      const changed = await routes.update(found.id, changes)
      const { address, forwardTo, enabled } = changed
      const state = enabled ? 'receives mail' : 'is disabled: mail to it is refused'
      printed(
        given,
        deps,
        { ...changed },
        `${plain(address)} ${state}; ${forwardTo === null ? 'not forwarded' : `forwarded to ${plain(forwardTo)}`}`,
      )
    })
  },
}

export const routeRemove: Command = {
  name: 'route remove',
  audited: true,
  summary: 'no longer receive mail for an address',
  help: `postrider route remove ADDRESS [--tenant ID] ${apiUsage}

Deletes the route of an address, or the route with an id. Messages that it received stay until their retention ends.
${apiHelp}

Example: postrider route remove help@mail.example.com`,
  options: tenantApiOptions,
  positionals: ['ADDRESS'],
  run: (given, deps) =>
    withApi(given, deps, async (service) => {
      const [wanted = ''] = given.positionals
      const { routes } = scopeOf(service, given)
      const found = await routeOf(routes, wanted)
      await routes.delete(found.id)
      printed(given, deps, { id: found.id, deleted: true }, `${plain(found.address)} no longer receives mail`)
    }),
}
