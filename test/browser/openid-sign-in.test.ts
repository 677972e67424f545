/** Sign-in with an identity provider in a real browser, which decides the cookies that a link of another site sends. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { invite } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid-provider.ts'
import { freePort } from '../support/spawned-service.ts'
import { expectFine, hasChromium, openPage, startBrowser, startDashboardService } from './chromium.ts'

let provider: OpenIdProvider
let service: Service
let browser: Browser
beforeAll(async () => {
  if (!hasChromium) return
  const port = await freePort()
  const publicUrl = `http://localhost:${port}`
  provider = await startOpenIdProvider({ redirectUri: `${publicUrl}/sign-in/openid` })
  const settings = { PORT: String(port), POSTRIDER_PUBLIC_URL: publicUrl, POSTRIDER_OIDC_NAME: 'Example login', ...provider.settings }
  service = await startDashboardService({ settings })
  browser = await startBrowser()
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
  await provider[Symbol.asyncDispose]()
})

describe.skipIf(!hasChromium)('the button of the identity provider', () => {
  test('leads there and back into the dashboard, or to a page that names the reason', async () => {
    const look = { width: 390, theme: 'light' } as const
    const watched = await openPage(browser, service, look)
    const { page, context } = watched
    await invite(service, 'ann@house.test', 'owner')
    provider.accounts.set('eve', { email: 'eve@house.test', email_verified: true })
    provider.accounts.set('ann', { email: 'ann@house.test', email_verified: true })
    await page.goto('/sign-in')
    const button = page.getByRole('button', { name: 'Sign in with Example login' })
    await button.waitFor()
    await expectFine(watched, 'sign-in-openid', look)

    provider.next = 'eve'
    await button.click()
    await page.getByRole('heading', { name: 'Sign-in failed' }).waitFor()
    await page.getByText('The address eve@house.test does not belong to a member of the organisation.').waitFor()
    await page.getByRole('link', { name: 'Sign in' }).click()

    // Another browser: the identity provider remembers who signed in.
    await context.clearCookies()
    provider.next = 'ann'
    await button.click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    expect(new URL(page.url()).search).toBe('')
    const cookies = await context.cookies(`http://localhost:${service.port}`)
    expect(Object.fromEntries(cookies.map(({ name, sameSite }) => [name, sameSite]))).toEqual({
      postrider: 'Strict',
      'postrider-device': 'Strict',
    })
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()

    // The requests of the identity provider leave the origin.
    watched.complaints.splice(0)
    await page.goto('/settings')
    await page.getByText('You sign in with the identity provider.').waitFor()
    await page.getByText('You are signed in').waitFor()
    for (const name of ['Change password', 'Turn on']) expect(await page.getByRole('button', { name }).count(), name).toBe(0)
    await expectFine(watched, 'settings-openid', look)
    await page.goto('/members')
    await page.getByText('ann@house.test You').waitFor()
    expect(await page.getByText('without a second factor').count()).toBe(0)
    await expectFine(watched, 'members-openid', look)
    await context.close()
  })
})

describe.skipIf(!hasChromium)('without passwords', () => {
  test('a new member gets no link, and another account can be bound', async () => {
    const port = await freePort()
    const publicUrl = `http://localhost:${port}`
    await using own = await startOpenIdProvider({ redirectUri: `${publicUrl}/sign-in/openid` })
    const settings = { PORT: String(port), POSTRIDER_PUBLIC_URL: publicUrl, POSTRIDER_PASSWORD_SIGN_IN: 'off', ...own.settings }
    await using strict = await startDashboardService({ settings })
    const look = { width: 1440, theme: 'light' } as const
    const signInAs = async (name: string) => {
      own.accounts.set(name, { email: `${name}@house.test`, email_verified: true })
      own.next = name
      const watched = await openPage(browser, strict, look)
      await watched.page.goto('/sign-in')
      await watched.page.getByRole('button', { name: 'Sign in with' }).click()
      await watched.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
      watched.complaints.splice(0)
      return watched
    }
    await invite(strict, 'ann@house.test', 'owner')
    const watched = await signInAs('ann')
    const { page, context } = watched
    await page.goto('/members')
    await page.getByRole('button', { name: 'Add member' }).first().click()
    await page.getByLabel('Email address').fill('bea@house.test')
    await page.getByText('The member signs in with the identity provider').waitFor()
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByText('bea@house.test was added').waitFor()
    const row = page.getByRole('row', { name: 'bea@house.test' })
    await row.getByText('Not signed in yet').waitFor()
    expect(await page.getByText('without a second factor').count()).toBe(0)
    await expectFine(watched, 'members-without-passwords', look)

    const other = await signInAs('bea')
    await page.reload()
    await row.getByText('Active', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Actions for bea@house.test' }).click()
    expect(await page.getByRole('menuitem', { name: 'Create new link' }).count()).toBe(0)
    await page.getByRole('menuitem', { name: 'Reset account' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click()
    await row.getByText('Not signed in yet').waitFor()
    await other.page.goto('/emails')
    await other.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    for (const one of [context, other.context]) await one.close()
  })
})
