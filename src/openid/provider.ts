/**
 * The identity provider: its metadata, read at the first sign-in and then once an hour, and the requests to it. The issuer's own host may be private,
 * because the operator named it. Other hosts that its metadata names must be public, or in POSTRIDER_ALLOWED_NETWORKS.
 */
import type { Configuration, CustomFetch } from 'openid-client'
import { type Clock, type Network, networkFrom } from '#base'
import { type Get, openGuard, openPost, type Resolver } from '#net'

/** Loaded at the first sign-in: most processes do not serve one. */
const loadLibrary = () => import('openid-client')
type Library = Awaited<ReturnType<typeof loadLibrary>>

export interface ProviderDeps {
  issuer: URL
  clientId: string
  clientSecret: string
  clock: Clock
  resolver: Resolver
  allowedNetworks: readonly Network[]
}

export interface Discovered {
  library: Library
  configuration: Configuration
}

/** The identity provider did not respond, or not with a whole HTTP response. */
export class ProviderSilent extends Error {}

const requestWithinMs = 5000
const maxResponseOctets = 262_144
const keptMs = 3_600_000
const loopback = ['127.0.0.0/8', '::1/128'].map(networkFrom).filter((one) => one !== undefined)

export class ProviderConnection {
  readonly #deps: ProviderDeps
  readonly #fetch: CustomFetch
  #known: { provider: Discovered; atMs: number } | undefined
  #loading: Promise<Discovered> | undefined

  constructor(deps: ProviderDeps) {
    this.#deps = deps
    this.#fetch = boundedFetch(deps)
  }

  /** Concurrent sign-ins share one request for the metadata; a failure is not kept. */
  get(): Promise<Discovered> {
    const { clock } = this.#deps
    if (this.#known && clock.monotonicMs() - this.#known.atMs < keptMs) return Promise.resolve(this.#known.provider)
    this.#loading ??= this.#discover().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #discover(): Promise<Discovered> {
    const { issuer, clientId, clientSecret, clock } = this.#deps
    const library = await loadLibrary()
    const execute = issuer.protocol === 'http:' ? [library.allowInsecureRequests] : []
    const found = await library.discovery(issuer, clientId, undefined, library.None(), { [library.customFetch]: this.#fetch, execute })
    const metadata = found.serverMetadata()
    // The library accepts another issuer for some providers with many tenants, whose accounts anyone can create.
    if (URL.parse(metadata.issuer)?.href !== issuer.href) throw new Error(`its metadata names another issuer: ${metadata.issuer}`)
    // RFC 8414 section 2: absent metadata means client_secret_basic.
    const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const authentication = methods.includes('client_secret_basic')
      ? library.ClientSecretBasic(clientSecret)
      : library.ClientSecretPost(clientSecret)
    const configuration = new library.Configuration(metadata, clientId, undefined, authentication)
    configuration[library.customFetch] = this.#fetch
    for (const extend of execute) extend(configuration)
    // Otherwise the library trusts the connection alone.
    library.enableNonRepudiationChecks(configuration)
    const provider = { library, configuration }
    this.#known = { provider, atMs: clock.monotonicMs() }
    return provider
  }
}

function boundedFetch({ issuer, clock, resolver, allowedNetworks }: ProviderDeps): CustomFetch {
  const own = openPost({ resolver, guard: { allows: () => true }, openedNetworks: loopback, clock }).get
  const others = openPost({ resolver, guard: openGuard(allowedNetworks), openedNetworks: allowedNetworks, clock }).get
  const isOwn = (url: string) => URL.parse(url)?.origin === issuer.origin
  return async (url, { method, headers, body }) => {
    if (method !== 'GET' && method !== 'POST') throw new Error(`unexpected request to the identity provider: ${method}`)
    return responseTo(isOwn(url) ? own : others, url, headers, method === 'POST' ? textOf(body) : undefined)
  }
}

function textOf(body: unknown): string {
  if (body instanceof URLSearchParams || typeof body === 'string') return String(body)
  throw new Error('unexpected body of a request to the identity provider')
}

async function responseTo(get: Get, url: string, headers: Record<string, string>, form: string | undefined): Promise<Response> {
  const request = { url, headers, withinMs: requestWithinMs, maxOctets: maxResponseOctets }
  const outcome = await get(form === undefined ? request : { ...request, body: Buffer.from(form) })
  const { statusCode, contentType, body, isWhole, error } = outcome
  if (statusCode === null) throw new ProviderSilent(error ?? 'no response')
  if (!isWhole) throw new ProviderSilent(`its response ends too early or has more than ${maxResponseOctets} octets`)
  if (statusCode > 599) throw new ProviderSilent(`it responds with the status ${statusCode}`)
  const isEmpty = statusCode === 204 || statusCode === 205 || statusCode === 304
  return new Response(isEmpty ? null : body, { status: statusCode, headers: contentType === null ? {} : { 'content-type': contentType } })
}
