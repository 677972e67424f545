import { describe, expect, test } from 'vitest'
import { accountOf, addressOf, claimAt, roleOf } from './claims.ts'

const settings = {
  oidcRoleClaim: 'groups',
  oidcRoles: [
    { role: 'viewer', value: 'staff' },
    { role: 'owner', value: 'mail-owners' },
    { role: 'viewer', value: 'guests' },
  ] as const,
}
const noRoles = { oidcRoleClaim: undefined, oidcRoles: [] }
const ann = { iss: 'https://login.example.com', sub: 'ann', email: 'ann@example.com', email_verified: true }

test.each([
  [{ email: 'ann@example.com', email_verified: true }, 'ann@example.com'],
  [{ email: 'ann@example.com', email_verified: 'true' }, undefined],
  [{ email: 'ann@example.com', email_verified: false }, undefined],
  [{ email: 'ann@example.com' }, undefined],
  [{ email: ['ann@example.com'], email_verified: true }, undefined],
  [{ email: 'ann', email_verified: true }, undefined],
  [{ email_verified: true }, undefined],
])('only a verified address counts: %j', (claims, address) => {
  expect(addressOf(claims)).toBe(address)
})

test('the address and its verification are of one source', () => {
  const unsure = { iss: ann.iss, sub: ann.sub, email: 'owner@example.com' }
  expect(accountOf(unsure, { email_verified: true }, noRoles).address).toBeUndefined()
  expect(accountOf(unsure, ann, noRoles).address).toBe('ann@example.com')
})

describe('the role', () => {
  test.each([
    [{ groups: ['guests', 'mail-owners'] }, {}, 'owner'],
    [{ groups: 'staff' }, {}, 'viewer'],
    [{ groups: { staff: { id: 'x' } } }, {}, 'viewer'],
    [{}, { groups: ['staff'] }, 'viewer'],
  ])('of %j and %j is %s', (claims, more, role) => {
    expect(roleOf([claims, more], settings)).toBe(role)
  })

  test.each([[{ groups: ['Staff', 'other'] }], [{ groups: [] }], [{ groups: 5 }], [{ groups: null }], [{}], [{ groups: [['staff']] }]])(
    'of %j is refused',
    (claims) => {
      expect(() => roleOf([claims, {}], settings)).toThrow('has no role')
      expect(roleOf([claims, {}], noRoles)).toBeUndefined()
    },
  )

  test('the ID token has precedence over the user info', () => {
    expect(() => roleOf([{ groups: [] }, { groups: ['mail-owners'] }], settings)).toThrow('has no role')
  })
})

test('a claim is found by its whole name, or by the names on the way to it', () => {
  const claims = { realm_access: { roles: ['a'] }, 'https://example.com/roles': ['b'] }
  expect(claimAt(claims, 'realm_access.roles')).toEqual(['a'])
  expect(claimAt(claims, 'https://example.com/roles')).toEqual(['b'])
  for (const name of ['realm_access.groups', 'constructor', 'realm_access.__proto__', '']) expect(claimAt(claims, name)).toBeUndefined()
})

test.each([[''], ['x'.repeat(256)], ['jörg'], ['a\u0000b'], [7], [undefined]])('the subject %j is refused', (sub) => {
  expect(() => accountOf({ ...ann, sub }, {}, noRoles)).toThrow('1 to 255 ASCII characters')
})
