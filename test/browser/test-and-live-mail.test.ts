/**
 * The dashboard of a newcomer with only test mail, and of an operator with several tenants: in a browser, on a phone and on a wide screen.
 */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { expectFine, hasChromium, type Look, looks, openPage, startBrowser, startDashboardService, type Watched } from './chromium.ts'

let service: Service
let browser: Browser
let tenantId: string
let bouncedId: string
let domainId: number
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService({
    settings: { POSTRIDER_HOSTNAME: 'vm', POSTRIDER_RELAY: 'smtp://127.0.0.1:1', POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  browser = await startBrowser()
  tenantId = await service.makeTenant('Second shop')
  const post = async <Made>(path: string, body: object, key = service.testKey) =>
    (await service.call('POST', path, { key, body })).body.data as Made
  const email = { from: 'shop@simulator.test', subject: 'Your order', text: 'Thank you.' }
  bouncedId = (await post<{ id: string }>('/emails', { ...email, to: ['bounce@simulator.test'] })).id
  await post('/emails', { ...email, to: ['delivered@simulator.test'] })
  await post('/test/advance', { seconds: 60 })
  domainId = (await post<{ id: number }>('/domains', { name: 'mail.example.com', tenantId })).id
  await post('/webhooks', { name: 'of the tenant', url: 'https://hook.example/', allEvents: true, tenantId })
  await post('/suppressions', { address: 'gone@example.org', tenantId })
  await post(`/tenants/${tenantId}/credentials`, { name: 'tenants-key', type: 'api', mode: 'test' })
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

async function asOwner(look: Look): Promise<Watched> {
  const watched = await openPage(browser, service, look)
  const session = await useLink(service, await invite(service, `owner-${look.width}-${Date.now()}@house.test`, 'owner'))
  const [name = '', value = ''] = cookieOf(session).split('=')
  await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
  return watched
}

describe.skipIf(!hasChromium).each(looks)('with test mail only, at $width px, $theme', (look) => {
  let watched: Watched
  beforeAll(async () => {
    watched = await asOwner(look)
  })
  afterAll(() => watched.context.close())

  test.each(['/', '/emails', '/usage'])('%s shows live mail, says that there is only test mail, and leads to it', async (path) => {
    const { page } = watched
    await page.goto(path)
    await page.getByText(/No live mail/).waitFor()
    await expectFine(watched, `newcomer/no-live${path.replaceAll('/', '-')}`, look)
    await page.getByRole('button', { name: 'Show test mail' }).click()
    await page.waitForURL('**mail=test**')
    await expect.poll(() => page.getByLabel('Mail', { exact: true }).inputValue()).toBe('test')
    await page.getByText(/No live mail/).waitFor({ state: 'detached' })
    if (path === '/emails') await expect.poll(() => page.locator('#content tbody tr').getByText('Test', { exact: true }).count()).toBe(2)
    await expectFine(watched, `newcomer/test${path.replaceAll('/', '-')}`, look)
  })

  test.each([
    ['/keys', 'tenants-key'],
    ['/webhooks', 'of the tenant'],
    ['/suppressions', 'gone@example.org'],
  ])('%s of all tenants shows those of each, with its name', async (path, what) => {
    const { page } = watched
    await page.goto(path)
    await page.getByText(what, { exact: true }).waitFor()
    // The names of tenants come with a request of their own.
    await page.locator('#content').getByText('Second shop').first().waitFor()
    await expectFine(watched, `newcomer/all${path.replaceAll('/', '-')}`, look)
  })

  test('a domain page warns when the records name a host that the internet does not know', async () => {
    const { page } = watched
    await page.goto(`/domains/${domainId}`)
    await page.getByText(/First set POSTRIDER_HOSTNAME/).waitFor()
    await expectFine(watched, 'newcomer/domain', look)
  })

  test('a late bounce is a report that was received, and no attempt', async () => {
    const { page } = watched
    await page.goto(`/emails/${bouncedId}`)
    await page.getByText('Bounce received').waitFor()
    expect(await page.getByText('Attempt 1', { exact: true }).count()).toBe(1)
    expect(await page.getByText('Attempt 2', { exact: true }).count()).toBe(0)
    const report = await page.getByRole('listitem').filter({ hasText: 'Bounce received' }).innerText()
    expect(report).not.toMatch(/took|TLS/)
    await expectFine(watched, 'newcomer/late-bounce', look)
  })
})

describe.skipIf(!hasChromium).each(looks)('with live mail, at $width px, $theme', (look) => {
  let watched: Watched
  beforeAll(async () => {
    watched = await asOwner(look)
  })
  afterAll(() => watched.context.close())

  test('every button of the queue lies on the screen', async () => {
    const { page } = watched
    const key = service.liveKey
    await service.addDomain(service.tenantId, `shop-${look.width}.test`)
    const to = [`a@a-destination-with-a-rather-long-name-${look.width}.example`]
    await service.call('POST', '/emails', { key, body: { from: `a@shop-${look.width}.test`, to, subject: 's', text: 't' } })
    const deferred = async () => (await service.call('GET', '/emails?status=softfail&test=false', { key })).body.total
    await vi.waitFor(async () => expect(await deferred()).toBeGreaterThan(0), { timeout: 20_000, interval: 100 })
    await page.goto('/queue')
    const buttons = page.getByRole('button', { name: /^(Retry now|Pause a-)/ })
    await buttons.first().waitFor()
    for (const button of await buttons.all()) {
      const box = await button.boundingBox()
      expect(box && box.x >= 0 && box.x + box.width <= look.width, JSON.stringify(box)).toBe(true)
    }
    await expectFine(watched, 'newcomer/queue', look)
  })
})
