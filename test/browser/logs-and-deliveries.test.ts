/** Request logs by key and time, and the next attempt of a webhook's failed delivery, in a real browser on a phone and a wide screen. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { type Sending, startSending } from '#webhooks'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { loopbackPost, plainBodies, sendingConfig } from '../support/webhook-sender-parts.ts'
import { expectFine, hasChromium, looks, openPage, startBrowser, startDashboardService, type Watched } from './chromium.ts'

let service: Service
let browser: Browser
let receiver: Receiver
let sending: Sending
let webhookId = ''
beforeAll(async () => {
  if (!hasChromium) return
  receiver = await startReceiver()
  receiver.answer = (response) => response.writeHead(500).end('{"error":"no such table"}')
  service = await startDashboardService({ settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' } })
  sending = await startSending({
    db: service.db,
    clock: systemClock,
    ids: openIds(systemRandom),
    log: silentLog,
    secrets: service.secrets,
    post: loopbackPost(),
    bodies: plainBodies,
    config: sendingConfig,
    version: 'test',
    processId: 'deliveries',
  })
  browser = await startBrowser()
  const made = async (path: string, body: object) => (await service.call('POST', path, { key: service.testKey, body })).body.data
  webhookId = ((await made('/webhooks', { name: 'broken', url: receiver.url, events: ['MessageSent'] })) as { id: string }).id
  const shop = (await made('/credentials', { name: 'shop-key', type: 'api', mode: 'test' })) as { key: string }
  const message = { from: 'shop@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'T' }
  await service.call('POST', '/emails', { key: shop.key, body: message })
  await service.call('POST', '/emails', { key: service.testKey, body: { ...message, to: [] } })
  await vi.waitUntil(async () => ((await service.call('GET', '/logs', { key: service.testKey })).body.total ?? 0) >= 3, { timeout: 20_000 })
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await sending.stop()
  await service.stop()
  await receiver[Symbol.asyncDispose]()
})

describe.skipIf(!hasChromium).each(looks)('at $width px, $theme', (look) => {
  let watched: Watched
  beforeAll(async () => {
    watched = await openPage(browser, service, look)
    const session = await useLink(service, await invite(service, `logs-${look.width}-${look.theme}@house.test`, 'owner'))
    const [name = '', value = ''] = cookieOf(session).split('=')
    await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
  })
  afterAll(() => watched.context.close())

  test('requests are filtered by key and time, which the address keeps, and cleared', async () => {
    const { page } = watched
    const rows = page.getByRole('region', { name: 'Request logs' }).locator('tbody tr')
    await page.goto('/logs')
    await rows.filter({ hasText: 'POST /v1/credentials' }).first().waitFor()
    await rows.filter({ hasText: 'shop-key' }).first().waitFor()
    const more = page.getByRole('button', { name: 'More filters' })
    if (await more.isVisible()) await more.click()
    await page.getByLabel('Key', { exact: true }).selectOption({ label: 'shop-key (svc_test…)' })
    await expect.poll(() => rows.count()).toBe(1)
    await page.getByLabel('Time', { exact: true }).selectOption('Last hour')
    await page.getByRole('button', { name: 'Remove the filter Time: Last hour' }).waitFor()
    await expect.poll(() => rows.count()).toBe(1)
    await expectFine(watched, 'logs-filtered', look)
    expect(Object.keys(Object.fromEntries(new URL(page.url()).searchParams)).toSorted()).toEqual(['credentialId', 'within'])
    await page.reload()
    await page.getByRole('button', { name: 'Remove the filter Key: shop-key' }).waitFor()
    await expect.poll(() => rows.count()).toBe(1)
    await page.getByRole('button', { name: 'Remove the filter Key: shop-key' }).click()
    await rows.filter({ hasText: 'POST /v1/credentials' }).first().waitFor()
    const findBefore = async (time: string) => {
      await page.getByLabel('To', { exact: true }).fill(time)
      await page.getByRole('button', { name: 'Search' }).click()
    }
    await page.getByLabel('Time', { exact: true }).selectOption('Other dates')
    await findBefore('2020-01-01T00:00')
    await page.getByText('No requests match.').waitFor()
    await findBefore('')
    await rows.filter({ hasText: 'POST /v1/credentials' }).first().waitFor()
    await page.getByLabel('Time', { exact: true }).selectOption('Other dates')
    await findBefore('2020-01-01T00:00')
    await page.getByText('No requests match.').waitFor()
    await expectFine(watched, 'logs-dates', look)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await rows.filter({ hasText: 'POST /v1/credentials' }).first().waitFor()
  })

  test('a failed delivery shows the time of its next attempt', async () => {
    const { page } = watched
    await page.goto(`/webhooks/${webhookId}`)
    const last = page.getByRole('region', { name: 'Deliveries' }).locator('tbody tr:not([data-group])').first()
    await last.getByText('500', { exact: true }).waitFor()
    const next = last.locator('td[data-name="Next attempt"] time')
    // At the time of the next attempt the page still shows the one before.
    const aheadMs = async () => Date.parse((await next.getAttribute('datetime')) ?? '') - Date.now()
    await expect.poll(aheadMs, { timeout: 20_000 }).toBeGreaterThan(0)
    await expectFine(watched, 'webhook-next-attempt', look)
    await last.locator('[data-row-link]').click()
    await page.getByRole('dialog').getByText('Next attempt').waitFor()
    expect(await page.getByRole('link', { name: 'Email', exact: true }).getAttribute('href')).toMatch(/^\/emails\/\w{22}$/)
  })

  test('a delivery of received mail leads to the received message', async () => {
    const { page } = watched
    const payload = { event: 'MessageReceived', tenant_id: service.tenantId, payload: { id: '0123456789abcdefghijkl' } }
    const data = { event: 'MessageReceived', attempt: 1, success: true, statusCode: 200, url: receiver.url, timestamp: new Date() }
    const json = { success: true, data: { ...data, request: { headers: {}, payload }, response: { duration: 1, body: '' } }, meta: {} }
    await page.route(`**/v1/webhooks/${webhookId}/deliveries/*`, (route) => route.fulfill({ json }))
    await page.goto(`/webhooks/${webhookId}`)
    await page.getByRole('region', { name: 'Deliveries' }).locator('[data-row-link]').first().click()
    const link = page.getByRole('link', { name: 'Received message', exact: true })
    expect(await link.getAttribute('href')).toBe('/mail-in/0123456789abcdefghijkl')
    const asked = page.waitForRequest('**/v1/received/0123456789abcdefghijkl?*')
    await link.click()
    expect(new URL((await asked).url()).searchParams.get('tenantId')).toBe(service.tenantId)
  })
})
