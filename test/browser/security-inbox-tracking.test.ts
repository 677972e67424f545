/**
 * Two-factor authentication, test inbox, tracking, audit log and settings in a real browser, on a phone and on a wide screen, light and
 * dark.
 */
import { readFile } from 'node:fs/promises'
import { type TOTP, URI } from 'otpauth'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromElsewhere, invite, password } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'
import {
  expectCopied,
  expectFine,
  hasChromium,
  type Look,
  looks,
  openPage,
  startBrowser,
  startDashboardService,
  takeRefusal,
  type Watched,
} from './chromium.ts'

const at = ({ width, theme }: Look) => `${width}-${theme}`

let service: Service
let browser: Browser
let dns: TestDns
beforeAll(async () => {
  if (!hasChromium) return
  dns = await startTestDns()
  service = await startDashboardService({ settings: { POSTRIDER_DNS: dns.address, POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8' } })
  browser = await startBrowser()
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
  await dns.close()
})

const send = async (subject: string, more: object = {}) => {
  const sent = await service.call('POST', '/emails', {
    key: service.testKey,
    body: {
      from: 'shop@simulator.test',
      to: ['delivered@simulator.test'],
      subject,
      html: `<h1>${subject}</h1><p><a href="https://shop.example/orders/1">See it</a></p>`,
      text: `${subject}. Thank you.`,
      ...more,
    },
  })
  return (sent.body.data as { id: string }).id
}

/** Waits for any page after sign-in; the sign-in page has no `#content`. */
async function signedIn(page: Page) {
  await page.locator('#content').getByRole('heading', { level: 1 }).waitFor()
}

describe.skipIf(!hasChromium).each(looks)('at $width px, $theme', (look) => {
  let watched: Watched
  const address = `owner-${at(look)}@house.test`
  beforeAll(async () => {
    watched = await openPage(browser, service, look)
    const { page } = watched
    await page.goto(`/sign-in/${await invite(service, address, 'owner')}`)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await signedIn(page)
  })
  afterAll(() => watched.context.close())

  const openMenu = async () => {
    const menu = watched.page.getByRole('button', { name: 'Menu' })
    if (await menu.isVisible()) await menu.click()
  }
  const go = async (name: string) => {
    await openMenu()
    await watched.page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click()
    await watched.page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  }

  test('a second factor is added by its QR code, asked for at sign-in, and turned off, by keyboard', async () => {
    const { page } = watched
    await go('Settings')
    await page.getByRole('button', { name: 'Turn on' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Confirm your password').fill(password)
    await page.keyboard.press('Enter')
    await dialog.getByRole('img', { name: 'QR code for the authenticator app' }).waitFor()
    await expectFine(watched, 'second-factor-enrol', look)
    const secret = (await dialog.getByText(/^[A-Z2-7]{32}$/).textContent()) ?? ''
    const app = URI.parse(`otpauth://totp/Postrider:x?secret=${secret}&issuer=Postrider`) as TOTP
    const codeOf = (steps: number) => app.generate({ timestamp: Date.now() + steps * 30_000 })
    await dialog.getByLabel('Code', { exact: true }).fill(codeOf(0))
    await page.keyboard.press('Enter')
    const shown = page.getByRole('region', { name: 'Your recovery codes' })
    const recoveryCodes = ((await shown.textContent()) ?? '').trim().split('\n')
    expect(recoveryCodes).toHaveLength(10)
    await expectFine(watched, 'second-factor-codes', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Done' }).click()
    await page.getByText('10 recovery codes left').waitFor()
    await expectFine(watched, 'settings', look)

    await openMenu()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    // A person does not sign in so often within a second, and the network's attempt limit would delay it.
    await watched.context.setExtraHTTPHeaders(fromElsewhere())
    await page.getByLabel('Email address').fill(address)
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByLabel('Code', { exact: true }).waitFor()
    // The browser logs the response that asked for the code as an error.
    await takeRefusal(watched, '/dashboard/api/sign-in')
    await expectFine(watched, 'sign-in-code', look)
    expect(await page.evaluate('document.activeElement?.getAttribute("name")')).toBe('code')
    await page.keyboard.type(codeOf(1))
    await page.keyboard.press('Enter')
    await signedIn(page)

    await go('Settings')
    await page.getByRole('button', { name: 'Turn off' }).click()
    await dialog.getByLabel('Confirm your password').fill(password)
    await dialog.getByLabel('Code', { exact: true }).fill(recoveryCodes[0] ?? '')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Turn on' }).waitFor()
    expect(watched.complaints).toEqual([])
  })

  test('an owner takes the second factor of a member away', async () => {
    const { page } = watched
    const member = `lost-${at(look)}@house.test`
    const other = await openPage(browser, service, look)
    await other.page.goto(`/sign-in/${await invite(service, member, 'viewer')}`)
    await other.page.getByLabel('Password').fill(password)
    await other.page.getByRole('button', { name: 'Sign in' }).click()
    await signedIn(other.page)
    await other.page.goto('/settings')
    await other.page.getByText('Only owners see').waitFor()
    await other.page.getByRole('button', { name: 'Turn on' }).click()
    await other.page.getByRole('dialog').getByLabel('Confirm your password').fill(password)
    await other.page.keyboard.press('Enter')
    const secret =
      (await other.page
        .getByRole('dialog')
        .getByText(/^[A-Z2-7]{32}$/)
        .textContent()) ?? ''
    const app = URI.parse(`otpauth://totp/Postrider:x?secret=${secret}&issuer=Postrider`) as TOTP
    await other.page.getByRole('dialog').getByLabel('Code', { exact: true }).fill(app.generate())
    await other.page.keyboard.press('Enter')
    await other.page.getByRole('region', { name: 'Your recovery codes' }).waitFor()
    expect(other.complaints).toEqual([])

    await go('Members')
    const row = page.getByRole('row', { name: member })
    await row.getByText('On', { exact: true }).waitFor()
    await expectFine(watched, 'members-second-factor', look)
    await page.getByRole('button', { name: `Actions for ${member}` }).click()
    await page.getByRole('menuitem', { name: 'Reset two-factor' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click()
    await row.getByText('On', { exact: true }).waitFor({ state: 'detached' })
    await other.page.goto('/emails')
    await other.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await other.context.close()
  })

  test('test mail arrives in the inbox by itself, is found, read in every form, and cleared', async () => {
    const { page } = watched
    await go('Test inbox')
    await page.getByText('No test mail.').waitFor()
    await expectFine(watched, 'inbox-empty', look)
    const subject = `Order ${at(look)}`
    await send(subject, {
      attachments: [{ filename: 'terms.txt', contentType: 'text/plain', content: Buffer.from('terms').toString('base64') }],
    })
    await send('Another one')
    const list = page.getByRole('list', { name: 'Test inbox' })
    await list.getByRole('link', { name: subject }).waitFor()
    await page.getByLabel('Recipient, sender or subject contains').fill(subject.toUpperCase())
    await page.getByRole('button', { name: 'Search' }).click()
    await list.getByRole('link', { name: 'Another one' }).waitFor({ state: 'detached' })
    await list.getByLabel('Unread').waitFor()
    await list.getByRole('link', { name: subject }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 2, name: subject }).waitFor()
    // On a phone the open email hides the list.
    expect(await page.getByLabel('Unread').count()).toBe(0)
    await page.frameLocator('iframe').getByRole('heading', { name: subject }).waitFor()
    await page.getByRole('tab', { name: 'Links 1', exact: true }).click()
    await page.getByRole('link', { name: 'https://shop.example/orders/1' }).waitFor()
    await page.getByRole('button', { name: 'Check links' }).click()
    const links = page.getByRole('list', { name: 'Links', exact: true })
    await links.getByText('shop.example has no address').waitFor()
    await links.getByText('Broken', { exact: true }).waitFor()
    await expectFine(watched, 'inbox', look)
    await page.getByRole('tab', { name: /^Checks/ }).click()
    await page.getByRole('list', { name: 'Checks', exact: true }).getByText('has a text part').waitFor()
    for (const [form, text] of [
      ['Text', `${subject}. Thank you.`],
      ['HTML source', `<h1>${subject}</h1>`],
      ['Headers', 'shop@simulator.test'],
      ['Raw', 'MIME-Version: 1.0'],
    ] as const) {
      await page.getByRole('tab', { name: form, exact: true }).click()
      await page.getByRole('region', { name: form }).getByText(text).first().waitFor()
    }
    await page.getByRole('tab', { name: 'Attachments', exact: true }).click()
    await page.getByText('terms.txt').waitFor()
    await expectFine(watched, 'inbox-attachments', look)
    await page.getByRole('button', { name: 'Send as live mail' }).click()
    await page.getByRole('dialog').getByText('delivered@simulator.test').waitFor()
    await expectFine(watched, 'inbox-promote', look)
    const keys: (string | undefined)[] = []
    await page.route('**/promote', async (route) => {
      keys.push(route.request().headers()['idempotency-key'])
      await route.fulfill({ status: 502, contentType: 'application/json', body: '{}' })
    })
    for (const times of [2, 1]) {
      for (let clicked = 0; clicked < times; clicked++) {
        await page.getByRole('dialog').getByRole('button', { name: 'Send as live mail' }).click()
        await expect.poll(() => keys.length).toBe(clicked + (times === 2 ? 1 : 3))
        await takeRefusal(watched, '/promote')
      }
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
      if (times === 2) await page.getByRole('button', { name: 'Send as live mail' }).click()
    }
    expect(keys[0]).toMatch(/^[\w-]{24}$/)
    expect(keys[1], 'the key of a repeated click').toBe(keys[0])
    expect(keys[2], 'the key of a new dialog').not.toBe(keys[0])
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Deleted from the inbox.').waitFor()
    await page.getByLabel('Recipient, sender or subject contains').fill('')
    await page.getByRole('button', { name: 'Search' }).click()
    await list.getByRole('link', { name: 'Another one' }).waitFor()
    await list.getByRole('link', { name: subject }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Clear inbox' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Clear inbox' }).click()
    await page.getByText('No test mail.').waitFor()
    expect(watched.complaints).toEqual([])
  })

  test('a track domain is added, what it counts is changed, its record is looked for, and it is deleted', async () => {
    const { page } = watched
    await go('Tracking')
    await page.getByRole('button', { name: 'Add track domain' }).click()
    await page.getByRole('dialog').getByLabel('Sending domain').selectOption({ label: 'simulator.test' })
    const name = `click-${at(look)}`
    await page.getByRole('dialog').getByLabel('Subdomain').fill(name)
    await expectFine(watched, 'tracking-add', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click()
    const track = page.getByRole('region', { name: `${name}.simulator.test` })
    await track.getByText(`https://${name}.simulator.test {`).waitFor()
    await track.getByLabel('Use https links').uncheck()
    await track.getByText(`http://${name}.simulator.test {`).waitFor()
    await track.getByText('Saved').waitFor()
    await track.getByLabel('Excluded link domains').fill('example.org')
    await track.getByRole('button', { name: 'Save' }).click()
    await track.getByRole('button', { name: 'Save' }).waitFor({ state: 'detached' })
    await track.getByRole('button', { name: /^Check (now|again)$/ }).click()
    await track.getByText('Not in DNS', { exact: true }).waitFor()
    await track.getByRole('button', { name: 'Copy value' }).click()
    await expectCopied(page, /^track\.house\.test$/)
    await expectFine(watched, 'tracking', look)
    await track.getByRole('button', { name: `Actions for ${name}.simulator.test` }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await track.waitFor({ state: 'detached' })
  })

  test('the audit log says who has done that, and is searched', async () => {
    const { page } = watched
    await go('Audit log')
    await page.getByLabel('Actor').selectOption(address)
    await page.getByLabel('Area').selectOption('Tracking')
    await page.getByRole('cell', { name: 'Signed in' }).first().waitFor({ state: 'detached' })
    for (const act of ['Created', 'Changed', 'Deleted'])
      await page
        .getByRole('cell', { name: `${act} a track domain` })
        .first()
        .waitFor()
    await page.getByLabel('Time').selectOption('Last hour')
    await page.getByRole('button', { name: 'Remove the filter Area: Tracking' }).waitFor()
    await page.getByRole('cell', { name: 'Created a track domain' }).first().waitFor()
    await expectFine(watched, 'audit', look)
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download CSV' }).click()
    const [head, ...lines] = (await readFile(await (await saved).path(), 'utf8')).trim().split('\r\n')
    expect(head).toContain('time,action,actor_kind,actor')
    expect(lines.filter((line) => line.includes(',tracking.delete,member,')).length).toBeGreaterThan(0)
    expect(lines.filter((line) => !line.includes(',tracking.'))).toEqual([])
  })

  test('the doctor says what it finds and what to do, and the settings are shown without secrets', async () => {
    const { page } = watched
    await go('Settings')
    await page.getByRole('button', { name: 'Run checks' }).click()
    await page.getByRole('list', { name: 'System check' }).getByText('PostgreSQL', { exact: true }).waitFor({ timeout: 40_000 })
    await page.getByText('Settings at their defaults').click()
    await page.getByText('POSTRIDER_SECRET', { exact: true }).waitFor()
    expect(await page.content()).not.toContain('a secret for tests only')
    await expectFine(watched, 'settings-doctor', look)
  })
})
