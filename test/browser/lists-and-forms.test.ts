/** Selections, forms and state of the dashboard's pages while the data changes elsewhere. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { hasChromium, openPage, startBrowser, startDashboardService, type Watched } from './chromium.ts'

let service: Service
let browser: Browser
let cookie: string
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService({ settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_DNS: '127.0.0.1:9' } })
  browser = await startBrowser()
  cookie = cookieOf(await useLink(service, await invite(service, 'owner@house.test', 'owner')))
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

async function open(timezone?: string): Promise<Watched> {
  const watched = await openPage(browser, service, { width: 1440, theme: 'light', ...(timezone ? { timezone } : {}) })
  const [name = '', value = ''] = cookie.split('=')
  await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
  return watched
}

async function call<Data>(method: string, path: string, body?: object, key = service.liveKey): Promise<Data> {
  const answer = await service.call(method, path, { key, ...(body ? { body } : {}) })
  if (answer.status >= 300) throw new Error(answer.text)
  return answer.body.data as Data
}

/** In the program, without loading the page again. */
const goWithin = (page: Page, path: string) => page.evaluate(`history.pushState({}, '', '${path}')`)

const inDialog = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true }).click()

async function act(page: Page, on: string, name: string): Promise<void> {
  await page.getByRole('button', { name: `Actions for ${on}`, exact: true }).click()
  await page.getByRole('menuitem', { name, exact: true }).click()
}

describe.skipIf(!hasChromium)('a dialog sends only changed fields', () => {
  test('of a tenant, so that it does not end a suspension', async () => {
    const { page, context } = await open()
    const id = await service.makeTenant('Shop')
    await page.goto('/tenants')
    await act(page, 'Shop', 'Edit')
    await call('PATCH', `/tenants/${id}`, { status: 'suspended' })
    await page.getByRole('dialog').getByLabel('Name').fill('Shop two')
    await inDialog(page, 'Save')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await call('GET', `/tenants/${id}`)).toMatchObject({ name: 'Shop two', status: 'suspended' })
    await call('DELETE', `/tenants/${id}`)
    await context.close()
  })

  test('of the bounds of a key, with times of the chosen zone', async () => {
    const { page, context } = await open('America/New_York')
    await page.addInitScript(`localStorage.setItem('time-zone', 'Asia/Kolkata')`)
    const { id } = await call<{ id: number }>('POST', '/credentials', { name: 'narrow', type: 'api', sendLimit: 100 })
    await page.goto('/keys')
    await act(page, 'narrow', 'Change bounds')
    await call('PATCH', `/credentials/${id}`, { sendLimit: 50 })
    await page.getByLabel('Expires').fill('2030-01-31T12:00')
    await inDialog(page, 'Save')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await call('GET', `/credentials/${id}`)).toMatchObject({ sendLimit: 50, expiresAt: '2030-01-31T06:30:00.000Z' })
    await act(page, 'narrow', 'Change bounds')
    expect(await page.getByLabel('Expires').inputValue()).toBe('2030-01-31T12:00')
    await inDialog(page, 'Save')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await context.close()
  })
})

describe.skipIf(!hasChromium)('a page of one item', () => {
  test('of a webhook shows no secret of another, and none from before a rotation', async () => {
    const { page, context } = await open()
    const [one, two] = await Promise.all(
      ['one', 'two'].map((name) => call<{ id: string }>('POST', '/webhooks', { name, url: 'https://127.0.0.1:9/' })),
    )
    await page.goto(`/webhooks/${one?.id}`)
    await page.getByRole('button', { name: 'Show secret' }).click()
    await page.getByText(/^whsec_/).waitFor()
    await goWithin(page, `/webhooks/${two?.id}`)
    await page.getByRole('heading', { name: 'two', exact: true }).waitFor()
    expect(await page.getByText(/^whsec_/).count()).toBe(0)
    await page.getByRole('button', { name: 'Show secret' }).click()
    await page.getByText(/^whsec_/).waitFor()
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Rotate secret' }).click()
    await inDialog(page, 'Rotate secret')
    await page
      .getByRole('dialog')
      .getByText(/^whsec_/)
      .waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.getByText(/^whsec_/).count()).toBe(0)
    await context.close()
  })

  test('of a template asks before an unsaved draft is lost', async () => {
    const { page, context } = await open()
    const { id } = await call<{ id: string }>('POST', '/templates', { name: 'draft', subject: 'A', text: 'Hello' })
    await page.goto(`/templates/${id}`)
    await page.getByLabel('Subject').fill('B')
    await page.getByRole('link', { name: 'Keys', exact: true }).click()
    await page.getByText('Leave without saving?').waitFor()
    await inDialog(page, 'Cancel')
    expect(await page.getByLabel('Subject').inputValue()).toBe('B')
    await page.getByRole('link', { name: 'Keys', exact: true }).click()
    await inDialog(page, 'Leave')
    await page.getByRole('button', { name: 'Create key' }).waitFor()
    expect(await call('GET', `/templates/${id}`)).toMatchObject({ subject: 'A' })
    await context.close()
  })
})

