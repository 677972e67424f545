/** Members who sign in with an identity provider (docs/sign-in.md): it replaces their password and their second factor. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '#db'
import { type Service, startService } from '../support/in-process-service.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid-provider.ts'
import { ask, cookieOf, elsewhere, fromElsewhere, fromOurPages, invite, signedIn } from './signed-in-browser.ts'

const publicUrl = 'http://dashboard.test'
const common = { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8', POSTRIDER_PUBLIC_URL: publicUrl }

let provider: OpenIdProvider
let service: Service
/** Without passwords. */
let strict: Service
beforeAll(async () => {
  provider = await startOpenIdProvider({ redirectUri: `${publicUrl}/sign-in/openid` })
  service = await startService({ settings: { ...common, ...provider.settings } })
  strict = await startService({ settings: { ...common, ...provider.settings, POSTRIDER_PASSWORD_SIGN_IN: 'off' } })
})
afterAll(async () => {
  await Promise.all([service.stop(), strict.stop()])
  await provider[Symbol.asyncDispose]()
})

/** Signs in an owner with an account of the identity provider; returns the headers of the owner's requests. */
async function ownerByProvider(on: Service, name: string): Promise<Record<string, string>> {
  const email = `${name}@house.test`
  await invite(on, email, 'owner')
  provider.accounts.set(name, { email, email_verified: true })
  provider.next = name
  const begun = await ask(on, 'POST', '/dashboard/api/openid/begin', elsewhere())
  const query = await provider.visit((begun.data as { url: string }).url)
  const headers = { ...fromElsewhere(), cookie: cookieOf(begun), 'sec-fetch-site': 'cross-site' }
  const { headers: answered, status } = await ask(on, 'GET', `/sign-in/openid?${query}`, headers)
  expect(status).toBe(303)
  const cookie = /(?:^|, )(postrider=\w{43});/.exec(answered.get('set-cookie') ?? '')?.[1] ?? 'none'
  return { ...fromOurPages, cookie }
}

const failures = sql<{ count: number }>`
  select count(*)::integer as count
  from sign_in_failures`

const suggestionOf = ({ text }: { text: string }) => (JSON.parse(text) as { error: { suggestion: string } }).error.suggestion

interface Listed {
  members: { address: string; signsInWith: string; hasPassword: boolean; hasAccount: boolean }[]
  passwordSignIn: boolean
}
const listOf = async (on: Service, owner: Record<string, string>) => {
  const { members, passwordSignIn } = (await ask(on, 'GET', '/dashboard/api/members', owner)).data as Listed
  const facts = members.map((one) => [one.address, one.signsInWith, one.hasPassword, one.hasAccount])
  return { passwordSignIn, members: facts }
}

test('a member without a password is sent to the identity provider, which counts as no guess', async () => {
  const owner = await ownerByProvider(service, 'ann')
  const password = 'correct horse battery'
  for (const [path, body] of [
    ['/password', { currentPassword: password, password: 'staple battery horse' }],
    ['/second-factor/begin', { password }],
    ['/second-factor/remove', { password, code: '123456' }],
    ['/second-factor/recovery-codes', { password, code: '123456' }],
  ] as const) {
    const refused = await ask(service, 'POST', `/dashboard/api${path}`, { ...owner, ...fromElsewhere() }, body)
    expect([refused.status, refused.code], path).toEqual([403, 'permission_denied'])
    expect(suggestionOf(refused)).toBe('Change your password and your second factor at the identity provider')
  }
  expect(await service.db.rows(failures, [])).toEqual([{ count: 0 }])
})

test('the list says how each member signs in, and the account page how its reader does', async () => {
  const owner = await ownerByProvider(service, 'bea')
  const other = await signedIn(service, 'password@house.test', 'viewer')
  await invite(service, 'invited@house.test', 'viewer')
  const { passwordSignIn, members } = await listOf(service, owner)
  expect(passwordSignIn).toBe(true)
  expect(members).toEqual(
    expect.arrayContaining([
      ['bea@house.test', 'provider', false, true],
      ['invited@house.test', 'password', false, false],
      ['password@house.test', 'password', true, false],
    ]),
  )
  expect((await ask(service, 'GET', '/dashboard/api/account', owner)).data).toEqual({ signsInWith: 'provider' })
  expect((await ask(service, 'GET', '/dashboard/api/account', other)).data).toEqual({ signsInWith: 'password' })
})

test('without passwords, only members of tenants get sign-in links', async () => {
  const owner = await ownerByProvider(strict, 'cid')
  const post = async (path: string, body: object) => {
    const reply = await ask(strict, 'POST', `/dashboard/api/members${path}`, owner, body)
    expect(reply.status, reply.text).toBe(200)
    return (reply.data as { signInUrl: string | null }).signInUrl
  }
  const { tenantId } = strict
  expect(await post('', { address: 'new@house.test', role: 'viewer' })).toBeNull()
  expect(await post('', { address: 'new@house.test', role: 'viewer', tenantId })).toContain('/sign-in/')
  expect(await post('/reset', { address: 'new@house.test', tenantId: null })).toBeNull()
  expect(await post('/reset', { address: 'new@house.test', tenantId })).toContain('/sign-in/')
  const { passwordSignIn, members } = await listOf(strict, owner)
  expect(passwordSignIn).toBe(false)
  expect(members).toEqual(
    expect.arrayContaining([
      ['cid@house.test', 'provider', false, true],
      ['new@house.test', 'provider', false, false],
      ['new@house.test', 'password', false, false],
    ]),
  )
})
