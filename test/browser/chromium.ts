/** Chromium on an installation with its dashboard. Watches every page for errors and for requests that leave the origin. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import { fromElsewhere } from '../dashboard/signed-in-browser.ts'
import { type Service, type ServiceOptions, startService } from '../support/in-process-service.ts'

const executable = process.env.CHROMIUM ?? '/usr/bin/chromium'
export const hasChromium = existsSync(executable)

const pictures = 'artifacts/dashboard'

export interface Watched {
  page: Page
  context: BrowserContext
  origin: string
  /** Console errors, exceptions, and requests to other origins. */
  complaints: string[]
}

export interface Look {
  width: number
  theme: 'light' | 'dark'
  /** Absent: a zone in which it is noon, so that no day ends during a test. */
  timezone?: string
}

/** Each width and each theme once. `screenshots.test.ts` shows every page in all four. */
export const looks: readonly Look[] = [
  { width: 390, theme: 'dark' },
  { width: 1440, theme: 'light' },
]

/** The zone in which this hour is the one after noon. A zone east of Greenwich has a minus in its name. */
function noonZone(): string {
  const west = new Date().getUTCHours() - 12
  return west === 0 ? 'UTC' : `Etc/GMT${west > 0 ? '+' : ''}${west}`
}

export const startBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: executable, args: ['--no-sandbox', '--disable-dev-shm-usage'] })

export const startDashboardService = (wish: ServiceOptions = {}): Promise<Service> =>
  startService({
    roles: ['delivery'],
    rateLimit: null,
    sendLimit: null,
    dashboardFolder: 'dashboard/dist',
    ...wish,
    settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8,::1/128', ...wish.settings },
  })

/** A browser in a network of its own: sign-ins on several screens within a second come from different networks. */
export async function openPage(browser: Browser, service: Service, { width, theme, timezone = noonZone() }: Look): Promise<Watched> {
  const origin = `http://localhost:${service.port}`
  const context = await browser.newContext({
    baseURL: origin,
    viewport: { width, height: 900 },
    colorScheme: theme,
    timezoneId: timezone,
    permissions: ['clipboard-read', 'clipboard-write'],
    extraHTTPHeaders: fromElsewhere(),
  })
  context.setDefaultTimeout(15_000)
  const complaints: string[] = []
  const page = await context.newPage()
  page.on('console', (message) => message.type() === 'error' && complaints.push(`console: ${message.text()} ${message.location().url}`))
  page.on('pageerror', (error) => complaints.push(`exception: ${error.message}`))
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  context.on('request', (request) => {
    const url = new URL(request.url())
    if (url.protocol.startsWith('http') && url.origin !== origin) complaints.push(`left the origin: ${request.url()}`)
  })
  return { page, context, origin, complaints }
}

/** Waits until the browser reports a refused request to this path, maybe later than the page; returns the complaints and forgets them. */
export async function takeRefusal({ complaints }: Watched, path: string): Promise<string[]> {
  await expect.poll(() => complaints.some((one) => one.includes('Failed to load resource') && one.includes(path))).toBe(true)
  return complaints.splice(0)
}

/** Waits until the clipboard has the text: a page writes it some time after the click. */
export const expectCopied = (page: Page, text: RegExp): Promise<void> =>
  expect.poll(() => page.evaluate<string>('navigator.clipboard.readText()')).toMatch(text)

interface Violation {
  id: string
  impact: string | null
  nodes: { html: string; failureSummary?: string }[]
}

/** Waits for the end of animations that have one. A dialog that is still fading in has too little contrast and may move under a click. */
async function animationsEnd(page: Page): Promise<void> {
  await page.evaluate(
    `Promise.all(document.getAnimations().filter((animation) => animation.effect.getComputedTiming().endTime !== Infinity).map((animation) => animation.finished.catch(() => undefined))).then(() => undefined)`,
  )
}

/** Expects no serious or critical violation of WCAG 2.2 AA found by axe-core and no content wider than the screen; saves a screenshot. */
export async function expectFine({ page, complaints }: Watched, name: string, { width, theme }: Look): Promise<void> {
  await animationsEnd(page)
  const picture = join(pictures, `${name}-${width}-${theme}.png`)
  mkdirSync(dirname(picture), { recursive: true })
  await page.screenshot({ path: picture, fullPage: true })
  const session = await page.context().newCDPSession(page)
  // The pages' policy forbids inline scripts; the debugger is exempt from it.
  await session.send('Runtime.evaluate', { expression: axe.source })
  const answered = await session.send('Runtime.evaluate', {
    expression: `axe.run(document, { iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then((found) => JSON.stringify(found.violations))`,
    awaitPromise: true,
    returnByValue: true,
  })
  await session.detach()
  const violations = JSON.parse(String(answered.result.value)) as Violation[]
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  expect(
    serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`),
  ).toEqual([])
  expect(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    `${name} is wider than the screen`,
  ).toBe(0)
  expect(complaints, name).toEqual([])
}
