/** The page of mail in: a route is added by keyboard, and a message that it receives is read without running its HTML. */
import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { greetedClient, sendIncoming } from '../support/send-incoming.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'
import { expectFine, hasChromium, type Look, openPage, startBrowser, startDashboardService } from './chromium.ts'

const narrow: Look = { width: 390, theme: 'dark' }
const wide: Look = { width: 1440, theme: 'light' }

let service: Service
let browser: Browser
let dns: TestDns
beforeAll(async () => {
  if (!hasChromium) return
  dns = await startTestDns({
    'shop.example': { MX: ['10 house.test'] },
    'example.net': { TXT: ['v=spf1 ip4:127.0.0.1 -all'] },
    '_dmarc.example.net': { TXT: ['v=DMARC1; p=reject'] },
  })
  service = await startDashboardService({ roles: ['inbound'], settings: { POSTRIDER_DNS: dns.address } })
  await service.addDomain(service.tenantId, 'shop.example')
  const body = { name: 'Shop', url: 'https://shop.example/mail', events: ['MessageReceived'], tenantId: service.tenantId }
  expect((await service.call('POST', '/webhooks', { key: service.liveKey, body })).status).toBe(201)
  browser = await startBrowser()
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
  await dns.close()
})

const octets = [
  'From: Ann <ann@example.net>',
  'To: Shop <help@shop.example>',
  'Subject: Where is order 41233?',
  'Message-ID: <41233@example.net>',
  'Content-Type: multipart/mixed; boundary=x',
  '',
  '--x',
  'Content-Type: text/html; charset=utf-8',
  '',
  '<p>Hello</p><script>document.title = "ran"</script>',
  '--x',
  'Content-Type: application/pdf; name=receipt.pdf',
  'Content-Disposition: attachment; filename=receipt.pdf',
  '',
  'no receipt',
  '--x--',
].join('\r\n')

describe.skipIf(!hasChromium)('an owner', () => {
  const open = async (look: Look) => {
    const watched = await openPage(browser, service, look)
    const session = await useLink(service, await invite(service, `owner-${look.width}@house.test`, 'owner'))
    const [name = '', value = ''] = cookieOf(session).split('=')
    await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
    return watched
  }

  test('adds a route by keyboard, checks its MX record, and opens a message that it received', async () => {
    const watched = await open(wide)
    const { page } = watched
    await page.goto('/mail-in')
    await page.getByText('No routes yet').waitFor()
    await expectFine(watched, 'mail-in-empty', wide)
    await page.getByRole('button', { name: 'Add route' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByLabel('Address', { exact: true }).focus()
    await page.keyboard.type('help@shop.example')
    await page.keyboard.press('Tab')
    await expectFine(watched, 'mail-in-add', wide)
    await page.keyboard.press('Enter')
    await page.getByRole('row', { name: /^help@shop\.example Enabled/ }).waitFor()
    const record = page.getByRole('region', { name: 'MX record of shop.example' })
    await record.getByText('Not checked', { exact: true }).waitFor()
    await record.getByRole('button', { name: 'Check again' }).focus()
    await page.keyboard.press('Enter')
    await record.getByText('Found', { exact: true }).waitFor()
    await record.getByRole('button', { name: 'Copy value' }).focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe('10 house.test')
    await expectFine(watched, 'mail-in-routes', wide)

    await using client = await greetedClient(service.ports.smtp)
    // A new route takes effect within about a second.
    await expect.poll(() => sendIncoming(client, { to: ['help@shop.example'], octets }), { timeout: 10_000 }).toMatch(/^250/)
    await page.goto('/mail-in')
    await page.getByRole('row', { name: /^Where is order 41233\?.* help@shop\.example Webhook Shop pass/ }).waitFor()
    await expectFine(watched, 'mail-in', wide)
    const search = page.getByRole('searchbox', { name: 'Search the messages' })
    for (const [typed, isFound] of [
      ['nobody@example.net', false],
      ['HELP@shop.example', true],
      ['order 99', false],
      ['order 41', true],
    ] as const) {
      await search.fill(typed)
      await page.getByText('No messages match.').waitFor({ state: isFound ? 'detached' : 'visible' })
      await page.getByRole('link', { name: 'Where is order 41233?' }).waitFor({ state: isFound ? 'visible' : 'detached' })
    }
    await search.blur()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Where is order 41233?' }).waitFor()
    await page.getByText('example.net policy reject').waitFor()
    await page.getByRole('link', { name: 'Deliveries to Shop' }).waitFor()
    await page.getByRole('region', { name: 'HTML source' }).getByText('<script>document.title = "ran"</script>').waitFor()
    expect(await page.title()).toBe('Where is order 41233? · Postrider')
    await expectFine(watched, 'mail-in-message', wide)
    await page.getByRole('tab', { name: 'HTML source' }).focus()
    for (const _ of ['headers', 'attachments']) await page.keyboard.press('ArrowRight')
    await page.getByText('receipt.pdf').waitFor()
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download raw message' }).click()
    expect(await readFile(await (await downloading).path(), 'latin1')).toBe(`${octets}\r\n`)
    await watched.context.close()
  })

  test('forwards, disables and deletes a route on a phone', async () => {
    const watched = await open(narrow)
    const { page } = watched
    const choose = async (action: string) => {
      await page.getByRole('button', { name: 'Actions for help@shop.example' }).click()
      await page.getByRole('menuitem', { name: action }).click()
    }
    const read = async () => (await service.call('GET', '/routes', { key: service.liveKey })).body.data
    await page.goto('/mail-in')
    await page.getByRole('link', { name: 'Where is order 41233?' }).waitFor()
    await expectFine(watched, 'mail-in', narrow)
    await page.getByRole('tab', { name: 'Routes' }).click()
    await choose('Change forwarding')
    await page.getByRole('dialog').getByLabel('Forward to').fill('ann@example.org')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('cell', { name: 'ann@example.org' }).waitFor()
    await choose('Disable')
    await page.getByText('Mail to help@shop.example is refused.').waitFor()
    await page.getByRole('cell', { name: 'Disabled' }).waitFor()
    expect(await read()).toMatchObject([{ address: 'help@shop.example', forwardTo: 'ann@example.org', enabled: false }])
    await expectFine(watched, 'mail-in-routes', narrow)
    await choose('Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No routes.').waitFor()
    expect(await read()).toEqual([])
    await watched.context.close()
  })
})
