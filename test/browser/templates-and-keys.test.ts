/** The pages of templates and of narrow keys: create, edit, preview, publish and delete a template; bind a key. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { expectFine, hasChromium, type Look, openPage, startBrowser, startDashboardService } from './chromium.ts'

const narrow: Look = { width: 390, theme: 'dark' }
const wide: Look = { width: 1440, theme: 'light' }

let service: Service
let browser: Browser
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService({ settings: { POSTRIDER_RELAY: 'smtp://127.0.0.1:1', POSTRIDER_DNS: '127.0.0.1:9' } })
  await service.addDomain(service.tenantId, 'shop.example')
  browser = await startBrowser()
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

const read = async <Data>(path: string) => (await service.call('GET', path, { key: service.liveKey })).body.data as Data

describe.skipIf(!hasChromium)('an owner', () => {
  const open = async (look: Look, tenantId: string | null = null) => {
    const watched = await openPage(browser, service, look)
    const session = await useLink(service, await invite(service, `owner-${look.width}@${tenantId ?? 'house'}.test`, 'owner', tenantId))
    const [name = '', value = ''] = cookieOf(session).split('=')
    await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
    return watched
  }

  test('creates, edits, previews, sends, publishes, copies and deletes a template', async () => {
    const look = wide
    const watched = await open(look)
    const { page } = watched
    const templateName = `receipt-${look.width}`
    await page.goto('/templates')
    await page.getByText('No templates yet').waitFor()
    await expectFine(watched, 'templates-empty', look)
    await page.getByRole('button', { name: 'Create template' }).click()
    await page.getByLabel('Name', { exact: true }).fill(templateName)
    await page.getByLabel('Subject').fill('Order {{ number }}')
    await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click()

    await page.getByRole('heading', { name: templateName }).waitFor()
    await page
      .getByRole('textbox', { name: 'HTML', exact: true })
      .fill('<p>Hello {{ name }}</p><script>document.body.textContent = "ran"</script>')
    await page.getByText('Values', { exact: true }).click()
    await page.getByRole('textbox', { name: 'name', exact: true }).fill('<b>Ann</b>')
    await page.getByRole('button', { name: 'Edit as JSON' }).click()
    const json = page.getByLabel('Values (JSON)')
    expect(JSON.parse(await json.inputValue())).toEqual({ name: '<b>Ann</b>' })
    await page.getByText('variables.number is required by the template').waitFor()
    await json.fill('{"number": 7, "name": "<b>Ann</b>"}')
    await page.getByText('Order 7').waitFor()
    const frame = page.frameLocator('iframe[title="Preview of the template"]')
    await frame.getByText('Hello <b>Ann</b>').waitFor()
    await expectFine(watched, 'template', look)
    // The preview follows the source, which is not stored.
    expect(await read(`/templates/${templateName}`)).toMatchObject({ html: expect.not.stringContaining('script') })

    await page.getByRole('button', { name: 'Send test' }).click()
    await page.getByLabel('From').fill('shop@shop.example')
    await page.getByRole('dialog').getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const [sent] = await read<{ subject: string; to: string }[]>('/emails')
    expect(sent).toMatchObject({ subject: 'Order 7', to: `owner-${look.width}@house.test` })

    await page.getByRole('button', { name: 'Publish' }).click()
    await page.getByText('Version 1').first().waitFor()
    expect(await read(`/templates/${templateName}`)).toMatchObject({ publishedVersion: 1, html: expect.stringContaining('Hello') })
    await page.getByRole('region', { name: 'Versions' }).getByText('Version 1').waitFor()
    await expectFine(watched, 'template-published', look)
    await page.getByText('Same as version 1').waitFor()
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Duplicate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Duplicate' }).click()
    await page.getByRole('heading', { level: 1, name: `${templateName}-copy` }).waitFor()
    await page.goto('/templates')
    await page.getByRole('row', { name: new RegExp(`^${templateName} Order \\{\\{ number \\}\\}.* Published · v1 1 name`) }).waitFor()
    await expectFine(watched, 'templates', look)
    for (const name of [`${templateName}-copy`, templateName]) {
      await page.getByRole('button', { name: `Actions for ${name}`, exact: true }).click()
      await page.getByRole('menuitem', { name: 'Delete' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    }
    await page.getByText('No templates yet').waitFor()
    await page.goto('/audit')
    await page.getByRole('cell', { name: 'Published a template' }).waitFor()
    expect(await page.getByRole('cell', { name: 'Templates: preview' }).count()).toBe(0)
    await watched.context.close()
  })

  test('binds a key to senders and an expiry, and loosens it', async () => {
    const look = narrow
    const watched = await open(look)
    const { page } = watched
    const keyName = `narrow-${look.width}`
    await page.goto('/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByLabel('Name', { exact: true }).fill(keyName)
    await page.getByText('Bounds (optional)').click()
    await page.getByLabel('Senders').fill('shop.example, billing@other.example')
    await page.getByLabel('Emails per hour').fill('100')
    await expectFine(watched, 'narrow-key', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('Copy the key now').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('Sends from shop.example, billing@other.example').first().waitFor()
    await page.getByText('100 emails per hour').first().waitFor()
    await expectFine(watched, 'narrow-keys', look)
    await page.getByRole('button', { name: `Actions for ${keyName}` }).click()
    await page.getByRole('menuitem', { name: 'Change bounds' }).click()
    await page.getByLabel('Senders').fill('')
    await page.getByLabel('Emails per hour').fill('')
    await page.getByLabel('Expires').fill('2030-01-31T12:00')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const keys = await read<{ name: string; allowedFrom?: string[]; sendLimit?: number; expiresAt?: string }[]>('/credentials')
    const changed = keys.find((one) => one.name === keyName)
    expect([changed?.allowedFrom, changed?.sendLimit, changed?.expiresAt?.slice(0, 7)]).toEqual([undefined, undefined, '2030-01'])
    await watched.context.close()
  })

  test('of a tenant creates, binds, holds and revokes a key of the tenant', async () => {
    const watched = await open(wide, service.tenantId)
    const { page } = watched
    await page.goto('/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('tenant-key')
    await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('Copy the key now').waitFor()
    await page.keyboard.press('Escape')
    const actions = page.getByRole('button', { name: 'Actions for tenant-key' })
    await actions.click()
    await page.getByRole('menuitem', { name: 'Change bounds' }).click()
    await page.getByLabel('Senders').fill('shop.example')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText('Sends from shop.example').first().waitFor()
    await actions.click()
    await page.getByRole('menuitem', { name: 'Hold' }).click()
    await page.getByText('On hold').first().waitFor()
    await actions.click()
    await page.getByRole('menuitem', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await actions.waitFor({ state: 'detached' })
    expect(watched.complaints).toEqual([])
    await watched.context.close()
  })
})
