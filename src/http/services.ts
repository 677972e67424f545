/**
 * Module instances used only by the HTTP entry point: opened and closed with it. Instances shared with other roles of the process are
 * passed in.
 */
import type { Clock, Config, Ids, Log, Random, Secrets, Traces } from '#base'
import type { Db } from '#db'
import { openDelayReasons } from '#delivery'
import { type Domains, openDomainService } from '#domains'
import { openKeyRates, openRateLimiter } from '#limits'
import { openSessions } from '#members'
import { openLinkChecks } from '#message-checks'
import { openServedPolicy } from '#mta-sts'
import { openGuard, openPost, type Resolver } from '#net'
import { type OpenIdDeps, openOpenId } from '#openid'
import { KnownRetentions } from '#privacy'
import { openRoutes } from '#received-mail'
import { openRequestLogs } from '#request-logs'
import { openTemplates } from '#templates'
import type { Tenants } from '#tenants'
import { openTokens, openTrackHosts, openTrackingEvents } from '#tracking'
import { openUsage } from '#usage'
import { openEventStream, openWebhooks } from '#webhooks'
import { AnswerMemory } from './v1/answer-memory.ts'
import { EmailContents } from './v1/email-contents.ts'

export interface ServicesDeps {
  db: Db
  clock: Clock
  ids: Ids
  random: Random
  log: Log
  traces?: Traces | undefined
  secrets: Secrets
  tenants: Tenants
  domains: Domains
  resolver: Resolver
  installation: { version: string }
  /** Whether this is the only process that authenticates keys, so that rate limits need no shared count. */
  isAlone: () => boolean
  config: Pick<
    Config,
    | 'hostname'
    | 'dnsUpdate'
    | 'publicUrl'
    | 'allowedNetworks'
    | 'keepEmailDays'
    | 'relay'
    | 'providerRules'
    | 'webhookSignatureHeader'
    | 'passwordSignIn'
  > &
    OpenIdDeps['config']
}

export type Services = ReturnType<typeof openServices>

export function openServices(deps: ServicesDeps) {
  const { db, clock, ids, log, secrets, isAlone, config } = deps
  const rateLimiter = openRateLimiter(clock)
  const retentions = new KnownRetentions({ db, clock })
  return {
    ...openEndpointServices(deps),
    servedPolicy: openServedPolicy({ db, clock, hostname: config.hostname }),
    requestLogs: openRequestLogs({ db, clock, log, secrets, contentDays: (tenantIds) => retentions.daysOf(tenantIds) }),
    trackingEvents: openTrackingEvents({ db, clock, log, ids, keepEmailDays: config.keepEmailDays }),
    tokens: openTokens(secrets),
    trackHosts: openTrackHosts({ db, clock }),
    sessions: openSessions({ db, clock, ids, secrets, passwordSignIn: config.passwordSignIn }),
    openId: openOpenId(deps),
    rateLimiter,
    keyRates: openKeyRates({ db, clock, rateLimiter, isAlone }),
  }
}

/** Those that the endpoints under /v1 call: without timers, so they need no end. */
export function openEndpointServices(deps: Omit<ServicesDeps, 'isAlone' | 'log'>) {
  const { db, clock, ids, random, traces, secrets, tenants, domains, resolver, installation, config } = deps
  const { hostname, allowedNetworks } = config
  const { version } = installation
  const outside = { resolver, guard: openGuard(allowedNetworks), openedNetworks: allowedNetworks, clock }
  const post = openPost(outside)
  const answerMemory = new AnswerMemory(clock)
  return {
    contents: new EmailContents({ ...deps, answerMemory }),
    answerMemory,
    linkChecks: openLinkChecks({ get: openPost({ ...outside, allowsPlain: true }).get, clock }),
    shownDomains: openDomainService({ db, clock, ids, secrets, tenants, resolver, hostname, writesDns: config.dnsUpdate !== undefined }),
    templates: openTemplates({ db, clock, ids }),
    routes: openRoutes({ db, clock, ids, domains, secrets }),
    delayReasons: openDelayReasons({ db, clock, resolver, config }),
    usage: openUsage({ db, clock }),
    live: openEventStream({ db, clock, publicUrl: config.publicUrl }),
    webhooks: openWebhooks({ db, clock, ids, random, secrets, tenants, post, config, version, traces }),
  }
}
