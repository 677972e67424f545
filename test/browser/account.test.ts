/** The signed-in person's own settings in a real browser: a new password ends other sessions, and a time zone changes all shown times. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cookieOf, fromElsewhere, invite, password, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import {
  expectFine,
  hasChromium,
  type Look,
  looks,
  openPage,
  startBrowser,
  startDashboardService,
  takeRefusal,
  type Watched,
} from './chromium.ts'

const newPassword = 'staple battery horse'

let service: Service
let browser: Browser
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService()
  browser = await startBrowser()
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

async function withCookie(look: Look, cookie: string): Promise<Watched> {
  const watched = await openPage(browser, service, look)
  const [name = '', value = ''] = cookie.split('=')
  await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
  return watched
}

describe.skipIf(!hasChromium).each(looks)('at $width px, $theme', (look) => {
  test('the own password is changed, and another browser is signed out', async () => {
    const address = `own-${look.width}-${look.theme}@house.test`
    const here = await withCookie(look, cookieOf(await useLink(service, await invite(service, address, 'viewer'))))
    const there = await openPage(browser, service, look)
    await there.page.goto('/sign-in')
    await there.page.getByLabel('Email address').fill(address)
    await there.page.getByLabel('Password').fill(password)
    await there.page.keyboard.press('Enter')
    await there.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()

    const { page } = here
    await page.goto('/settings')
    await page.getByRole('button', { name: 'Change password' }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Current password').fill('not the password')
    await dialog.getByLabel('New password').fill(newPassword)
    await page.keyboard.press('Enter')
    await dialog.getByText('wrong address or password').waitFor()
    await takeRefusal(here, '/dashboard/api/password')
    await dialog.getByLabel('Current password').fill(password)
    await expectFine(here, 'password-change', look)
    await page.keyboard.press('Enter')
    await page.getByText('Your other sessions have ended.').waitFor()
    await dialog.waitFor({ state: 'detached' })
    await expectFine(here, 'settings-account', look)

    await there.page.goto('/emails')
    await there.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await there.context.setExtraHTTPHeaders(fromElsewhere())
    await there.page.getByLabel('Email address').fill(address)
    await there.page.getByLabel('Password').fill(newPassword)
    await there.page.keyboard.press('Enter')
    await there.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await here.context.close()
    await there.context.close()
  })
})

describe.skipIf(!hasChromium)('the time zone', () => {
  const look: Look = { width: 1440, theme: 'light', timezone: 'America/New_York' }

  test('is that of the browser until another is chosen, which this browser keeps for all times and date fields', async () => {
    const body = { from: 'shop@simulator.test', to: ['delivered@simulator.test'], subject: 'When', text: 'T' }
    const { id } = (await service.call('POST', '/emails', { key: service.testKey, body })).body.data as { id: string }
    const accepted = (await service.call('GET', `/emails/${id}`, { key: service.testKey })).body.data as { timestampIso: string }
    const shownIn = (zone: string) =>
      new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeStyle: 'medium', timeZone: zone }).format(new Date(accepted.timestampIso))
    const watched = await withCookie(look, cookieOf(await useLink(service, await invite(service, 'zone@house.test', 'owner'))))
    const { page } = watched
    const acceptedAt = page.locator(`time[datetime="${accepted.timestampIso}"]`).first()
    const plain = (text: string) => text.replaceAll(/\s/g, ' ')
    await page.goto(`/emails/${id}`)
    expect(plain(await acceptedAt.innerText())).toBe(plain(shownIn('America/New_York')))
    await page.goto('/settings')
    expect(await page.getByLabel('Time zone').locator('option:checked').innerText()).toBe('Same as the browser (America/New_York)')
    await page.getByLabel('Time zone').selectOption('Asia/Tokyo')
    await page.goto(`/emails/${id}`)
    expect(plain(await acceptedAt.innerText())).toBe(plain(shownIn('Asia/Tokyo')))
    await acceptedAt.hover()
    await page.getByRole('tooltip').getByText('(Asia/Tokyo)').waitFor()

    const tokyo = new Date(Date.parse(accepted.timestampIso) + 9 * 3_600_000)
    const field = (minutes: number) => new Date(tokyo.getTime() + minutes * 60_000).toISOString().slice(0, 16)
    await page.goto(`/emails?mail=test&after=${field(-5)}&before=${field(5)}`)
    await page.getByText('1 in total').waitFor()
    await page.goto(`/emails?mail=test&after=${field(5)}`)
    await page.getByText('No emails match').waitFor()
    const asked = page.waitForRequest(/over-time/)
    await page.goto('/')
    expect(new URL((await asked).url()).searchParams.get('timezone')).toBe('Asia/Tokyo')
    await page.goto('/settings')
    await page.getByLabel('Time zone').selectOption('')
    await page.goto(`/emails/${id}`)
    expect(plain(await acceptedAt.innerText())).toBe(plain(shownIn('America/New_York')))
    expect(watched.complaints).toEqual([])
    await watched.context.close()
  })
})
