/** The dashboard without a mouse: search over everything, rows, selection, sorting, tabs, tooltips and the page for an unknown address. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { expectFine, hasChromium, type Look, openPage, startBrowser, startDashboardService, type Watched } from './chromium.ts'

const look: Look = { width: 1440, theme: 'light' }
const recipientOf = (subject: string) => `hardfail+${subject.toLowerCase()}@simulator.test`

let service: Service
let browser: Browser
let watched: Watched
let page: Page
const ids: string[] = []
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService()
  browser = await startBrowser()
  // Three addresses: after the first failure, mail to the same one would be held.
  for (const subject of ['First', 'Second', 'Third']) {
    const body = { from: 'shop@simulator.test', to: [recipientOf(subject)], subject, text: subject }
    ids.push(((await service.call('POST', '/emails', { key: service.testKey, body })).body.data as { id: string }).id)
  }
  await service.call('POST', '/domains', { key: service.testKey, body: { name: 'mail.example.com' } })
  await service.call('POST', '/domains', { key: service.testKey, body: { name: 'alpha.example.com' } })
  await vi.waitUntil(async () => ((await service.call('GET', '/emails?status=hardfail', { key: service.testKey })).body.total ?? 0) === 3, {
    timeout: 20_000,
    interval: 100,
  })
  watched = await openPage(browser, service, look)
  page = watched.page
  const [name = '', value = ''] = cookieOf(await useLink(service, await invite(service, 'owner@house.test', 'owner'))).split('=')
  await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()

describe.skipIf(!hasChromium)('with the keyboard alone', () => {
  test('Ctrl-K finds a page, an email by its id and by its recipient, and a domain', async () => {
    await page.goto('/')
    await heading('Overview')
    const search = async (text: string, option: string | RegExp) => {
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Find anything' }).fill(text)
      const found = page.getByRole('option', { name: option }).first()
      await found.waitFor()
      for (let tries = 0; tries < 10 && (await found.getAttribute('aria-selected')) !== 'true'; tries++)
        await page.keyboard.press('ArrowDown')
      if (text === 'suppr') await expectFine(watched, 'search', look)
      await page.keyboard.press('Enter')
    }
    await search('suppr', /^Suppressions/)
    await heading('Suppressions')
    await search(ids[0] ?? '', /^Open the email/)
    await heading(recipientOf('First'))
    await search('alpha.example.com', /^alpha\.example\.com/)
    await heading('alpha.example.com')
    await search(recipientOf('Second'), /^Second/)
    await heading(recipientOf('Second'))
    await page.getByText('Second', { exact: true }).waitFor()
  })

  test('? shows the keys, and Escape closes them', async () => {
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).getByText('Next and previous row').waitFor()
    await expectFine(watched, 'keys-help', look)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  test('j and k move between rows, x selects, the bar acts on all of them, and Enter opens one', async () => {
    await page.goto('/emails?mail=test')
    await page
      .getByRole('link', { name: /^hardfail/ })
      .nth(2)
      .waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.keyboard.press('k')
    await page.getByText('2 selected').waitFor()
    await expectFine(watched, 'emails-selected', look)
    await page.getByRole('button', { name: 'Copy IDs' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('2 IDs copied.').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe([ids[2], ids[1]].join('\n'))
    await page.getByRole('button', { name: 'Suppress recipients' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('Suppress recipients: 2 done.').waitFor()
    await page.getByText('2 selected').waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    expect(await page.evaluate('document.activeElement?.closest("search") !== null')).toBe(true)
    await page.getByRole('link', { name: recipientOf('Third') }).focus()
    await page.keyboard.press('Enter')
    await heading(recipientOf('Third'))
  })

  test('arrow keys move between tabs', async () => {
    await page.getByRole('tab', { name: 'Preview' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('region', { name: 'Text' }).getByText('Third').waitFor()
    expect(await page.getByRole('tab', { name: 'Text', exact: true }).getAttribute('aria-selected')).toBe('true')
  })

  test('a column is sorted up and down', async () => {
    await page.goto('/domains')
    const names = () => page.locator('tbody [data-row-link]').allInnerTexts()
    await page.getByRole('button', { name: 'Domain', exact: true }).focus()
    await page.keyboard.press('Enter')
    await expect.poll(names).toEqual(['alpha.example.com', 'mail.example.com', 'simulator.test'])
    expect(await page.getByRole('columnheader', { name: 'Domain' }).getAttribute('aria-sort')).toBe('ascending')
    await page.keyboard.press('Enter')
    await expect.poll(names).toEqual(['simulator.test', 'mail.example.com', 'alpha.example.com'])
  })

  test('Ctrl-K finds the domains of the tenant that was chosen last', async () => {
    const tenantId = await service.makeTenant('Searched')
    await service.addDomain(tenantId, 'searched.example.net')
    const tenant = page.getByRole('combobox', { name: 'Tenant' })
    const found = page.getByRole('option', { name: /^searched\.example\.net/ })
    const search = async (text: string) => {
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Find anything' }).fill(text)
    }
    await page.goto('/')
    await tenant.selectOption(service.tenantId)
    await search('example')
    await page.getByRole('option', { name: /^alpha\.example\.com/ }).waitFor()
    await page.keyboard.press('Escape')
    await tenant.selectOption(tenantId)
    await search('example')
    await found.waitFor()
    await page.keyboard.press('Escape')
    await tenant.selectOption('')
  })

  test('an unknown address has a page that leads back', async () => {
    await page.goto('/emails/one/two')
    await heading('Page not found')
    await page.getByText('/emails/one/two').waitFor()
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Overview' }).waitFor()
    await page.getByRole('link', { name: 'Go to Emails' }).click()
    await heading('Emails')
    await page.goto('/emails/one/two')
    await page.getByRole('link', { name: 'Go to the overview' }).click()
    await heading('Overview')
    expect(watched.complaints).toEqual([])
  })
})

test.skipIf(!hasChromium)('the pointer shows the date, the zone and UTC of a relative time', async () => {
  await page.goto('/emails?mail=test')
  await page.locator('tbody time').first().hover()
  await page
    .getByRole('tooltip')
    .getByText(/\d{4}-\d\d-\d\dT/)
    .waitFor()
  await page.keyboard.press('Escape')
  await expect.poll(() => page.getByRole('tooltip').isVisible()).toBe(false)
})
