/**
 * A screenshot of every page with a week of an agency's mail, on a phone and on a wide screen, light and dark: artifacts/dashboard/pages/. The
 * list of pages comes from the program itself, so that no page is forgotten. Each page is readable, not too wide, without errors, and cuts
 * no control off.
 */
import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import { expectFine, hasChromium, type Look, openPage, startBrowser, type Watched } from './chromium.ts'
import { makeRealisticData, type RealisticData } from './realistic-data.ts'

const looks: Look[] = [390, 1440].flatMap((width) => (['light', 'dark'] as const).map((theme) => ({ width, theme })))
const paths = [...readFileSync('dashboard/src/main.tsx', 'utf8').matchAll(/\bat\('(\/[^']*)'/g)].map(([, path = '']) => path)
const nameOf = (path: string) => path.slice(1).replaceAll('/', '-').replaceAll('$', '') || 'home'

/** At least 5,000 emails of six tenants, with failing webhooks. */
const emails = 5100
const madeWithinMs = 900_000

let data: RealisticData
let browser: Browser
/** Values for `$emailId` and the other placeholders. */
let ids: Record<string, string> = {}
beforeAll(async () => {
  if (!hasChromium) return
  data = await makeRealisticData(emails)
  ids = data.ids
  browser = await startBrowser()
}, madeWithinMs)
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await data[Symbol.asyncDispose]()
})

/** Controls of the page that are cut off at the side, outside of regions that scroll and can be focused. */
const cutOff = `[...document.querySelectorAll('#content button, #content a, #content input, #content select')]
  .filter((one) => one.checkVisibility() && !one.closest('[tabindex="0"], [role=tablist]'))
  .filter((one) => { const box = one.getBoundingClientRect(); return box.width > 0 && (box.left < 0 || box.right > innerWidth) })
  .map((one) => one.outerHTML.slice(0, 120))`

test.skipIf(!hasChromium)('there are pages', () => {
  expect(paths.length).toBeGreaterThan(15)
})

test.skipIf(!hasChromium)('the API reference stays here: it leads to the guide, and to no service of its maker', async () => {
  const { page, context, complaints } = await openPage(browser, data.service, { width: 1440, theme: 'light' })
  await page.goto('/docs')
  await page.getByText('Send one email').first().waitFor()
  expect(await page.getByText(/^(Ask AI|Generate MCP|Developer Tools|Deploy|Share)$/).count()).toBe(0)
  await page.getByRole('link', { name: 'guide', exact: true }).first().click()
  await page.waitForURL('**/docs/guide')
  expect(complaints).toEqual([])
  await context.close()
})

describe.skipIf(!hasChromium).each(looks)('at $width px, $theme', (look) => {
  let watched: Watched
  beforeAll(async () => {
    watched = await openPage(browser, data.service, look)
    const session = await useLink(data.service, await invite(data.service, `owner-${look.width}-${look.theme}@house.test`, 'owner'))
    const [name = '', value = ''] = cookieOf(session).split('=')
    await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
  })
  afterAll(() => watched.context.close())

  test.each(paths)('%s', async (path) => {
    const { page } = watched
    const address = path.replaceAll(/\$(\w+)/g, (_, name: string) => ids[name] ?? '?')
    expect(address, `a page of this test's own for ${path}`).not.toContain('?')
    const queries: Record<string, string> = {
      '/queue/waiting': '?destination=gmail.example',
      ...(look.width > 1000 ? { '/inbox': `?open=${ids.testId}` } : {}),
    }
    await page.goto(`${address}${queries[path] ?? ''}`)
    const heading = page.getByRole('heading', { level: 1 })
    await heading.waitFor()
    await expect.poll(async () => (await page.title()).replace(await heading.innerText(), 'Heading')).toBe('Heading · Postrider')
    // A page with a stream of events is never without a request.
    await page.waitForLoadState('networkidle', { timeout: 2000 }).catch(() => undefined)
    // The browser paints a frame only where it is in sight.
    const height = (await page.locator('iframe').count()) > 0 ? await page.evaluate<number>('document.documentElement.scrollHeight') : 900
    await page.setViewportSize({ width: look.width, height })
    await expectFine(watched, `pages/${nameOf(path)}`, look)
    expect(await page.evaluate(cutOff)).toEqual([])
    if (path === '/' || path === '/usage') await page.getByRole('img', { name: /^Emails by outcome/ }).waitFor()
  })

  test.each([
    ['not-found', '/emails/one/two', 'Page not found'],
    ['guide', '/docs/guide', undefined],
  ])('%s', async (name, path, title) => {
    const { page } = watched
    await page.goto(path)
    await page
      .getByRole('heading', { level: 1, ...(title ? { name: title } : {}) })
      .first()
      .waitFor()
    await expectFine(watched, `pages/${name}`, look)
  })

  // On a phone the account is in the menu.
  if (look.width > 1000)
    test('the account stays in sight beside every page', async () => {
      const { page } = watched
      await page.goto('/')
      const signOut = page.getByRole('button', { name: 'Sign out' })
      await signOut.waitFor()
      const box = await signOut.boundingBox()
      expect(box && box.y + box.height).toBeLessThanOrEqual(900)
      expect(box && Math.min(box.width, box.height)).toBeGreaterThanOrEqual(24)
    })
})
