/**
 * One sign-in: from the redirection to the identity provider to its return. The browser keeps the sign-in's secrets in a sealed ticket. A used state is
 * a row, so that no process accepts it again.
 */
import { createHash } from 'node:crypto'
import type { Clock, Config, Ids, Log, Secrets } from '#base'
import { Refusal } from '#base'
import { type Db, sql } from '#db'
import type { ProvenAccount } from '#members'
import type { Resolver } from '#net'
import { accountOf, type Claims, claimAt, type RoleSettings } from './claims.ts'
import { type Discovered, ProviderConnection, ProviderSilent } from './provider.ts'

export interface OpenIdDeps {
  db: Db
  clock: Clock
  ids: Ids
  log: Log
  secrets: Secrets
  resolver: Resolver
  config: Pick<
    Config,
    | 'publicUrl'
    | 'allowedNetworks'
    | 'oidcIssuer'
    | 'oidcClientId'
    | 'oidcClientSecret'
    | 'oidcName'
    | 'oidcScope'
    | 'oidcRoleClaim'
    | 'oidcRoles'
  >
}

export interface OpenId {
  /** The identity provider's name, for the sign-in page. */
  readonly name: string
  /** The URL at the identity provider, and the ticket that the browser brings back. Refuses `authentication_required` if the identity provider is silent. */
  begin(): Promise<{ url: string; ticket: string }>
  /**
   * The account of a sign-in that returns with this query. Refuses `authentication_required` if it was not begun in this browser, has
   * expired, was used, or if the identity provider's response is not valid; `permission_denied` for an account without a role.
   */
  finish(query: string, ticket: string | undefined): Promise<ProvenAccount>
}

interface Ticket {
  state: string
  nonce: string
  verifier: string
  atMs: number
}

const ticketLifeMs = 600_000
const tokenLength = 43
const maxTicketLength = 2048
const sealName = 'ticket'

const dropOld = sql`
  delete from openid_states
  where used_at < $1`

const useState = sql`
  insert into openid_states (state_hash, used_at)
  values ($1, $2)
  on conflict do nothing`

const again = 'Go back to the sign-in page and try again'

/** undefined: no provider is configured. */
export function openOpenId(deps: OpenIdDeps): OpenId | undefined {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret, oidcName } = deps.config
  if (!issuer || clientId === undefined || clientSecret === undefined) return undefined
  const { clock, resolver } = deps
  const { allowedNetworks } = deps.config
  const connection = new ProviderConnection({ issuer, clientId, clientSecret, clock, resolver, allowedNetworks })
  return new SignIns(deps, connection, { name: oidcName ?? issuer.hostname, issuer })
}

class SignIns implements OpenId {
  readonly name: string
  readonly #deps: OpenIdDeps
  readonly #connection: ProviderConnection
  readonly #issuer: URL
  readonly #redirectUri: string

  constructor(deps: OpenIdDeps, connection: ProviderConnection, { name, issuer }: { name: string; issuer: URL }) {
    this.name = name
    this.#deps = deps
    this.#connection = connection
    this.#issuer = issuer
    this.#redirectUri = new URL(`${deps.config.publicUrl}/sign-in/openid`).href
  }

  async begin(): Promise<{ url: string; ticket: string }> {
    const { ids, clock, secrets, config } = this.#deps
    const { library, configuration } = await this.#reach(() => this.#connection.get())
    const ticket: Ticket = {
      state: ids.token(tokenLength),
      nonce: ids.token(tokenLength),
      verifier: ids.token(tokenLength),
      atMs: clock.nowMs(),
    }
    const url = library.buildAuthorizationUrl(configuration, {
      redirect_uri: this.#redirectUri,
      scope: config.oidcScope,
      state: ticket.state,
      nonce: ticket.nonce,
      code_challenge: createHash('sha256').update(ticket.verifier).digest('base64url'),
      code_challenge_method: 'S256',
    })
    const sealed = secrets.sealer('openid').seal(sealName, Buffer.from(JSON.stringify(ticket)))
    return { url: url.href, ticket: sealed.toString('base64url') }
  }

