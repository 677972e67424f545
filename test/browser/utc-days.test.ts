/** Charts of days in UTC: each column is named by its own day, east and west of Greenwich, and a table has the same figures. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { invite, password } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { expectFine, hasChromium, openPage, startBrowser, startDashboardService } from './chromium.ts'

let service: Service
let browser: Browser
let domainId = 0
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService()
  browser = await startBrowser()
  await service.addDomain(service.tenantId, 'shop.test')
  const { body } = await service.call('GET', '/domains', { key: service.liveKey })
  domainId = (body.data as { domains: { id: number; name: string }[] }).domains.find(({ name }) => name === 'shop.test')?.id ?? 0
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

const days = ['2026-03-01', '2026-03-02', '2026-03-03', '2026-03-04', '2026-03-05', '2026-03-06', '2026-03-07']
const dayNames = ['Mar 1', 'Mar 2', 'Mar 3', 'Mar 4', 'Mar 5', 'Mar 6', 'Mar 7']

/** Answers requests of the page as the service does, with other fields. */
async function withFields(page: Page, path: string, fields: object): Promise<void> {
  const { body } = await service.call('GET', path, { key: service.liveKey })
  await page.route(`**/v1${path}?*`, (route) => route.fulfill({ json: { ...body, data: { ...(body.data as object), ...fields } } }))
}

const named = async (page: Page, name: string) => {
  const columns = await page.getByRole('img', { name }).locator('[data-tip]').all()
  const tips = await Promise.all(columns.map((one) => one.getAttribute('data-tip')))
  return tips.map((tip) => tip?.split('\n')[0])
}

describe.skipIf(!hasChromium)('days in UTC', () => {
  test.each(['America/Los_Angeles', 'Pacific/Kiritimati'])('are named by their date in %s', async (timezone) => {
    const look = { width: 1440, theme: 'light', timezone } as const
    const watched = await openPage(browser, service, look)
    const { page, context, origin } = watched
    await withFields(page, `/domains/${domainId}/dmarc`, {
      from: days[0],
      totals: { messages: 70, aligned: 63, quarantined: 0, rejected: 0, unauthenticated: 0 },
      days: days.map((day) => ({ day, messages: 10, aligned: 9, quarantined: 0, rejected: 0 })),
    })
    const counts = { accepted: 10, secured: 10, deferred: 0, failed: 1, blocked: 0, bounced: 0, complained: 0 }
    await withFields(page, '/reputation', {
      from: days[0],
      to: days.at(-1),
      totals: { ...counts, dmarc: null },
      days: days.map((day) => ({ day, ...counts })),
    })
    await page.goto(`${origin}/sign-in/${await invite(service, `${timezone.length}@house.test`, 'owner')}`)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL(`${origin}/`)

    await page.goto('/dmarc')
    await page.getByRole('img', { name: 'Over time' }).waitFor()
    expect(await named(page, 'Over time')).toEqual(dayNames)
    await page.getByText('Show as a table').click()
    const table = page.getByRole('region', { name: 'Over time' })
    await table.getByRole('row', { name: 'Mar 1, 2026 9 1' }).waitFor()
    expect(await table.getByRole('row').count()).toBe(days.length + 1)
    await expectFine(watched, 'dmarc-days', look)

    await page.goto('/reputation')
    await page.getByRole('img', { name: 'Complaints per accepted attempt' }).waitFor()
    expect(await named(page, 'Complaints per accepted attempt')).toEqual(dayNames)
    await context.close()
  })
})