describe.skipIf(!hasChromium)('a selection', () => {
  test('ends with its page; an address that is gone already counts as removed', async () => {
    const { page, context, complaints } = await open()
    const suppressions = Array.from({ length: 40 }, (_one, index) => ({ address: `chosen${String(index).padStart(2, '0')}@one.test` }))
    await call('POST', '/suppressions/bulk', { suppressions })
    await page.goto('/suppressions?address=chosen')
    const bar = page.getByRole('region', { name: 'Actions' })
    const rows = page.getByRole('checkbox', { name: /^Select chosen/ })
    await rows.first().check()
    await bar.getByText('1 selected').waitFor()
    await page.getByRole('button', { name: 'Older' }).click()
    await bar.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Newer' }).click()
    await page.getByText('chosen39@one.test').waitFor()
    for (const name of ['chosen39', 'chosen38']) await page.getByRole('checkbox', { name: `Select ${name}@one.test` }).check()
    await bar.getByText('2 selected').waitFor()
    await call('DELETE', '/suppressions/chosen39@one.test')
    await bar.getByRole('button', { name: 'Allow again' }).click()
    await inDialog(page, 'Allow again')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByText('chosen38@one.test').waitFor({ state: 'detached' })
    expect(complaints.filter((one) => !one.includes('/v1/suppressions/chosen39'))).toEqual([])
    await context.close()
  })

  test('of emails is acted on where the status allows it', async () => {
    const { page, context } = await open()
    const send = async (to: string) =>
      (await call<{ id: string }>('POST', '/emails', { from: 'a@simulator.test', to: [to], subject: 'A', text: 'B' }, service.testKey)).id
    const ids = [await send('delivered+bulk@simulator.test'), await send('hardfail+bulk@simulator.test')]
    const statuses = () => Promise.all(ids.map(async (id) => (await call<{ status: string }>('GET', `/emails/${id}`)).status))
    await vi.waitUntil(async () => (await statuses()).join() === 'sent,hardfail', { timeout: 20_000, interval: 50 })
    await page.goto('/emails?mail=test')
    for (const name of ['delivered', 'hardfail']) await page.getByRole('checkbox', { name: `Select ${name}+bulk@simulator.test` }).check()
    await page.getByRole('region', { name: 'Actions' }).getByRole('button', { name: 'Retry now' }).click()
    await page.getByText('Retry now: 1 done, 1 left out by status.').waitFor()
    await context.close()
  })
})

test.skipIf(!hasChromium)('a saved list of suppressions is imported with its original reasons', async () => {
  const { page, context } = await open()
  await page.goto('/suppressions')
  await page.getByRole('button', { name: 'Import CSV' }).click()
  const rows = `address,reason\r\nguarded@one.test,'=1+1\r\nplain@one.test,'tis a reason\r\n`
  const file = { name: 'list.csv', mimeType: 'text/csv', buffer: Buffer.from(rows) }
  await page.getByRole('dialog').getByLabel('File').setInputFiles(file)
  await page.getByText('2 added, 0 already listed, 0 invalid.').waitFor()
  expect(await call('GET', '/suppressions/guarded@one.test')).toMatchObject({ reason: '=1+1' })
  expect(await call('GET', '/suppressions/plain@one.test')).toMatchObject({ reason: "'tis a reason" })
  await context.close()
})

test.skipIf(!hasChromium)('the tenant selector has a chosen tenant beyond the newest 100, and forgets one that is gone', async () => {
  const { page, context } = await open()
  const first = await service.makeTenant('Oldest')
  for (let made = 0; made < 100; made++) await service.makeTenant(`Tenant ${made}`)
  await page.addInitScript(`sessionStorage.getItem('tenant') === null && sessionStorage.setItem('tenant', '${first}')`)
  await page.goto('/keys')
  const selector = page.getByRole('combobox', { name: 'Tenant' })
  await expect.poll(() => selector.locator('option:checked').textContent()).toBe('Oldest')
  await call('DELETE', `/tenants/${first}`)
  await page.reload()
  await expect.poll(() => page.evaluate(`sessionStorage.getItem('tenant')`)).toBe('')
  await expect.poll(() => selector.inputValue()).toBe('')
  await context.close()
})
