/**
 * Sign-in with an identity provider: the authorisation code flow with PKCE, state and nonce. Returns an account whose identity the
 * provider has proven; it decides neither membership nor sessions.
 * Owns: openid_states. Uses: base, mail, net, db, members. Used by: http.
 * Promises: a sign-in returns once, within ten minutes, to the browser that began it; the signature, issuer, audience, time and nonce of the
 * ID token are checked; requests to the identity provider are bounded in time and octets. A provider that does not respond affects no other sign-in.
 */
export { type OpenId, type OpenIdDeps, openOpenId } from './sign-in.ts'
