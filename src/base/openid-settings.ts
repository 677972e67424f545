/** Settings of sign-in, mostly with an identity provider (POSTRIDER_OIDC_…), and those of them that need each other. */
import { isIP } from 'node:net'
import { choiceFrom, itemsFrom, setting } from './setting.ts'

const memberRoles = ['owner', 'admin', 'viewer'] as const

/** A value of the role claim, and its role. */
export interface RoleValue {
  role: (typeof memberRoles)[number]
  value: string
}

const isLoopback = (host: string) => host === 'localhost' || (isIP(host) === 4 && host.startsWith('127.')) || host === '[::1]'

/** Throws an Error unless it is an https URL, or an http one of this machine, without query and fragment. */
function issuerFrom(value: string): URL {
  const url = URL.parse(value)
  const isUsable = url !== null && url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  if (!isUsable || !(url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))))
    throw new Error(`"${value}" is not an https URL such as https://login.example.com`)
  return url
}

/** Reads `owner=mail-owners,admin=ops`; a role may have several values. */
function roleValuesFrom(items: readonly string[]): RoleValue[] {
  return items.map((item) => {
    const at = item.indexOf('=')
    const role = memberRoles.find((one) => one === item.slice(0, at))
    const value = item.slice(at + 1).trim()
    if (at < 0 || role === undefined || value === '') throw new Error(`"${item}" is not role=value with one of ${memberRoles.join(', ')}`)
    return { role, value }
  })
}

export const openIdSettings = {
  oidcIssuer: setting(
    'POSTRIDER_OIDC_ISSUER',
    'none',
    'issuer URL of an identity provider (OpenID Connect), with which members of the organisation may sign in (docs/sign-in.md)',
    (v) => (v === undefined ? undefined : issuerFrom(v)),
  ),
  oidcClientId: setting('POSTRIDER_OIDC_CLIENT_ID', 'none', 'client id of Postrider at the identity provider', (v) => v),
  oidcClientSecret: setting('POSTRIDER_OIDC_CLIENT_SECRET', 'none', 'client secret of Postrider at the identity provider', (v) => v),
  oidcClientSecretFile: setting('POSTRIDER_OIDC_CLIENT_SECRET_FILE', 'none', 'file that contains POSTRIDER_OIDC_CLIENT_SECRET', (v) => v),
  oidcName: setting('POSTRIDER_OIDC_NAME', "the issuer's host name", 'name of the identity provider on the sign-in page', (v) => {
    if (v !== undefined && v.length > 60) throw new Error('must have at most 60 characters')
    return v
  }),
  oidcScope: setting('POSTRIDER_OIDC_SCOPE', '`openid email`', 'scopes that a sign-in asks for, separated by spaces', (v) =>
    (v ?? 'openid email').split(/\s+/).join(' ').trim(),
  ),
  oidcRoleClaim: setting(
    'POSTRIDER_OIDC_ROLE_CLAIM',
    'none',
    'claim whose values give the role of a member, such as `groups` or `realm_access.roles`; if unset, members keep the role that they have here',
    (v) => v,
  ),
  oidcRoles: setting(
    'POSTRIDER_OIDC_ROLES',
    'none',
    'comma-separated roles and values of that claim, such as `owner=mail-owners,admin=ops,viewer=staff`; a person without one is refused',
    (v) => roleValuesFrom(itemsFrom(v)),
  ),
  passwordSignIn: setting(
    'POSTRIDER_PASSWORD_SIGN_IN',
    'on',
    '`off`: members of the organisation sign in with the identity provider only; members of tenants keep their passwords',
    (v) => choiceFrom(v, ['on', 'off'], 'on') === 'on',
  ),
} as const

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
