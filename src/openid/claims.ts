/** The account that claims describe: its verified address, and the role that the operator's settings give to a value of a claim. */
import { Refusal, type RoleValue } from '#base'
import { parseAddress } from '#mail'
import { type ProvenAccount, roles } from '#members'

export type Claims = Readonly<Record<string, unknown>>

export interface RoleSettings {
  /** undefined: the identity provider gives no roles. */
  oidcRoleClaim: string | undefined
  oidcRoles: readonly RoleValue[]
}

/** OpenID Connect Core 1.0 section 2. */
const subjectForm = /^[\x20-\x7e]{1,255}$/

/**
 * Only `true` counts: some providers send addresses that their users typed. Both claims are of one source, because another's may be about
 * another address.
 */
export function addressOf({ email, email_verified: verified }: Claims): string | undefined {
  return verified === true && typeof email === 'string' ? parseAddress(email)?.text : undefined
}

/** A claim by its whole name, which may contain dots, or by the names on the way to it. */
export function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let found: unknown = claims
  for (const part of name.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, part)) return undefined
    found = (found as Claims)[part]
  }
  return found
}

/** A text, a list, or an object whose names are the values. */
function valuesOf(claim: unknown): Set<unknown> {
  if (typeof claim === 'string') return new Set([claim])
  if (Array.isArray(claim)) return new Set(claim)
  return new Set(typeof claim === 'object' && claim !== null ? Object.keys(claim) : [])
}

/** The highest role of the account. Refuses `permission_denied` if the settings name roles and the account does not have one of them. */
export function roleOf(sources: readonly Claims[], { oidcRoleClaim, oidcRoles }: RoleSettings): ProvenAccount['role'] {
  if (oidcRoleClaim === undefined) return undefined
  const values = valuesOf(sources.map((claims) => claimAt(claims, oidcRoleClaim)).find((claim) => claim !== undefined))
  const given = new Set(oidcRoles.filter(({ value }) => values.has(value)).map(({ role }) => role))
  const role = roles.find((one) => given.has(one))
  if (role !== undefined) return role
  throw new Refusal('permission_denied', {
    message: 'this account has no role in Postrider',
    suggestion: `Ask the administrator of the identity provider for a role, which Postrider reads from the claim ${oidcRoleClaim}`,
  })
}

/**
 * The account that the claims of the ID token describe, and where they are silent those of the user info (`more`). Refuses as `roleOf`, and a
 * subject of another form than the standard's.
 */
export function accountOf(claims: Claims, more: Claims, settings: RoleSettings): ProvenAccount {
  const { iss: issuer, sub: subject } = claims
  if (typeof issuer !== 'string' || typeof subject !== 'string' || !subjectForm.test(subject))
    throw new Refusal('permission_denied', {
      message: 'the identity provider identifies this account by a subject that is not 1 to 255 ASCII characters',
      suggestion: 'Ask the administrator of the identity provider',
    })
  return { issuer, subject, address: addressOf(claims) ?? addressOf(more), role: roleOf([claims, more], settings) }
}
