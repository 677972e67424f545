/**
 * Maps mail servers to providers, and classifies temporary refusals as rate limits. The rules are a data file that an operator can extend.
 */
import { readFileSync } from 'node:fs'
import { ConfigError } from '#base'
import { classify, type GivenReply } from '#bounces'
import { mailSiteOf, type Route } from '#net'
import type { RecipientResult, Reply } from '#smtp'
import type { ProviderLimits } from './adaptive-limits.ts'

export interface Provider extends ProviderLimits {
  name: string
  /** A rule names the provider, a shipped one or the operator's. */
  isNamed: boolean
}

/** Maximum number of providers in the name of a mixture. */
const maxNamed = 3

interface Rule {
  name: string
  mx: string[]
  connections?: number
  rate?: number
  throttled?: string[]
}

type HostsRoute = Pick<Extract<Route, { kind: 'hosts' }>, 'hosts' | 'firstHost' | 'site'>

export interface Providers {
  /** The providers named by a rule; any other provider is named by the `site` passed to `of`. */
  readonly names: ReadonlySet<string>
  /**
   * The provider of a mail server, by the most specific rule for its name or a parent domain; without a rule, `site` is the
   * provider's name.
   */
  of(host: string, site: string): Provider
  /** The providers of a domain's mail servers, the same for the same servers. */
  among(route: HostsRoute): readonly Provider[]
  /**
   * The provider whose limits apply to the domain. A domain that mixes a provider's servers with others gets limits of its own: the other
   * servers' replies do not speak for the provider, and their slowness must not occupy the provider's connections.
   */
  ofRoute(route: HostsRoute): Provider
  /** Whether a temporary refusal concerns the amount or speed of sending, or Postrider's reputation, rather than this message. */
  isThrottle(reply: GivenReply, provider: string): boolean
}

/** Whether the server refuses because it shuts down (421, RFC 5321 section 3.8). Such a reply is not about number or speed. */
export const isShutdown = ({ code, text }: GivenReply): boolean =>
  code === 421 && shutdownWords.test(text) && !throttleWords.test(text) && !aboutTheMessage.test(text)

/**
 * Whether the server takes no more messages over this connection, and takes them over another one: Exim's `smtp_accept_max_per_connection`,
 * and the same of Yahoo and Cisco. After a message over the connection, the reply is not about the rate.
 */
export const isConnectionSpent = (result: RecipientResult): boolean =>
  result.state === 'refused' && (result.stage === 'mail' || result.stage === 'rcpt') && isMessageLimitOfConnection(result.reply)

const isMessageLimitOfConnection = ({ code, text }: Reply): boolean =>
  code < 500 && limitWords.test(text) && perConnection.test(text) && !aboutTheMessage.test(text)

const limitWords = /too many|\bmax|limit|exceed/i
const perConnection =
  /\b(?:message|e?-?mail|transaction)s?(?: (?:limit|count|quota))?(?: (?:sent|delivered|received|allowed|exceeded|reached))* (?:per|in|on|for|over|during) (?:(?:this|one|a|an|the|same|single|current|smtp) )*(?:connection|session)\b/i

/** The default of Postfix. */
const usualConnections = 20
/** Phrases about number or speed. Greylisting uses the same codes but concerns the message. */
const throttleWords =
  /rate.?limit|ratelimit|throttl|too (?:many|much|fast|frequent)|slow(?:ing)? down|(?:connection|message|sending|mail|hourly|daily|volume).{0,24}(?:limit|quota)|limit.{0,20}(?:exceed|reached)|exceed.{0,30}(?:rate|limit)|frequency|unusual (?:rate|traffic)|unexpected volume|server busy|(?:concurren|simultaneous)/i
const shutdownWords = /\bshut(?:ting)? ?down\b|\bgoing down\b|\brestarting\b/i
const aboutTheMessage =
  /gr[ae]y.?list|postgrey|mailbox|recipient has exceeded|(?:user|recipient) .{0,40}is receiving|over ?quota|quota exceeded|storage|too many recipients|message size|too large/i

const shipped = new URL('./providers.json', import.meta.url)

/** `file`: an operator's own rules. Throws ConfigError if the file is invalid. */
export function openProviders(file: string | undefined): Providers {
  const rules = new Map(readRules(shipped).map((rule) => [rule.name, rule]))
  if (file !== undefined) for (const rule of readRules(file)) rules.set(rule.name, rule)
  const byDomain = new Map([...rules.values()].flatMap((rule) => rule.mx.map((domain) => [domain.toLowerCase(), rule] as const)))

  const ruleFor = (host: string): Rule | undefined => {
    for (let domain = host; domain !== ''; domain = domain.slice(domain.indexOf('.') + 1)) {
      const rule = byDomain.get(domain)
      if (rule || !domain.includes('.')) return rule
    }
    return undefined
  }
  const of: Providers['of'] = (host, site) => {
    const rule = ruleFor(host)
    const isNamed = rule !== undefined
    return { isNamed, name: rule?.name ?? site, connections: rule?.connections ?? usualConnections, rate: rule?.rate ?? null }
  }
  const among: Providers['among'] = ({ hosts, firstHost, site }) => {
    const each = hosts.map(({ host }) => of(host, host === firstHost ? site : mailSiteOf(host)))
    return [...new Map(each.map((one) => [one.name, one])).values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }
  return {
    names: new Set(rules.keys()),
    of,
    among,
    ofRoute(route) {
      const all = among(route)
      const [only] = all
      if (only && all.length === 1) return only
      const names = all.slice(0, maxNamed).map(({ name }) => name)
      const name = [...names, ...(all.length > maxNamed ? ['others'] : [])].join('+')
      return { isNamed: false, name, connections: usualConnections, rate: null }
    },
    isThrottle(reply, provider) {
      const { code, text } = reply
      if (code === null || code < 400 || code >= 500 || aboutTheMessage.test(text) || isShutdown(reply)) return false
      const lower = text.toLowerCase()
      const isSaid = code === 421 || throttleWords.test(text) || rules.get(provider)?.throttled?.some((phrase) => lower.includes(phrase))
      if (!isSaid) return false
      // Concerns one recipient or one sender's domain; other mail is not affected.
      const { fault } = classify(reply)
      return fault !== 'recipient' && fault !== 'sender'
    },
  }
}

function readRules(file: string | URL): Rule[] {
  const refuse = (why: string): never => {
    throw new ConfigError(`POSTRIDER_PROVIDER_RULES: ${String(file)} ${why} (format: docs/delivery.md)`)
  }
  let read: unknown
  try {
    read = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    return refuse(`cannot be read (${(error as Error).message})`)
  }
  const { providers } = (read ?? {}) as { providers?: unknown }
  if (!Array.isArray(providers)) return refuse('has no list "providers"')
  const isTexts = (value: unknown) => Array.isArray(value) && value.every((one) => typeof one === 'string')
  for (const rule of providers as Record<string, unknown>[]) {
    if (typeof rule?.name !== 'string' || !isTexts(rule.mx)) return refuse('has an entry without "name" and "mx"')
    if (rule.connections !== undefined && !(Number.isInteger(rule.connections) && (rule.connections as number) >= 1))
      refuse(`has "connections" of ${rule.name} that is not a number of at least 1`)
    if (rule.rate !== undefined && !(typeof rule.rate === 'number' && rule.rate > 0))
      refuse(`has a "rate" of ${rule.name} that is not a number`)
    if (rule.throttled !== undefined && !isTexts(rule.throttled)) refuse(`has "throttled" of ${rule.name} that is not a list of strings`)
  }
  return providers as Rule[]
}
