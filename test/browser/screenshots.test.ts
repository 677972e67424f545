/**
 * A screenshot of every page, on a phone and on a wide screen, light and dark: artifacts/dashboard/pages/. The list of pages comes from the
 * program itself, so that no page is forgotten. Each page passes the same checks as elsewhere: readable, not too wide, without errors.
 */
import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'
import { expectFine, hasChromium, type Look, openPage, startBrowser, startDashboardService, type Watched } from './chromium.ts'

const looks: Look[] = [390, 1440].flatMap((width) => (['light', 'dark'] as const).map((theme) => ({ width, theme })))
const paths = [...readFileSync('dashboard/src/main.tsx', 'utf8').matchAll(/\bat\('(\/[^']*)'/g)].map(([, path = '']) => path)
const nameOf = (path: string) => path.slice(1).replaceAll('/', '-').replaceAll('$', '') || 'home'

let service: Service
let browser: Browser
let dns: TestDns
/** Values for `$emailId` and the other placeholders. */
const ids: Record<string, string> = {}
beforeAll(async () => {
  if (!hasChromium) return
  dns = await startTestDns()
  service = await startDashboardService({ settings: { POSTRIDER_DNS: dns.address } })
  browser = await startBrowser()
  const make = async <Made>(path: string, body: object) =>
    (await service.call('POST', path, { key: service.testKey, body })).body.data as Made
  for (const [to, subject] of [
    ['delivered', 'Your order'],
    ['hardfail', 'Your invoice'],
    ['softfail', 'A subject that is as long as people make them, so that it takes more than one line on a phone'],
  ] as const) {
    const content = { subject, html: `<h1>${subject}</h1><p>Thank you. <a href="https://shop.example/">Shop</a></p>`, text: subject }
    ids.emailId = (await make<{ id: string }>('/emails', { from: 'shop@simulator.test', to: [`${to}@simulator.test`], ...content })).id
  }
  ids.domainId = String((await make<{ id: number }>('/domains', { name: 'mail.example.com' })).id)
  await make('/tracking', { domainId: ids.domainId, name: 'click' })
  ids.webhookId = (await make<{ id: string }>('/webhooks', { name: 'shop', url: 'https://shop.example/hook', allEvents: true })).id
  await make('/suppressions', { address: 'ann@example.org', reason: 'asked by phone' })
  ids.tenantId = await service.makeTenant('Second shop')
  await vi.waitUntil(
    async () => {
      const { data } = (await service.call('GET', '/logs?perPage=100', { key: service.testKey })).body
      ids.requestId = (data as { requestId: string }[])[0]?.requestId ?? ''
      const emails = (await service.call('GET', '/emails', { key: service.testKey })).body.data as { status: string }[]
      return ids.requestId !== '' && emails.every(({ status }) => status !== 'pending')
    },
    { timeout: 20_000, interval: 100 },
  )
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
  await dns.close()
})

test.skipIf(!hasChromium)('there are pages', () => {
  expect(paths.length).toBeGreaterThan(15)
})

test.skipIf(!hasChromium)('the API reference stays here: it leads to the guide, and to no service of its maker', async () => {
  const { page, context, complaints } = await openPage(browser, service, { width: 1440, theme: 'light' })
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
    watched = await openPage(browser, service, look)
    const session = await useLink(service, await invite(service, `owner-${look.width}-${look.theme}@house.test`, 'owner'))
    const [name = '', value = ''] = cookieOf(session).split('=')
    await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
  })
  afterAll(() => watched.context.close())

  test.each(paths)('%s', async (path) => {
    const { page } = watched
    const address = path.replaceAll(/\$(\w+)/g, (_, name: string) => ids[name] ?? '')
    expect(address, `a page of this test's own for ${path}`).not.toContain('//')
    await page.goto(path === '/inbox' && look.width > 1000 ? `/inbox?open=${ids.emailId}` : address)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await expect.poll(() => page.title()).toBe(`${await page.getByRole('heading', { level: 1 }).innerText()} · Postrider`)
    await page.waitForLoadState('networkidle').catch(() => undefined)
    await expectFine(watched, `pages/${nameOf(path)}`, look)
  })
})