  async finish(query: string, sealed: string | undefined): Promise<ProvenAccount> {
    const ticket = this.#ticketIn(sealed)
    const url = new URL(this.#redirectUri)
    url.search = query
    if (url.searchParams.get('state') !== ticket.state)
      throw new Refusal('authentication_required', { message: 'this sign-in belongs to another page of this browser', suggestion: again })
    await this.#use(ticket)
    const { claims, more } = await this.#reach(async () => this.#claimsFrom(await this.#connection.get(), url, ticket))
    return accountOf(claims, more, this.#deps.config)
  }

  #ticketIn(sealed: string | undefined): Ticket {
    const { clock, secrets } = this.#deps
    const ticket = sealed === undefined || sealed.length > maxTicketLength ? undefined : openedTicket(sealed, secrets)
    const ageMs = clock.nowMs() - (ticket?.atMs ?? 0)
    if (ticket && ageMs < ticketLifeMs) return ticket
    throw new Refusal('authentication_required', {
      message: 'this sign-in has ended, took longer than ten minutes, or began in another browser',
      suggestion: again,
    })
  }

  /** Before the code is used, so that of two requests with one state at most one goes on. */
  async #use({ state }: Ticket): Promise<void> {
    const { db, clock } = this.#deps
    const nowMs = clock.nowMs()
    // Twice the life of a ticket, for clocks of other machines that are behind.
    await db.run(dropOld, [new Date(nowMs - 2 * ticketLifeMs)])
    const used = await db.run(useState, [createHash('sha256').update(state).digest(), new Date(nowMs)])
    if (used === 0) throw new Refusal('authentication_required', { message: 'this sign-in was already used', suggestion: again })
  }

  /** The claims of the ID token, and of the user info if the address or the role is missing. */
  async #claimsFrom({ library, configuration }: Discovered, url: URL, ticket: Ticket): Promise<{ claims: Claims; more: Claims }> {
    const { state, nonce, verifier } = ticket
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
    const tokens = await library.authorizationCodeGrant(configuration, url, checks)
    const claims = tokens.claims()
    if (!claims) throw new Error('the response has no ID token')
    const isEnough = isComplete(claims, this.#deps.config) || configuration.serverMetadata().userinfo_endpoint === undefined
    return { claims, more: isEnough ? {} : await library.fetchUserInfo(configuration, tokens.access_token, claims.sub) }
  }

  /** Runs requests to the identity provider. Its failures become refusals; the log has the reason. */
  async #reach<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof Refusal) throw error
      const why = reasonsOf(error)
      this.#deps.log.warn({ issuer: this.#issuer.href, why }, 'a sign-in with the identity provider failed')
      throw refusalFor(error, this.name)
    }
  }
}

function openedTicket(sealed: string, secrets: Secrets): Ticket | undefined {
  try {
    const octets = secrets.sealer('openid').open(sealName, Buffer.from(sealed, 'base64url'))
    return JSON.parse(octets.toString()) as Ticket
  } catch {
    return undefined
  }
}

const isComplete = (claims: Claims, { oidcRoleClaim }: RoleSettings) =>
  claims['email'] !== undefined &&
  claims['email_verified'] !== undefined &&
  (oidcRoleClaim === undefined || claimAt(claims, oidcRoleClaim) !== undefined)

const maxCauses = 4
const maxReasonLength = 200

function causesOf(error: unknown): Error[] {
  const found: Error[] = []
  for (let one = error; one instanceof Error && found.length < maxCauses; one = one.cause) found.push(one)
  return found
}

/** Without the responses and claims that the library attaches: they have personal data. */
const reasonsOf = (error: unknown): string[] => causesOf(error).map(({ message }) => message.slice(0, maxReasonLength))

const errorCodeForm = /^[a-z_]{1,64}$/

function refusalFor(error: unknown, name: string): Refusal {
  if (causesOf(error).some((one) => one instanceof ProviderSilent))
    return new Refusal('authentication_required', {
      message: `the identity provider ${name} does not respond`,
      suggestion: 'Try again later, or sign in with a password. The log of the service has the reason',
    })
  // The `error` of RFC 6749 sections 4.1.2.1 and 5.2.
  const { error: code } = error as { error?: unknown }
  const shown = typeof code === 'string' && errorCodeForm.test(code) ? ` (${code})` : ''
  return new Refusal('authentication_required', {
    message:
      code === 'invalid_grant'
        ? 'this sign-in has expired or was already used at the identity provider'
        : `the identity provider's response was not accepted${shown}`,
    suggestion: `${again}. The log of the service has the reason`,
  })
}
