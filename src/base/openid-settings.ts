/** The settings POSTRIDER_OIDC_…: the issuer's URL, and the roles that values of a claim give. */
import { isIP } from 'node:net'

const memberRoles = ['owner', 'admin', 'viewer'] as const

/** A value of the role claim, and its role. */
export interface RoleValue {
  role: (typeof memberRoles)[number]
  value: string
}

const isLoopback = (host: string) => host === 'localhost' || (isIP(host) === 4 && host.startsWith('127.')) || host === '[::1]'

/** Throws an Error unless it is an https URL, or an http one of this machine, without query and fragment. */
export function issuerFrom(value: string): URL {
  const url = URL.parse(value)
  const isUsable = url !== null && url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  if (!isUsable || !(url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))))
    throw new Error(`"${value}" is not an https URL such as https://login.example.com`)
  return url
}

/** Reads `owner=mail-owners,admin=ops`; a role may have several values. */
export function roleValuesFrom(items: readonly string[]): RoleValue[] {
  return items.map((item) => {
    const at = item.indexOf('=')
    const role = memberRoles.find((one) => one === item.slice(0, at))
    const value = item.slice(at + 1).trim()
    if (at < 0 || role === undefined || value === '') throw new Error(`"${item}" is not role=value with one of ${memberRoles.join(', ')}`)
    return { role, value }
  })
}

interface OpenIdSettings {
  oidcIssuer: URL | undefined
  oidcClientId: string | undefined
  oidcClientSecret: string | undefined
  oidcRoleClaim: string | undefined
  oidcRoles: readonly RoleValue[]
  oidcScope: string
  passwordSignIn: boolean
}

/** The first problem of settings that need each other. */
export function openIdProblem(given: OpenIdSettings): string | undefined {
  const { oidcIssuer, oidcClientId, oidcClientSecret, oidcRoleClaim, oidcRoles, oidcScope, passwordSignIn } = given
  if (oidcIssuer === undefined)
    return passwordSignIn ? undefined : 'POSTRIDER_PASSWORD_SIGN_IN=off needs POSTRIDER_OIDC_ISSUER, otherwise no member can sign in'
  if (oidcClientId === undefined || oidcClientSecret === undefined)
    return 'POSTRIDER_OIDC_ISSUER needs POSTRIDER_OIDC_CLIENT_ID and POSTRIDER_OIDC_CLIENT_SECRET, which the identity provider gives'
  if ((oidcRoleClaim === undefined) !== (oidcRoles.length === 0))
    return 'POSTRIDER_OIDC_ROLE_CLAIM and POSTRIDER_OIDC_ROLES: set both or neither'
  if (!oidcScope.split(' ').includes('openid')) return `POSTRIDER_OIDC_SCOPE: "${oidcScope}" does not contain openid`
  return undefined
}
