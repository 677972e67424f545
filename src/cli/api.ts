/**
 * The API as commands use it: of the installation on this machine, whether it runs or not, or of a remote service with a key. A command has
 * one implementation for both (docs/decisions/032-commands-over-the-api.md).
 */
import { refusals } from '#base'
import { type ApiError, ConnectionError, Postrider } from '#client'
import type { Installation } from '#installation'
import { type Command, type CommandArguments, type CommandDeps, jsonOption, text, UsageError } from './command-definition.ts'

export const apiOptions = { url: { type: 'string' }, key: { type: 'string' }, ...jsonOption } as const
export const tenantApiOptions = { tenant: { type: 'string' }, ...apiOptions } as const

/** For the first line of a help text. */
export const apiUsage = '[--url URL --key KEY] [--json]'
/** For the end of a help text. */
export const apiHelp = `--url, --key  use the service at this URL with this API key, not the installation on this machine
              (or the environment variables POSTRIDER_URL and POSTRIDER_KEY, which keep the key out of the process list)`

/** Items of a printed list. */
export const maxListed = 1000
export const perRequest = 100
export const usuallyListed = 30

/** The value of --limit. */
export function limitOf(given: CommandArguments): number {
  const value = text(given, 'limit') ?? String(usuallyListed)
  if (!/^\d{1,4}$/.test(value) || Number(value) < 1 || Number(value) > maxListed)
    throw new UsageError(`--limit must be a whole number from 1 to ${maxListed}`)
  return Number(value)
}

export interface OpenedApi {
  api: Postrider
  /** Undefined for a remote service. */
  installation: Installation | undefined
}

/** The URL of a service, with or without `/v1`, as the base of the API. Throws a usage error. */
export function baseOf(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) throw new UsageError(`--url must be an http or https URL: ${url}`)
  return `${url.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1`
}

/** A client of a remote service. Faults of the connection name the URL. */
export async function withRemote<T>(url: string, key: string | undefined, work: (api: Postrider) => Promise<T>): Promise<T> {
  if (!key) throw new UsageError('--key is required with --url (or set POSTRIDER_KEY)')
  const baseUrl = baseOf(url)
  try {
    return await work(new Postrider({ apiKey: key, baseUrl }))
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    throw new Error(`no response from ${baseUrl}: ${reasonOf(error)}. Check the URL, and that the service runs`)
  }
}

/** The innermost cause: for Node's fetch, the failure of the socket. */
function reasonOf(error: Error): string {
  let inner = error
  while (inner.cause instanceof Error) inner = inner.cause
  return inner.message
}

/** Runs `work` with the API that the options and the environment name. */
export async function withApi<T>(given: CommandArguments, deps: CommandDeps, work: (service: OpenedApi) => Promise<T>): Promise<T> {
  const named = deps.environment.POSTRIDER_URL || undefined
  const url = text(given, 'url') ?? named
  if (url !== undefined) {
    // A person may have forgotten the variable, and mean the installation on this machine.
    if (url === named && process.stderr.isTTY) console.error(`using ${url} (POSTRIDER_URL)`)
    const key = text(given, 'key') ?? deps.environment.POSTRIDER_KEY
    return withRemote(url, key, (api) => work({ api, installation: undefined }))
  }
  if (text(given, 'key') !== undefined)
    throw new UsageError('--key needs --url: without it, the command uses the installation on this machine')
  return deps.withInstallation(async (installation) => {
    const settings = { apiKey: 'local', baseUrl: 'http://localhost/v1', maxRetries: 0, fetch: deps.openLocalApi(installation) }
    try {
      return await work({ api: new Postrider(settings), installation })
    } catch (error) {
      throw error instanceof ConnectionError && error.cause instanceof Error ? error.cause : error
    }
  })
}

/** Keys, domains, suppressions and webhooks of the tenant of --tenant, or of the organisation. */
export const scopeOf = ({ api }: OpenedApi, given: CommandArguments) => {
  const tenant = text(given, 'tenant')
  return tenant === undefined ? api : api.tenant(tenant)
}

/** First words of commands with a list, which shows the ids that a caller may have meant. */
const listed = ['domain', 'email', 'key', 'received', 'route', 'suppression', 'template', 'tenant', 'webhook']

const renamedOptions: Readonly<Record<string, string>> = {
  scheduledAt: '--at',
  forwardTo: '--forward',
  allowedFrom: '--domain, --from',
  allowedNetworks: '--network',
  expiresAt: '--expires',
  sendLimit: '--send-limit',
}

/** The option or argument that gives a field of the API. An argument may have the name of an option, such as the URL of a webhook. */
function optionOf(field: string, { options, positionals = [] }: Pick<Command, 'options' | 'positionals'>): string {
  const [root = field] = field.split(/[.[]/)
  if (root === 'tenantId') return '--tenant'
  const renamed = renamedOptions[root]
  if (renamed !== undefined) return renamed
  const argument = root.toUpperCase()
  return positionals.includes(argument) ? argument : root in options ? `--${root}` : field
}

/** The lines for a refusal of the API, and the exit code. The general suggestions are for programs that send requests. */
export function shownApiError(
  { code, field, message, suggestion, status }: ApiError,
  command: Pick<Command, 'name' | 'options' | 'positionals'>,
): { lines: string; exitCode: number } {
  // A newer service may have a code that is unknown here.
  const isGeneral = suggestion === refusals[code]?.suggestion
  const [family = ''] = command.name.split(' ')
  const next =
    code === 'not_found' && field === 'tenantId'
      ? 'Run postrider tenant list for all ids'
      : isGeneral && code === 'not_found' && listed.includes(family)
        ? `Run postrider ${family} list to find it`
        : isGeneral && (code === 'validation_error' || code === 'not_found')
          ? `Run postrider ${command.name} --help for usage`
          : suggestion
  const named = field !== undefined && message.startsWith(field) ? optionOf(field, command) + message.slice(field.length) : message
  const lines = plainLines(`${code}: ${named.replace(/^no such credential\b/, 'no such key')}\n${next}`)
  return { lines, exitCode: status >= 500 ? 1 : 2 }
}

/** Removes control characters of text from outside, which a terminal would obey. */
export const plain = (words: string) => words.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
/** Keeps line ends, for text of several lines. */
export const plainLines = (words: string) => words.split('\n').map(plain).join('\n')
