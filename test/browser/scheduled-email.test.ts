/** The page of a scheduled email: its time, another time, and the cancellation. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { expectFine, hasChromium, looks, openPage, startBrowser, startDashboardService } from './chromium.ts'

let service: Service
let browser: Browser
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService({ settings: { POSTRIDER_RELAY: 'smtp://127.0.0.1:1', POSTRIDER_DNS: '127.0.0.1:9' } })
  browser = await startBrowser()
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

const hourMs = 3_600_000

interface Details {
  status: string
  scheduledAt: string
  cancelledAt?: string
}

describe.skipIf(!hasChromium).each(looks)('at $width px, $theme', (look) => {
  test('an owner reschedules a scheduled email, then cancels it', async () => {
    const watched = await openPage(browser, service, look)
    const session = await useLink(service, await invite(service, `owner-${look.width}@house.test`, 'owner'))
    const [name = '', value = ''] = cookieOf(session).split('=')
    await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
    const { page } = watched
    const scheduledAt = new Date(Date.now() + 24 * hourMs)
    const body = { from: 'shop@simulator.test', to: ['delivered@simulator.test'], subject: 'Later', text: 'Hello.', scheduledAt }
    const { id } = (await service.call('POST', '/emails', { key: service.testKey, body })).body.data as { id: string }
    const read = async () => (await service.call('GET', `/emails/${id}`, { key: service.testKey })).body.data as Details

    await page.goto(`/emails/${id}`)
    await page.getByText('Scheduled for', { exact: true }).waitFor()
    await expectFine(watched, 'scheduled-email', look)
    await page.getByRole('button', { name: 'Reschedule' }).click()
    const field = page.getByLabel('Scheduled for')
    const later = new Date(scheduledAt.getTime() + 24 * hourMs)
    const inBrowser = await page.evaluate((at) => new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString(), later.getTime())
    await field.fill(inBrowser.slice(0, 16))
    await expectFine(watched, 'reschedule-email', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Reschedule' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect((await read()).scheduledAt.slice(0, 16)).toBe(later.toISOString().slice(0, 16))

    await page.getByRole('button', { name: 'Cancel sending' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel sending' }).click()
    await page.getByText('Cancelled', { exact: true }).waitFor()
    expect(await read()).toMatchObject({ status: 'hardfail', cancelledAt: expect.any(String) })
    expect(await page.getByRole('button', { name: 'Reschedule' }).count()).toBe(0)
    await watched.context.close()
  })
})
