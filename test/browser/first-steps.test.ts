/** The overview of an empty installation: the first steps with their state, until the first live email. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import {
  expectCopied,
  expectFine,
  hasChromium,
  type Look,
  looks,
  openPage,
  startBrowser,
  startDashboardService,
  type Watched,
} from './chromium.ts'

let service: Service
let browser: Browser
beforeAll(async () => {
  if (!hasChromium) return
  service = await startDashboardService({ settings: { POSTRIDER_RELAY: 'smtp://127.0.0.1:1', POSTRIDER_DNS: '127.0.0.1:9' } })
  browser = await startBrowser()
  // As after a first start, whose live key is not a key for a program yet.
  const { data } = (await service.call('GET', '/credentials', { key: service.testKey })).body
  const made = (data as { id: number; mode: string }[]).find(({ mode }) => mode === 'live')
  const renamed = await service.call('PATCH', `/credentials/${made?.id}`, { key: service.testKey, body: { name: 'first-live-key' } })
  expect(renamed.status).toBe(200)
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
})

async function signedIn(look: Look, role: 'owner' | 'viewer', signIns = 'steps'): Promise<Watched> {
  const watched = await openPage(browser, service, look)
  const session = await useLink(service, await invite(service, `${signIns}-${role}-${look.width}-${look.theme}@house.test`, role))
  const [name = '', value = ''] = cookieOf(session).split('=')
  await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
  await watched.page.goto('/')
  await watched.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  return watched
}

/** The part of an element of the page that is read; the types of the DOM are not those of this program. */
interface Queried {
  querySelector(selector: string): { textContent: string | null } | null
}

/** Each step with its state, as a reader of the list gets them. */
const steps = (page: Page) =>
  page
    .getByRole('listitem')
    .filter({ has: page.getByRole('heading', { level: 3 }) })
    .evaluateAll((items: Queried[]) =>
      items.map((item) => `${item.querySelector('h3')?.textContent}: ${item.querySelector('h3 + span')?.textContent}`),
    )

const todo = ['Send a test email: To do', 'Add a sending domain: To do', 'Create a live key: To do']

describe.skipIf(!hasChromium).each(looks)('at $width px, $theme', (look) => {
  test('an owner of an empty installation sees three steps, with a command to copy and a page for each', async () => {
    const watched = await signedIn(look, 'owner')
    const { page } = watched
    await expect.poll(() => steps(page)).toEqual(todo)
    await expectFine(watched, 'first-steps', look)
    await page.getByRole('button', { name: 'Copy the command' }).click()
    await expectCopied(page, new RegExp(`curl -s ${watched.origin}/v1/emails -H "Authorization: Bearer`))
    await page.getByRole('listitem').getByRole('link', { name: 'Keys' }).click()
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    await watched.context.close()
  })
})

describe.skipIf(!hasChromium)('the steps', () => {
  const look: Look = { width: 1440, theme: 'light' }

  test('are not shown to a viewer, who cannot take them', async () => {
    const { page, context } = await signedIn(look, 'viewer')
    await page.getByText('No emails in this period.').waitFor()
    expect(await page.getByText('First steps').count()).toBe(0)
    await context.close()
  })

  test('change their state as they are taken, and end with the first live email', async () => {
    const { page, context } = await signedIn(look, 'owner', 'taken')
    await expect.poll(() => steps(page)).toEqual(todo)
    const post = async (path: string, body: object, key = service.testKey) => {
      const { status, text } = await service.call('POST', path, { key, body })
      expect(status, text).toBeLessThan(300)
    }
    const message = { from: 'shop@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'It works.' }
    await post('/emails', message)
    await expect.poll(() => steps(page)).toEqual(['Send a test email: Done', ...todo.slice(1)])
    await post('/domains', { name: 'news.example' })
    await expect.poll(() => steps(page)).toEqual(['Send a test email: Done', 'Add a sending domain: Waiting for DNS', todo[2]])
    await service.addDomain(service.tenantId, 'shop.test')
    await post('/credentials', { name: 'shop', type: 'api', mode: 'live', permissions: ['emails:send'] })
    await expect.poll(() => steps(page)).toEqual(['Send a test email: Done', 'Add a sending domain: Done', 'Create a live key: Done'])
    await post('/emails', { ...message, from: 'shop@shop.test', to: ['ann@far.test'] }, service.liveKey)
    await page.getByText('First steps').waitFor({ state: 'detached', timeout: 40_000 })
    await context.close()
  })
})
