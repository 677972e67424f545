/** The export of emails, saved while mail flows: every email that existed is in it once. */
import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { hasChromium, openPage, startBrowser, startDashboardService } from './chromium.ts'

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

interface Sent {
  messages: Record<string, { id: string }>
}

/** Sends `atOnce` recipients per submission, so that these share their millisecond; returns the ids. */
async function send(emails: number, atOnce: number, tag: string): Promise<string[]> {
  const ids: string[] = []
  for (let sent = 0; sent < emails; sent += atOnce) {
    const to = Array.from({ length: atOnce }, (_, index) => `delivered+${tag}${sent + index}@simulator.test`)
    const body = { from: 'shop@simulator.test', to, subject: tag, text: tag, tag }
    const { messages } = (await service.call('POST', '/emails', { key: service.testKey, body })).body.data as Sent
    ids.push(...Object.values(messages).map(({ id }) => id))
  }
  return ids
}

test.skipIf(!hasChromium)('every email is in it once, whatever is accepted while it is saved', async () => {
  const { page, context, origin } = await openPage(browser, service, { width: 1440, theme: 'light' })
  const [name = '', value = ''] = cookieOf(await useLink(service, await invite(service, 'owner@house.test', 'owner'))).split('=')
  await context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Strict' }])
  const before = await send(330, 30, 'before')
  let asked = 0
  await page.route('**/v1/emails?*perPage=100*', async (route) => {
    if (++asked > 1) await send(7, 7, `during${asked}`)
    await route.continue()
  })
  for (const filters of ['?mail=test', '?mail=test&subject=before']) {
    asked = 0
    await page.goto(`/emails${filters}`)
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download CSV' }).click()
    const lines = (await readFile(await (await saved).path(), 'utf8')).trim().split('\r\n')
    const ids = lines.slice(1).map((line) => line.slice(0, 22))
    expect(asked).toBeGreaterThan(3)
    expect(new Set(ids).size).toBe(ids.length)
    expect(before.filter((id) => !ids.includes(id))).toEqual([])
  }
  await context.close()
})
