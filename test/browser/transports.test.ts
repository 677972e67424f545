/** The page of transports in a real browser, on a phone and on a wide screen, light and dark, and by keyboard alone. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silentLog, systemClock } from '#base'
import { listTransportStates, listTransports } from '#delivery'
import { openTransportStates, type TransportStates } from '../../src/delivery/transports/transport-states.ts'
import { invite, password } from '../dashboard/signed-in-browser.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import type { Service } from '../support/in-process-service.ts'
import { expectFine, hasChromium, looks, openPage, startBrowser, startDashboardService, takeRefusal, type Watched } from './chromium.ts'

let service: Service
let browser: Browser
let relay: FakeMx
let states: TransportStates
beforeAll(async () => {
  if (!hasChromium) return
  relay = await startFakeMx()
  service = await startDashboardService({ settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' } })
  states = openTransportStates({ db: service.db, clock: systemClock, log: silentLog, processId: 'browser test' })
  browser = await startBrowser()
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await states.close()
  await service.stop()
  await relay.close()
})

const transports = () => listTransports(service.db, service.secrets)

describe.skipIf(!hasChromium).each(looks)('at $width px, $theme', (look) => {
  let watched: Watched
  const choose = async (action: string) => {
    await watched.page.getByRole('button', { name: `Actions for ${name}` }).click()
    await watched.page.getByRole('menuitem', { name: action }).click()
  }
  const name = `old-${look.width}`
  beforeAll(async () => {
    watched = await openPage(browser, service, look)
    const { page } = watched
    await page.goto(`/sign-in/${await invite(service, `owner-${look.width}@house.test`, 'owner')}`)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('#content').getByRole('heading', { level: 1 }).waitFor()
  })
  afterAll(() => watched.context.close())

  test('a relay is added with a login, tested, and its password is never shown', async () => {
    const { page } = watched
    const menu = page.getByRole('button', { name: 'Menu' })
    if (await menu.isVisible()) await menu.click()
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Transports', exact: true }).click()
    await page.getByText('No transports. Add the SMTP server').waitFor()
    await expectFine(watched, 'transports-empty', look)
    await page.getByRole('button', { name: 'Add transport' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill(name)
    await dialog.getByLabel('Host').fill('127.0.0.1')
    await dialog.getByLabel('Port').fill('1')
    await dialog.getByLabel('Encryption').selectOption('opportunistic')
    await dialog.getByLabel('User name').fill('me')
    await dialog.getByLabel('Password').fill('open sesame')
    await expectFine(watched, 'transport-add', look)
    await dialog.getByRole('button', { name: 'Add' }).click()
    const row = page.getByRole('row', { name: new RegExp(name) })
    await row.getByText('127.0.0.1:1').waitFor()
    expect(await page.content()).not.toContain('open sesame')
    await row.getByRole('button', { name: `Test ${name}` }).click()
    await dialog.getByText(/^It fails: .*ECONNREFUSED/).waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    expect((await transports())[0]).toMatchObject({ name, auth: { user: 'me', password: 'open sesame' }, guarded: true })
  })

  const forgetRefusal = async () =>
    expect(await takeRefusal(watched, '/v1/transports')).toEqual([expect.stringContaining('400 (Bad Request)')])

  test('its settings are changed, and a test says that it works', async () => {
    const { page } = watched
    const row = page.getByRole('row', { name: new RegExp(name) })
    const dialog = page.getByRole('dialog')
    await choose('Edit')
    await dialog.getByLabel('Port').fill(String(relay.port))
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('password: is needed').waitFor()
    await forgetRefusal()
    await dialog.getByLabel('User name').fill('')
    await dialog.getByText('password: is needed').waitFor({ state: 'detached' })
    await dialog.getByLabel('Messages per second').fill('2.5')
    await dialog.getByLabel('While it is down').selectOption('its mail waits')
    await expectFine(watched, 'transport-edit', look)
    await dialog.getByRole('button', { name: 'Save' }).click()
    await row.getByText('2.5 messages per second').waitFor()
    await row.getByText('Its mail waits').waitFor()
    await row.getByRole('button', { name: `Test ${name}` }).click()
    await dialog.getByText('It works, at 127.0.0.1').waitFor()
    await expectFine(watched, 'transport-test', look)
    await dialog.getByRole('button', { name: 'Close' }).click()
  })

  test('a share is set by keyboard, with the slider and the number, and moved; too much is refused', async () => {
    const { page } = watched
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Set a share' }).focus()
    await page.keyboard.press('Enter')
    await dialog.getByLabel('Transport').selectOption(name)
    await dialog.getByRole('slider', { name: 'Share' }).focus()
    for (let step = 0; step < 5; step++) await page.keyboard.press('ArrowRight')
    expect(await dialog.getByLabel('Percent').inputValue()).toBe('5')
    await dialog.getByLabel('Percent').fill('95')
    expect(await dialog.getByRole('slider', { name: 'Share' }).inputValue()).toBe('95')
    await dialog.getByText(`95% of all mail takes ${name}, 5% the default.`).waitFor()
    await expectFine(watched, 'transport-share', look)
    await page.keyboard.press('Enter')
    const shares = page.getByRole('list', { name: 'Shares' })
    await shares.getByText('95%').waitFor()
    await page
      .getByRole('row', { name: new RegExp(`^${name}`) })
      .getByText('95% of all mail')
      .waitFor()
    await shares.getByText('Direct delivery').waitFor()
    await shares.getByRole('button', { name: `Change the share of ${name}: all mail` }).click()
    await dialog.getByLabel('Percent').fill('50')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await shares.getByText('50%').first().waitFor()
    await page.getByRole('button', { name: 'Set a share' }).click()
    await dialog.getByLabel('Transport').selectOption(name)
    await dialog.getByLabel('Percent').fill('100')
    await dialog.getByLabel('Only mail from the sending domain').fill('Shop.example')
    await dialog.getByLabel('Only mail with the tag').fill('order')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await shares.getByText('mail from shop.example tagged order').waitFor()
    await expectFine(watched, 'transports', look)
  })

  test('a transport that a process regards as down says so, with the reason and the next try, until it works again', async () => {
    const { page } = watched
    const [transport] = await transports()
    states.down({ transport: name, tenantId: '', revision: transport?.revision ?? 0, reason: 'failed' }, 3_600_000)
    const shown = () => listTransportStates(service.db, Date.now())
    await expect.poll(shown).toHaveLength(1)
    await page.reload()
    const row = page.getByRole('row', { name: new RegExp(name) })
    await row.getByText('Down', { exact: true }).waitFor()
    await row.getByText('No connection, TLS or login').waitFor()
    await expectFine(watched, 'transports-down', look)
    states.up(name, '')
    await expect.poll(shown).toEqual([])
    await page.reload()
    await row.getByText('Up', { exact: true }).waitFor()
  })

  test('a transport with a share stays; without one it is deleted', async () => {
    const { page } = watched
    const dialog = page.getByRole('dialog')
    await choose('Delete')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByText(`${name} still has a share of some mail`).waitFor()
    await forgetRefusal()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    const shares = page.getByRole('list', { name: 'Shares' })
    for (const mail of ['all mail', 'mail from shop.example tagged order']) {
      await shares.getByRole('button', { name: `Change the share of ${name}: ${mail}` }).click()
      await dialog.getByLabel('Percent').fill('0')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
    }
    await choose('Delete')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No transports. Add the SMTP server').waitFor()
    expect(await transports()).toEqual([])
  })
})
