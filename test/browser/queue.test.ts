/** The Queue page with more recipient domains than it lists, and of one tenant, whose actions say which mail they concern. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { expectFine, hasChromium, openPage, startBrowser, startDashboardService } from './chromium.ts'

const look = { width: 1440, theme: 'light' } as const
const perRequest = 34

let service: Service
let browser: Browser
let tenantId = ''
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService({
    settings: { POSTRIDER_RELAY: 'smtp://127.0.0.1:1', POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  browser = await startBrowser()
  tenantId = await service.makeTenant('Shop')
  await service.addDomain(service.tenantId, 'house.test')
  await service.addDomain(tenantId, 'shop.test')
  const send = async (from: string, to: string[], tenant: string) => {
    const body = { from, to, subject: 'A', text: 'B', tenantId: tenant }
    expect((await service.call('POST', '/emails', { key: service.liveKey, body })).status).toBe(200)
  }
  for (const part of [0, 1, 2])
    await send(
      'a@house.test',
      Array.from({ length: perRequest }, (_, index) => `ann@many${part * perRequest + index}.test`),
      service.tenantId,
    )
  await send('a@shop.test', ['ann@many0.test'], tenantId)
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

describe.skipIf(!hasChromium)('the queue', () => {
  test('has figures of all queues, and with a tenant its actions say which mail they concern', async () => {
    const watched = await openPage(browser, service, look)
    const { page, origin } = watched
    const [name = '', value = ''] = cookieOf(await useLink(service, await invite(service, 'owner@house.test', 'owner'))).split('=')
    await watched.context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Strict' }])
    await page.goto('/queue')
    await page.getByText('Only the 100 longest of 102 queues are shown.').waitFor()
    await page.getByRole('definition').getByText('103 deferred').waitFor()
    await page.getByRole('button', { name: 'Pause a recipient domain', exact: true }).waitFor()

    await page.getByLabel('Tenant').selectOption({ label: 'Shop' })
    await page.getByRole('definition').getByText('1 deferred', { exact: true }).waitFor()
    await expectFine(watched, 'queue-of-tenant', look)
    await page.getByRole('button', { name: 'Pause for all tenants: many0.test' }).click()
    await page.getByRole('dialog').getByRole('heading', { name: 'Pause a recipient domain for all tenants' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Retry all now' }).click()
    await page.getByRole('dialog').getByText('Retry all deferred mail of Shop now?').waitFor()
    const [all] = await Promise.all([
      page.waitForRequest('**/queue/flush'),
      page.getByRole('dialog').getByRole('button', { name: 'Retry all now' }).click(),
    ])
    expect(all.postDataJSON()).toEqual({ tenantId })
    await page.getByRole('button', { name: 'Retry now: many0.test' }).and(page.locator(':enabled')).waitFor()
    const [one] = await Promise.all([
      page.waitForRequest('**/queue/flush'),
      page.getByRole('button', { name: 'Retry now: many0.test' }).click(),
    ])
    expect(one.postDataJSON()).toEqual({ tenantId, destination: 'many0.test' })

    await page.getByRole('button', { name: 'Pause for all tenants: many0.test' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Pause for all tenants' }).click()
    const resume = page.getByRole('button', { name: 'Resume for all tenants: many0.test' })
    // In the list and under "Paused".
    await expect.poll(() => resume.count()).toBe(2)
    await watched.context.close()
  })
})
