import { expect, test } from 'vitest'
import { readConfig } from './config.ts'

const set = {
  POSTRIDER_OIDC_ISSUER: 'https://login.example.com/realms/main',
  POSTRIDER_OIDC_CLIENT_ID: 'postrider',
  POSTRIDER_OIDC_CLIENT_SECRET: 'secret',
}

test('an identity provider is described by its issuer and the client', () => {
  expect(readConfig({}).oidcIssuer).toBeUndefined()
  const roles = { POSTRIDER_OIDC_ROLE_CLAIM: 'groups', POSTRIDER_OIDC_ROLES: 'owner=a b, viewer=https://x/y=z' }
  expect(readConfig({ ...set, ...roles })).toMatchObject({
    oidcClientId: 'postrider',
    oidcScope: 'openid email',
    passwordSignIn: true,
    oidcRoles: [
      { role: 'owner', value: 'a b' },
      { role: 'viewer', value: 'https://x/y=z' },
    ],
  })
  expect(readConfig({ ...set, POSTRIDER_OIDC_ISSUER: 'http://127.0.0.1:8080' }).oidcIssuer?.port).toBe('8080')
})

test.each([
  [{ POSTRIDER_OIDC_ISSUER: 'http://login.example.com' }, 'is not an https URL'],
  [{ POSTRIDER_OIDC_ISSUER: 'https://login.example.com/?a=b' }, 'is not an https URL'],
  [{ POSTRIDER_OIDC_ISSUER: 'login.example.com' }, 'is not an https URL'],
  [{ POSTRIDER_OIDC_CLIENT_ID: '' }, 'needs POSTRIDER_OIDC_CLIENT_ID'],
  [{ POSTRIDER_OIDC_CLIENT_SECRET: '' }, 'needs POSTRIDER_OIDC_CLIENT_ID'],
  [{ POSTRIDER_OIDC_ROLE_CLAIM: 'groups' }, 'set both or neither'],
  [{ POSTRIDER_OIDC_ROLES: 'owner=a' }, 'set both or neither'],
  [{ POSTRIDER_OIDC_ROLE_CLAIM: 'groups', POSTRIDER_OIDC_ROLES: 'root=a' }, 'is not role=value'],
  [{ POSTRIDER_OIDC_ROLE_CLAIM: 'groups', POSTRIDER_OIDC_ROLES: 'owner=' }, 'is not role=value'],
  [{ POSTRIDER_OIDC_SCOPE: 'email' }, 'does not contain openid'],
  [{ POSTRIDER_OIDC_ISSUER: '', POSTRIDER_PASSWORD_SIGN_IN: 'off' }, 'needs POSTRIDER_OIDC_ISSUER'],
])('%j is refused', (more, problem) => {
  expect(() => readConfig({ ...set, ...more })).toThrow(problem)
})
