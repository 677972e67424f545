/** The public keys of a service, for receivers of webhooks. */

export interface Jwk {
  kty: string
  n: string
  e: string
  kid: string
  alg: string
  use: string
}

export const jwksOf = async (port: number): Promise<{ keys: Jwk[] }> =>
  (await (await fetch(`http://127.0.0.1:${port}/.well-known/jwks.json`)).json()) as { keys: Jwk[] }
