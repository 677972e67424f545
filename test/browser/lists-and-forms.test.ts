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
    await page.getByRole('dialog').getByText('Asia/Kolkata').waitFor()
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

  test('of a template shows the stored source until it is edited', async () => {
    const { page, context } = await open()
    const { id } = await call<{ id: string }>('POST', '/templates', { name: 'followed', subject: 'A', text: 'Hello' })
    const store = (subject: string) => call('PATCH', `/templates/${id}`, { subject })
    const subject = page.getByLabel('Subject')
    await page.goto(`/templates/${id}`)
    await expect.poll(() => subject.inputValue()).toBe('A')
    await page.getByRole('link', { name: 'Keys', exact: true }).click()
    await page.getByRole('button', { name: 'Create key' }).waitFor()
    await store('B')
    await page.goBack()
    await expect.poll(() => subject.inputValue()).toBe('B')
    expect(await page.getByText('Unsaved changes').count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Save draft', exact: true }).isDisabled()).toBe(true)

    await store('C')
    await page.getByRole('button', { name: 'Publish' }).click()
    await page.getByText('Same as version 1').waitFor()
    expect(await subject.inputValue()).toBe('C')
    expect(await call('GET', `/templates/${id}`)).toMatchObject({ subject: 'C', publishedVersion: 1 })

    await subject.fill('D')
    await page.getByRole('button', { name: 'Save draft', exact: true }).click()
    await page.getByText('Differs from version 1').waitFor()
    expect(await call('GET', `/templates/${id}`)).toMatchObject({ subject: 'D' })
    await context.close()
  })
})

