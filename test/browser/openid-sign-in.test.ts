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
    await context.close()
  })
})
