/** The privacy of a tenant in a browser: an owner hides contents and counts the data that is left; a viewer sees the reason in their place. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { invite, password } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { expectFine, hasChromium, openPage, startBrowser, startDashboardService, type Watched } from './chromium.ts'

const look = { width: 1440, theme: 'light' } as const
const phone = { width: 390, theme: 'dark' } as const

let service: Service
let browser: Browser
let tenantId = ''
let emailId = ''
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService()
  browser = await startBrowser()
  tenantId = await service.makeTenant('Clinic')
  await service.addDomain(tenantId, 'clinic.test')
  const body = { tenantId, from: 'a@clinic.test', to: ['delivered@simulator.test'], subject: 'Findings', text: 'Between the two of you.' }
  const sent = await service.call('POST', '/emails', { key: service.testKey, body })
  emailId = (sent.body.data as { id: string }).id
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

async function signIn(watched: Watched, address: string, role: 'owner' | 'viewer'): Promise<void> {
  const { page, origin } = watched
  await page.goto(`${origin}/sign-in/${await invite(service, address, role)}`)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${origin}/`)
}

describe.skipIf(!hasChromium)('privacy', () => {
  test('contents that an owner hides are hidden for a viewer, with the reason', { timeout: 60_000 }, async () => {
    const owner = await openPage(browser, service, look)
    await signIn(owner, 'owner@house.test', 'owner')
    await owner.page.goto('/tenants')
    await owner.page.getByRole('button', { name: 'Actions for Clinic' }).click()
    await owner.page.getByRole('menuitem', { name: 'Privacy' }).click()
    const dialog = owner.page.getByRole('dialog')
    await dialog.getByLabel('Days for which contents are kept').fill('7')
    await dialog.getByLabel('Days until addresses of recipients are hashed').fill('60')
    await dialog.getByLabel('Days for which records are kept').fill('90')
    await dialog.getByLabel('Members who see contents').selectOption('Admins and owners')
    await dialog.getByRole('button', { name: 'Count the data that is left' }).click()
    await dialog.getByText('Contents of emails').waitFor()
    await expectFine(owner, 'privacy', look)
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'hidden' })
    const saved = await service.call('GET', `/tenants/${tenantId}/privacy`, { key: service.liveKey })
    expect(saved.body.data).toEqual({ tenantId, contentDays: 7, hashAddressesAfterDays: 60, recordDays: 90, contentVisibleTo: 'admins' })
    await owner.context.close()

    const viewer = await openPage(browser, service, phone)
    await signIn(viewer, 'viewer@house.test', 'viewer')
    await viewer.page.goto(`/emails/${emailId}`)
    await viewer.page.getByText('Hidden for your role').waitFor()
    expect(await viewer.page.locator('iframe').count()).toBe(0)
    await expectFine(viewer, 'hidden-content', phone)
    await viewer.context.close()
  })
})
