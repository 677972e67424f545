/** The client of a Postrider service. */
import { Api, at, type Settings } from './api.ts'
import { organisationApi, sharedApi } from './generated.ts'
import { withReact } from './react.ts'

export type { Options, RenderReact, SendOptions, Settings } from './api.ts'
export * from './errors.ts'
export type { EventMessage, EventName, EventPayloads, WebhookEvent } from './events.ts'
export type * from './generated-types.ts'
export type { Page, Pages } from './pages.ts'
export type { EventStream, StreamedEvent } from './stream.ts'
export { type KeySet, type VerifyOptions, verifyWebhook, verifyWebhookWithKeys, type WebhookHeaders } from './webhooks.ts'

type Shared = ReturnType<typeof sharedApi>
type Organisation = ReturnType<typeof organisationApi>

/** Resources and methods have the names of the API reference: `emails.send`, `domains.verify`, `test.inbox.list`. */
export class Postrider {
  readonly #api: Api
  readonly emails: ReturnType<typeof withReact<Organisation['emails']>>
  readonly tenants: Organisation['tenants']
  readonly credentials: Shared['credentials']
  readonly domains: Shared['domains']
  readonly tracking: Shared['tracking']
  readonly suppressions: Shared['suppressions']
  readonly webhooks: Shared['webhooks']
  readonly templates: Shared['templates']
  readonly routes: Shared['routes']
  readonly received: Shared['received']
  readonly reputation: Shared['reputation']
  readonly platformWebhooks: Organisation['platformWebhooks']
  readonly events: Organisation['events']
  readonly usage: Organisation['usage']
  readonly limits: Organisation['limits']
  readonly logs: Organisation['logs']
  readonly transports: Organisation['transports']
  readonly test: Organisation['test']

  constructor(settings: Settings) {
    this.#api = new Api(settings)
    const { emails, tenants, platformWebhooks, events, usage, limits, logs, transports, test } = organisationApi(this.#api)
    const { credentials, domains, tracking, suppressions, webhooks, templates, routes, received, reputation } = sharedApi(this.#api, '')
    this.emails = withReact(emails, settings.render)
    this.tenants = tenants
    this.credentials = credentials
    this.domains = domains
    this.tracking = tracking
    this.suppressions = suppressions
    this.webhooks = webhooks
    this.templates = templates
    this.routes = routes
    this.received = received
    this.reputation = reputation
    this.platformWebhooks = platformWebhooks
    this.events = events
    this.usage = usage
    this.limits = limits
    this.logs = logs
    this.transports = transports
    this.test = test
  }

  /** The keys, domains, track domains, suppressions, webhooks, templates, routes, received mail and reputation of one tenant. */
  tenant(id: string): Shared {
    return sharedApi(this.#api, `/tenants/${at(id)}`)
  }
}
