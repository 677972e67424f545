/** Commands for transports: SMTP relays for a share of the mail. */
import { readFile } from 'node:fs/promises'
import { text as textOf } from 'node:stream/consumers'
import { parseRelay, type Relay } from '#base'
import {
  getTransport,
  listRules,
  listTransportStates,
  listTransports,
  removeTransport,
  saveTransport,
  shareTransport,
  shownRule,
  type Transport,
  type TransportScope,
  type TransportSettings,
  type TransportState,
  type TransportTls,
  testTransport,
  transportTlsModes,
} from '#delivery'
import type { Installation } from '#installation'
import { openGuard, openResolver } from '#net'
import { givenTenant } from './command-arguments.ts'
import { type Command, type CommandArguments, jsonOption, printed, text, UsageError } from './command-definition.ts'

const settingOptions = {
  'password-file': { type: 'string' },
  tls: { type: 'string' },
  connections: { type: 'string' },
  rate: { type: 'string' },
  'no-failover': { type: 'boolean' },
  fallback: { type: 'string' },
} as const

const settingHelp = `URL is smtp[s]://[user:password@]host:port, as in POSTRIDER_RELAY. The password is sealed in the database.
--password-file  file with the password, which then is in no process list; - reads the standard input
--tls            implicit (default for smtps), required (default with a login: STARTTLS and a valid certificate), or opportunistic
--connections    most connections at once over all processes (default: 20)
--rate           most messages per second over all processes, or unlimited (default)
--no-failover    its mail waits while the transport is down; without it, the mail uses the fallback
--fallback       the transport for its mail while it is down, or default; that one may have a fallback too`

const defaultConnections = 20

