/** The link printed by the first start and by the command line signs in to the dashboard. */
import { type TOTP, URI } from 'otpauth'
import { expect, onTestFinished, test } from 'vitest'
import { openIds, readConfig, systemClock, systemRandom } from '#base'
import { ask, cookieOf, elsewhere, fromOurPages, password, signedIn, useLink } from '../dashboard/signed-in-browser.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'
import { startServiceProcess } from '../support/spawned-service.ts'

test("the first start prints where the dashboard is and the owner's sign-in link, which works", { timeout: 90_000 }, async () => {
  const service = await startServiceProcess()
  onTestFinished(() => service[Symbol.asyncDispose]())
  expect(service.output()).toContain(`Dashboard http://localhost:${new URL(service.url).port},`)
  const token = /\/sign-in\/(\w{43}) /.exec(service.output())?.[1]
  const headers = { ...fromOurPages, 'content-type': 'application/json' }
  const body = JSON.stringify({ token, password: 'a long enough password' })
  const answer = await fetch(`${service.url}/dashboard/api/sign-in-link/password`, { method: 'POST', headers, body })
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({ data: { member: { address: 'owner@mail.postrider.test', role: 'owner' } } })
})

function commandsOf({ db, secrets }: Service) {
  const printed: string[] = []
  const ids = openIds(systemRandom)
  const given = { config: readConfig({}), db, secrets, clock: systemClock, ids, random: systemRandom, version: 'test' }
  const run = (...words: string[]) =>
    runHere(words, { withInstallation: (work) => work(given), print: (text) => printed.push(text), environment: { USER: 'ann' } })
  return { run, printed }
}

test('postrider member reset ends the sessions of a member and prints a link that works', async () => {
  await using service = await startService({ settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
  const before = await signedIn(service, 'lost@house.test', 'admin')
  const { run, printed } = commandsOf(service)
  expect(await run('member', 'reset', 'LOST@house.test', '--json')).toBe(0)
  const { signInUrl, role } = JSON.parse(printed[0] ?? '') as { signInUrl: string; role: string }
  expect(role).toBe('admin')
  await expect.poll(async () => (await ask(service, 'GET', '/v1/limits', before)).status).toBe(401)
  const again = await useLink(service, signInUrl.slice(signInUrl.lastIndexOf('/') + 1))
  expect((await ask(service, 'GET', '/v1/limits', { ...fromOurPages, cookie: cookieOf(again) })).status).toBe(200)
  expect(await run('member', 'reset', 'nobody@house.test')).toBe(2)
})

test('postrider member reset-totp lets a member in with the password alone, ends their sessions, and is in the audit log', async () => {
  await using service = await startService({ settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
  const before = await signedIn(service, 'app@house.test', 'owner')
  const begun = await ask(service, 'POST', '/dashboard/api/second-factor/begin', before, { password })
  const app = URI.parse((begun.data as { uri: string }).uri) as TOTP
  expect((await ask(service, 'POST', '/dashboard/api/second-factor/confirm', before, { code: app.generate() })).status).toBe(200)
  const signIn = () => ask(service, 'POST', '/dashboard/api/sign-in', elsewhere(), { address: 'app@house.test', password })
  expect((await signIn()).status).toBe(401)
  const { run, printed } = commandsOf(service)
  expect(await run('member', 'reset-totp', 'APP@house.test')).toBe(0)
  expect(printed[0]).toContain('app@house.test')
  await expect.poll(async () => (await ask(service, 'GET', '/v1/limits', before)).status).toBe(401)
  const again = await signIn()
  expect(again.status).toBe(200)
  const audit = await ask(service, 'GET', '/dashboard/api/audit', { ...fromOurPages, cookie: cookieOf(again) })
  const [signedInAgain, reset] = audit.data as object[]
  expect(signedInAgain).toMatchObject({ action: 'sessions.begin', data: { by: 'password' } })
  expect(reset).toMatchObject({
    actor: { kind: 'command', name: 'ann' },
    action: 'member.reset-totp',
    data: { words: ['APP@house.test'] },
  })
  expect(await run('member', 'reset-totp', 'nobody@house.test')).toBe(2)
})
