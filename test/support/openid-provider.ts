/**
 * A real identity provider (OpenID Connect, by the package oidc-provider) on a port of this machine. Its sign-in page is left out: the test chooses the account that
 * signs in next, or none, which is a refusal.
 */
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Provider } from 'oidc-provider'

export interface Account {
  email?: string
  email_verified?: boolean
  groups?: string[]
}

export interface OpenIdProvider extends AsyncDisposable {
  /** As it names itself. */
  readonly issuer: string
  /** The settings of a service that uses it. */
  readonly settings: Record<string, string>
  /** The accounts by subject. */
  readonly accounts: Map<string, Account>
  /** The subject that signs in next; undefined: the person refuses. */
  next: string | undefined
  /** Deletes an authorisation code, as its expiry does. */
  expire(code: string): Promise<void>
  /** Follows a browser's redirections from this address until they lead to the client; returns the query there. */
  visit(url: string): Promise<string>
}

const clientId = 'postrider'
const clientSecret = 'a secret of the client: 100% + & ='
const maxRedirections = 10

/** Long because the settings are one object. */
export async function startOpenIdProvider({ redirectUri }: { redirectUri: string }): Promise<OpenIdProvider> {
  const accounts = new Map<string, Account>()
  let handle: (request: IncomingMessage, response: ServerResponse) => unknown = (_request, response) => response.writeHead(503).end()
  const server = createServer((request, response) => handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const scope = 'openid email groups'
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: scope.split(' '),
    pkce: { required: () => true },
    cookies: { keys: ['of the tests'] },
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'one', use: 'sig', alg: 'RS256' }] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, ...accounts.get(id) }) }),
    async loadExistingGrant({ oidc }) {
      const accountId = oidc.session?.accountId
      if (accountId === undefined) return undefined
      // Without it, a page would ask for the person's consent.
      const grant = new provider.Grant({ clientId, accountId })
      grant.addOIDCScope(scope)
      await grant.save()
      return grant
    },
  })
  const others = provider.callback()
  handle = (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return others(request, response)
    const accountId = started.next
    const result = accountId === undefined ? { error: 'access_denied' } : { login: { accountId } }
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false }).catch((error: unknown) => {
      response.writeHead(500).end(String(error))
    })
  }
  const started: OpenIdProvider = {
    issuer,
    settings: { POSTRIDER_OIDC_ISSUER: issuer, POSTRIDER_OIDC_CLIENT_ID: clientId, POSTRIDER_OIDC_CLIENT_SECRET: clientSecret },
    accounts,
    next: undefined,
    async expire(code) {
      const found = await provider.AuthorizationCode.find(code)
      await found?.destroy()
    },
    visit: (url) => followed(url, redirectUri),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return started
}

/** A browser without a session at the identity provider. */
async function followed(from: string, redirectUri: string): Promise<string> {
  const cookies = new Map<string, string>()
  let url = from
  for (let count = 0; count < maxRedirections; count++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = answer.headers.get('location')
    if (location === null) throw new Error(`${answer.status} ${(await answer.text()).slice(0, 2000)}`)
    const next = new URL(location, url)
    if (next.href.startsWith(`${redirectUri}?`)) return next.search.slice(1)
    url = next.href
  }
  throw new Error(`more than ${maxRedirections} redirections`)
}