const urlOf = (given: string): Relay => {
  try {
    return parseRelay(given)
  } catch (error) {
    throw new UsageError(`URL: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function tlsOf(given: CommandArguments): TransportTls | undefined {
  const wanted = text(given, 'tls')
  const known = transportTlsModes.find((one) => one === wanted)
  if (wanted !== undefined && known === undefined) throw new UsageError(`--tls: "${wanted}" is not one of ${transportTlsModes.join(', ')}`)
  return known
}

function numberOf(given: CommandArguments, name: string): number | undefined {
  const wanted = text(given, name)
  if (wanted === undefined) return undefined
  if (!/^\d{1,6}(?:\.\d{1,3})?$/.test(wanted)) throw new UsageError(`--${name}: "${wanted}" is not a number`)
  return Number(wanted)
}

const maxPasswordOctets = 4096

async function passwordOf(given: CommandArguments): Promise<string | undefined> {
  const file = text(given, 'password-file')
  if (file === undefined) return undefined
  const password = (file === '-' ? await textOf(process.stdin) : await readFile(file, 'utf8')).replace(/\r?\n$/, '')
  if (password === '' || password.length > maxPasswordOctets) throw new UsageError('--password-file: the file is empty or too long')
  return password
}

/** The settings that the command names; the others stay, or get their defaults. */
async function settingsOf(given: CommandArguments): Promise<(now: Transport | undefined) => TransportSettings> {
  const [, address] = given.positionals
  const url = address === undefined ? undefined : urlOf(address)
  const [tls, password, connections] = [tlsOf(given), await passwordOf(given), numberOf(given, 'connections')]
  const rate = text(given, 'rate') === 'unlimited' ? null : numberOf(given, 'rate')
  const failover = given.options['no-failover'] === true ? false : undefined
  const named = text(given, 'fallback')
  const fallback = named === 'default' ? null : named
  return (now) => {
    const target = url ?? now
    if (!target) throw new UsageError('give the URL of the transport')
    const user = url ? url.auth?.user : now?.auth?.user
    const secret = password ?? (url?.auth?.password || now?.auth?.password)
    if (user !== undefined && (secret === undefined || secret === ''))
      throw new UsageError('give the password in the URL or with --password-file')
    const usualTls = url?.implicitTls ? 'implicit' : user === undefined ? 'opportunistic' : 'required'
    return {
      host: target.host,
      port: target.port,
      tls: tls ?? (url ? usualTls : (now?.tls ?? usualTls)),
      auth: user === undefined || secret === undefined ? null : { user, password: secret },
      connections: connections ?? now?.connections ?? defaultConnections,
      rate: rate === undefined ? (now?.rate ?? null) : rate,
      failover: failover ?? (url ? true : (now?.failover ?? true)),
      fallback: fallback === undefined ? (now?.fallback ?? null) : fallback,
      guarded: url ? false : (now?.guarded ?? false),
    }
  }
}

/** Without the password. */
const shown = ({ name, host, port, tls, auth, connections, rate, failover, fallback }: Transport) => ({
  name,
  host,
  port,
  tls,
  user: auth?.user ?? null,
  connections,
  rate,
  failover,
  fallback,
})

const line = ({ name, host, port, tls, user, connections, rate, failover, fallback }: ReturnType<typeof shown>) =>
  [
    `${name.padEnd(16)}${host}:${port}`,
    `TLS ${tls}`,
    ...(user === null ? [] : [`login ${user}`]),
    `${connections} connections`,
    ...(rate === null ? [] : [`${rate} messages/s`]),
    ...(failover ? [] : ['no failover']),
    ...(failover && fallback !== null ? [`fallback ${fallback}`] : []),
  ].join(', ')

async function save(given: CommandArguments, installation: Installation, mustExist: boolean): Promise<Transport> {
  const [name = ''] = given.positionals
  const change = await settingsOf(given)
  if (mustExist) await getTransport(installation.db, installation.secrets, name)
  return saveTransport(
    installation,
    name,
    (now) => {
      if (now && !mustExist) throw new UsageError(`the transport ${name} exists. To change it: postrider transport set ${name}`)
      return change(now)
    },
    installation.clock.nowMs(),
  )
}

export const transportAdd: Command = {
  name: 'transport add',
  audited: 'unnamed',
  summary: 'add an SMTP relay',
  help: `postrider transport add NAME URL [--password-file F] [--tls T] [--connections N] [--rate N] [--no-failover] [--fallback NAME] [--json]

Adds a transport: an SMTP relay (smart host), for example of the service that you move away from. It gets no mail before
postrider transport share gives it a share.
${settingHelp}

Example: postrider transport add old smtp://user@smtp.old.example:587 --password-file ./old-password`,
  options: { ...settingOptions, ...jsonOption },
  values: { tls: transportTlsModes },
  positionals: ['NAME', 'URL'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const saved = shown(await save(given, installation, false))
      printed(given, deps, saved, `${line(saved)}\nTo test it: postrider transport test ${saved.name}`)
    }),
}

export const transportSet: Command = {
  name: 'transport set',
  audited: 'unnamed',
  summary: 'change a transport',
  help: `postrider transport set NAME [URL] [--password-file F] [--tls T] [--connections N] [--rate N] [--no-failover] [--fallback NAME] [--json]

Changes the given settings within a second; connections with the old ones finish their mail. A new URL replaces login, TLS and failover too.
${settingHelp}

Example: postrider transport set old --rate 5`,
  options: { ...settingOptions, ...jsonOption },
  values: { tls: transportTlsModes },
  positionals: ['NAME', 'URL?'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const saved = shown(await save(given, installation, true))
      printed(given, deps, saved, line(saved))
    }),
}

const mailOf = ({ tenantId, domain, tag }: TransportScope) =>
  [
    tenantId === '' && domain === '' && tag === '' ? 'all mail' : 'mail',
    ...(domain === '' ? [] : [`from ${domain}`]),
    ...(tenantId === '' ? [] : [`of ${tenantId}`]),
    ...(tag === '' ? [] : [`tagged ${tag}`]),
  ].join(' ')

const sharesText = (shares: readonly { transport: string; percent: number }[], usual: string) => {
  const rest = 100 - shares.reduce((sum, one) => sum + one.percent, 0)
  return [...shares.map(({ transport, percent }) => `${percent}% ${transport}`), ...(rest > 0 ? [`${rest}% ${usual} (default)`] : [])].join(
    ', ',
  )
}

const usualOf = ({ config }: Installation) => (config.relay ? 'relay' : 'mx')

const downText = ({ tenantId, reason, until }: TransportState) =>
  [
    `DOWN${tenantId === '' ? '' : ` for ${tenantId}`}`,
    reason === 'failed' ? 'no connection, TLS or login' : 'it refused message after message',
    `next try after ${until.toISOString()}`,
  ].join(', ')

