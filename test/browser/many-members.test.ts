/** The page of members with more members than its list holds, and with more tenants than its menu holds. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '#db'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { expectFine, hasChromium, looks, openPage, startBrowser, startDashboardService } from './chromium.ts'

let service: Service
let browser: Browser
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService()
  browser = await startBrowser()
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

const manyMembers = sql`
  insert into members (address, role, created_at)
  select 'm' || lpad(n::text, 4, '0') || '@many.test', 'viewer', now()
  from generate_series(1, 1000) as n
  on conflict do nothing`

const manyTenants = sql`
  insert into tenants (id, name, status, metadata, is_default, created_at, updated_at)
  select 'many' || n, 'Tenant ' || n, 'active', '{}', false, now() - n * interval '1 minute', now()
  from generate_series(1, 120) as n`

describe.skipIf(!hasChromium).each(looks.slice(0, 1))('at $width px, $theme', (look) => {
  test('the page says that the list is cut, and a search finds the other members', async () => {
    const address = `zoe-${look.width}-${look.theme}@house.test`
    const [name = '', value = ''] = cookieOf(await useLink(service, await invite(service, address, 'owner'))).split('=')
    await service.db.run(manyMembers, [])
    const watched = await openPage(browser, service, look)
    const { page, context } = watched
    await context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
    await page.goto('/members')
    await page.getByText('Only the first 1,000 are listed.').waitFor()
    const own = page.getByText(`${address} You`)
    expect(await own.count()).toBe(0)
    await page.getByLabel('Address contains').fill('Zoe-')
    await own.waitFor()
    await page.getByText('Only the first 1,000 are listed.').waitFor({ state: 'detached' })
    await expectFine(watched, 'members-search', look)
    await page.getByLabel('Address contains').fill('absent')
    await page.getByText('No member has such an address.').waitFor()
    await context.close()
  })

  test('a dialog says that older tenants are not in its menu, and has the selected one', async () => {
    const address = `tenants-${look.width}-${look.theme}@house.test`
    const [name = '', value = ''] = cookieOf(await useLink(service, await invite(service, address, 'owner'))).split('=')
    await service.db.run(manyTenants, [])
    const watched = await openPage(browser, service, look)
    const { page, context } = watched
    await context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
    await page.goto('/tenants?page=3')
    await page.getByRole('link', { name: 'Tenant 119', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.goto('/members')
    await page.getByRole('button', { name: 'Add member' }).click()
    await page.getByText('Only the newest 100 tenants are listed.').waitFor()
    await page.getByLabel('Access').selectOption('Only Tenant 119')
    await expectFine(watched, 'members-many-tenants', look)
    await context.close()
  })
})