describe.skipIf(!hasChromium)('while the session cannot be checked', () => {
  const check = '**/dashboard/api/session'
  // The check of a browser that returns to the page.
  const look = (page: Page) => page.evaluate(`window.dispatchEvent(new Event('visibilitychange'))`)

  test('an open form stays, and the check is repeated; its answer may still lead to the sign-in', async () => {
    const { page, context } = await open()
    await page.goto('/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    const field = page.getByRole('dialog').getByLabel('Name', { exact: true })
    await field.fill('half-typed')
    let failed = 0
    await page.route(check, (route) => {
      failed++
      return route.abort()
    })
    await expect.poll(() => look(page).then(() => failed)).toBeGreaterThan(0)
    await expect.poll(() => failed, { timeout: 30_000 }).toBeGreaterThan(3)
    expect(await field.inputValue()).toBe('half-typed')
    await context.clearCookies()
    await page.unroute(check)
    await page.waitForURL('/sign-in')
    await context.close()
  })

  test('a page that just opens says so and appears afterwards', async () => {
    const { page, context } = await open()
    await page.route(check, (route) => route.abort())
    await page.goto('/keys')
    await page.getByText('This page retries automatically.').waitFor()
    await page.unroute(check)
    await page.getByRole('button', { name: 'Create key' }).waitFor()
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

test.skipIf(!hasChromium)('an opened test mail stays open after newer mail has moved it to the second page', async () => {
  const { page, context } = await open()
  const send = (subject: string, count: number) => {
    const to = Array.from({ length: count }, (_one, index) => `delivered+${index}@simulator.test`)
    return call('POST', '/emails', { from: 'a@simulator.test', to, subject, text: 'B' }, service.testKey)
  }
  await send('Kept open', 1)
  await page.goto('/inbox')
  const link = page.getByRole('list', { name: 'Test inbox' }).getByRole('link', { name: 'Kept open' })
  await link.click()
  const heading = page.getByRole('heading', { level: 2, name: 'Kept open' })
  await heading.waitFor()
  await send('Newer', 15)
  await link.waitFor({ state: 'detached' })
  expect(await heading.count()).toBe(1)
  await context.close()
})

describe.skipIf(!hasChromium)('a filter that changes at once', () => {
  test.each([
    { path: '/emails', typed: 'Recipient or subject', menu: 'Accepted', value: 'week' },
    { path: '/logs', typed: 'Request ID, endpoint or status code', menu: 'Time', value: 'day' },
  ])('leaves typed text and the focus of $path as they are', async ({ path, typed, menu, value }) => {
    const { page, context } = await open()
    await page.goto(path)
    const field = page.getByLabel(typed)
    const choice = page.getByLabel(menu, { exact: true })
    await field.fill('half-typed')
    await choice.focus()
    await choice.selectOption(value)
    await page.waitForURL((url) => url.searchParams.get('within') === value)
    await page.getByRole('button', { name: /^Remove the filter/ }).waitFor()
    expect(await field.inputValue()).toBe('half-typed')
    expect(await choice.and(page.locator(':focus')).count()).toBe(1)
    await page.getByRole('button', { name: 'Search', exact: true }).click()
    await expect.poll(() => page.getByRole('button', { name: /^Remove the filter/ }).count()).toBe(2)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await expect.poll(() => field.inputValue()).toBe('')
    await context.close()
  })
})

test.skipIf(!hasChromium)('on Emails, "Other dates" shows the date fields, and a preset clears text that was not submitted', async () => {
  const { page, context } = await open()
  await page.goto('/emails')
  await page.getByLabel('Accepted', { exact: true }).selectOption('Other dates')
  await page.getByLabel('Accepted after', { exact: true }).waitFor()
  const tag = page.getByLabel('Tag', { exact: true })
  await tag.fill('half-typed')
  await page.getByRole('button', { name: 'All', exact: true }).click()
  await expect.poll(() => tag.inputValue()).toBe('')
  await tag.fill('half-typed')
  await page.getByLabel('Accepted', { exact: true }).selectOption('week')
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await expect.poll(() => tag.inputValue()).toBe('')
  await context.close()
})

describe.skipIf(!hasChromium)('the number of a page', () => {
  const pageOf = (page: Page) => new URL(page.url()).searchParams.get('page')

  test('after the last one leads to the last one', async () => {
    const { page, context } = await open()
    const suppressions = Array.from({ length: 40 }, (_one, index) => ({ address: `past${String(index).padStart(2, '0')}@one.test` }))
    await call('POST', '/suppressions/bulk', { suppressions })
    await page.goto('/suppressions?address=past&page=9')
    await page.getByText('past00@one.test').waitFor()
    expect(pageOf(page)).toContain('2')
    await page.getByRole('button', { name: 'Newer' }).click()
    await page.getByText('past39@one.test').waitFor()
    await context.close()
  })

  test('ends with the choice of a tenant; the filters stay', async () => {
    const { page, context } = await open()
    await service.makeTenant('Paged')
    await page.goto('/emails?subject=none&page=3')
    await page.getByRole('combobox', { name: 'Tenant' }).selectOption('Paged')
    await expect.poll(() => pageOf(page)).toBe(null)
    expect(new URL(page.url()).searchParams.get('subject')).toBe('none')
    await context.close()
  })

  test('is the only reason for another address when a tenant is chosen: a page that does not exist stays', async () => {
    const { page, context } = await open()
    await service.makeTenant('Chosen')
    await page.goto('/emails/no/page')
    const selector = page.getByRole('combobox', { name: 'Tenant' })
    await selector.selectOption('Chosen')
    await expect.poll(() => selector.locator('option:checked').textContent()).toBe('Chosen')
    expect(new URL(page.url()).pathname).toBe('/emails/no/page')
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

test.skipIf(!hasChromium)('an email offers to suppress its recipient once it is known that it is not suppressed', async () => {
  const { page, context } = await open()
  const body = { from: 'a@simulator.test', to: ['delivered+known@simulator.test'], subject: 'A', text: 'B' }
  const { id } = await call<{ id: string }>('POST', '/emails', body, service.testKey)
  const { promise: mayLoad, resolve: load } = Promise.withResolvers<void>()
  await page.route('**/emails/*/more', (route) => mayLoad.then(() => route.continue()))
  await page.goto(`/emails/${id}`)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Copy as curl' }).waitFor()
  const suppress = page.getByRole('menuitem', { name: 'Suppress recipient' })
  expect(await suppress.count()).toBe(0)
  load()
  await suppress.waitFor()
  await context.close()
})

describe.skipIf(!hasChromium)('figures that an answer does not have', () => {
  test('are not shown as zero: of a domain beyond those with the most mail', async () => {
    const { page, context } = await open()
    await service.addDomain(service.tenantId, 'small.test')
    const { body } = await service.call('GET', '/reputation?groupBy=domain', { key: service.liveKey })
    let moreGroups = 0
    await page.route('**/v1/reputation?*', (route) => route.fulfill({ json: { ...body, data: { ...(body.data as object), moreGroups } } }))
    const row = page.getByRole('row', { name: /small\.test/ })
    await page.goto('/domains')
    await row.getByText('No mail').waitFor()
    moreGroups = 1
    await Promise.all([page.waitForResponse('**/v1/reputation?*'), page.reload()])
    await row.waitFor()
    expect(await row.getByText('No mail').count()).toBe(0)
    await context.close()
  })

  test('are asked for: of the webhooks of the page', async () => {
    const { page, context } = await open()
    const ids: string[] = []
    for (let index = 0; index < 2; index++)
      ids.push((await call<{ id: string }>('POST', '/webhooks', { name: `hook ${index}`, url: 'http://127.0.0.1:9/', allEvents: true })).id)
    const { promise: mayLoad, resolve: load } = Promise.withResolvers<void>()
    await page.route('**/use/webhooks?*', (route) => mayLoad.then(() => route.continue()))
    const asked = page.waitForRequest((request) => request.url().includes('/use/webhooks'))
    await page.goto('/webhooks')
    expect(new URL((await asked).url()).searchParams.get('webhooks')?.split(',')).toEqual(expect.arrayContaining(ids))
    const row = page.getByRole('row', { name: /hook 1/ })
    await row.waitFor()
    expect(await row.getByText('No requests').count(), 'before they are loaded').toBe(0)
    load()
    await row.getByText('No requests').waitFor()
    await context.close()
  })
})