export const transportList: Command = {
  name: 'transport list',
  summary: 'list the transports and their shares',
  help: `postrider transport list [--json]

Lists the transports without their passwords, those that a process regards as down, and the shares of each rule. The default is mx, direct delivery to the recipients' mail
servers, or relay if POSTRIDER_RELAY is set.`,
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { db, secrets } = installation
      const [transports, rules] = [(await listTransports(db, secrets)).map(shown), (await listRules(db)).map(shownRule)]
      const down = await listTransportStates(db, installation.clock.nowMs())
      const usual = usualOf(installation)
      const lines = [
        ...transports.map((one) => [line(one), ...down.filter(({ transport }) => transport === one.name).map(downText)].join('; ')),
        ...rules.map((rule) => `${mailOf(rule)}: ${sharesText(rule.shares, usual)}`),
        ...(rules.length === 0 ? [`all mail: ${usual} (default)`] : []),
      ]
      printed(given, deps, { default: usual, transports, rules, down }, lines.join('\n'))
    }),
}

export const transportShare: Command = {
  name: 'transport share',
  audited: true,
  summary: 'set the share of a transport, in percent',
  help: `postrider transport share NAME PERCENT [--tenant ID] [--domain D] [--tag T] [--json]

Sends this share of the mail by the transport, and the rest by the default. Applies within a second, to queued mail too. An email keeps its
transport over its retries while the shares do not change. A share that grows takes mail of the default only.
NAME is a transport, mx, or relay (POSTRIDER_RELAY). For all mail, the default has no share of its own: it carries the rest.
--tenant, --domain, --tag  only mail of this tenant, from this sending domain, with this tag. If several rules match, a domain is before a
                           tenant, and a tenant before a tag

Example: postrider transport share old 95 --domain shop.example`,
  options: { tenant: { type: 'string' }, domain: { type: 'string' }, tag: { type: 'string' }, ...jsonOption },
  positionals: ['NAME', 'PERCENT'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const [transport = '', percent = ''] = given.positionals
      if (!/^\d{1,3}$/.test(percent) || Number(percent) > 100)
        throw new UsageError(`PERCENT: "${percent}" is not a whole number from 0 to 100`)
      const scope = {
        tenantId: (await givenTenant(given, installation)) ?? '',
        domain: (text(given, 'domain') ?? '').toLowerCase(),
        tag: text(given, 'tag') ?? '',
      }
      const wanted = { ...scope, transport, percent: Number(percent) }
      const rule = shownRule(
        await shareTransport(installation.db, wanted, installation.config.relay !== undefined, installation.clock.nowMs()),
      )
      printed(given, deps, rule, `${mailOf(rule)}: ${sharesText(rule.shares, usualOf(installation))}`)
    }),
}

export const transportTest: Command = {
  name: 'transport test',
  audited: true,
  summary: 'connect to a transport and log in, without sending mail',
  help: `postrider transport test NAME [--json]

Connects, starts TLS and logs in as a delivery would, and prints the conversation without the password. The exit code is 1 if that fails.

Example: postrider transport test old`,
  options: jsonOption,
  positionals: ['NAME'],
  async run(given, deps) {
    const isGood = await deps.withInstallation(async ({ db, secrets, clock, ids, config }) => {
      const transport = await getTransport(db, secrets, given.positionals[0] as string)
      const resolver = openResolver({ servers: config.resolvers, clock, ids })
      const tested = await testTransport(transport, {
        clock,
        resolver,
        hostname: config.hostname,
        guard: openGuard(config.allowedNetworks),
      })
      const { works, address, secure, message } = tested
      const result = works ? `works, at ${address}, ${secure ? 'encrypted' : 'not encrypted'}` : `fails: ${message}`
      printed(given, deps, { name: transport.name, ...tested }, `${transport.name} ${result}`)
      return works
    })
    if (!isGood) throw new Error('the transport cannot take mail')
  },
}

export const transportRemove: Command = {
  name: 'transport remove',
  audited: true,
  summary: 'remove a transport that has no share',
  help: 'postrider transport remove NAME [--json]\n\nRemoves a transport and its password. Open connections finish their mail. Set its shares to 0 first.',
  options: jsonOption,
  positionals: ['NAME'],
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const [name = ''] = given.positionals
      await removeTransport(installation.db, name, installation.clock.nowMs())
      printed(given, deps, { name, removed: true }, `removed ${name}`)
    }),
}
