/**
 * Makes the screenshots of README.md, docs/images/*.png, from a shop's day of mail: `npm run pictures` writes them. Without it, this test
 * compares the texts on the pages with those beside the committed screenshots, so that no screenshot shows a page that has changed since.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Clock, systemClock } from '#base'
import { cookieOf, invite, useLink } from '../dashboard/signed-in-browser.ts'
import { type FakeMx, startFakeMx } from '../support/fake-mx.ts'
import type { Service } from '../support/in-process-service.ts'
import { hasChromium, openPage, startBrowser, startDashboardService } from './chromium.ts'

const folder = 'docs/images'
const isWriting = process.env.POSTRIDER_WRITE_PICTURES === 'yes'
const hourMs = 3_600_000
/** Recipients per request. */
const maxTogether = 25
const beginsMs = Date.UTC(2026, 9, 14, 0, 5)
/** Emails in each hour of the day. */
const perHour = [8, 5, 4, 3, 3, 4, 9, 22, 35, 43, 49, 52, 47, 44, 48, 41, 37, 42, 50, 46, 38, 27, 19, 12]

/** Runs at the machine's rate and is moved by hours. */
let movedMs = 0
const startedMs = systemClock.nowMs()
const clock: Clock = { ...systemClock, nowMs: () => beginsMs + movedMs + systemClock.nowMs() - startedMs }

const replies: Record<string, string> = {
  gone: '550 5.1.1 The email account that you tried to reach does not exist',
  full: '452 4.2.2 The recipient is over quota, try again later',
  spam: '550 5.7.1 Message rejected as spam by content filter',
}
const greylisted = '451 4.7.1 Greylisted, please try again in a few minutes'
const domains = ['north.example', 'harbour.example', 'mail.example', 'post.example', 'alpine.example']
/** The local part decides the reply; the divisors set how often each occurs. */
const recipientOf = (n: number) => {
  const part = n % 41 === 7 ? 'gone' : n % 53 === 11 ? 'full' : n % 97 === 31 ? 'spam' : 'customer'
  return `${part}.${n}@${domains[n % domains.length]}`
}

let service: Service
let browser: Browser
let relay: FakeMx
let emailId = ''
beforeAll(async () => {
  if (!hasChromium) return
  let isFirst = true
  relay = await startFakeMx({
    script: ({ stage, argument }) => {
      if (stage !== 'rcpt') return undefined
      if (argument.includes('ann@') && isFirst) {
        isFirst = false
        return greylisted
      }
      return replies[/^<?(\w+)\./.exec(argument)?.[1] ?? '']
    },
  })
  service = await startDashboardService({
    clock,
    roles: ['delivery'],
    sendLimit: 1000,
    settings: { POSTRIDER_RELAY: `smtp://127.0.0.1:${relay.port}` },
  })
  await service.addDomain(service.tenantId, 'shop.example')
  const send = async (subject: string, to: string[]) => {
    const body = { from: 'Shop <orders@shop.example>', to, subject, html: `<p>${subject}. Thank you.</p>`, text: subject, tag: 'orders' }
    const answer = await service.call('POST', '/emails', { key: service.liveKey, body })
    expect(answer.status, answer.text).toBe(200)
    return answer.body.data as { id: string }
  }
  const untilTried = () =>
    vi.waitUntil(
      async () => ((await service.call('GET', '/emails?status=pending&perPage=1', { key: service.liveKey })).body.total ?? 0) === 0,
      { timeout: 30_000, interval: 50 },
    )
  let n = 0
  for (const [hour, count] of perHour.entries()) {
    if (hour === perHour.length - 1) emailId = (await send('Your order 4711 is on its way', ['ann@north.example'])).id
    for (let left = count - 1; left > 0; left -= maxTogether) {
      const to = Array.from({ length: Math.min(left, maxTogether) }, () => recipientOf(n++))
      await send(`Your order ${4000 + hour}`, to)
    }
    await untilTried()
    if (hour < perHour.length - 1) movedMs += hourMs
  }
  movedMs += hourMs / 2
  await vi.waitUntil(
    async () =>
      ((await service.call('GET', `/emails/${emailId}`, { key: service.liveKey })).body.data as { status: string }).status === 'sent',
    { timeout: 30_000, interval: 50 },
  )
  browser = await startBrowser()
}, 180_000)
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
  await relay.close()
})

/** Without numbers: measured values differ from run to run. */
const stable = (text: string) =>
  text
    .replaceAll(emailId, 'an id')
    .split('\n')
    .map((line) => line.replace(/\d+([.,:]\d+)*/g, '0').trim())
    .filter((line) => line !== '')
    .join('\n')
    .concat('\n')

describe.skipIf(!hasChromium)('the picture in README.md of', () => {
  test.each(['overview', 'email'] as const)('%s shows the page as it is, in light and dark', async (name) => {
    for (const theme of ['light', 'dark'] as const) {
      const look = { width: 1280, theme, timezone: 'UTC' }
      const { page, context, origin } = await openPage(browser, service, look)
      await page.clock.setFixedTime(clock.nowMs())
      const session = await useLink(service, await invite(service, `${name}-${theme}@house.test`, 'owner', null, clock.nowMs()))
      const [cookie = '', value = ''] = cookieOf(session).split('=')
      await context.addCookies([{ name: cookie, value, url: origin, httpOnly: true, sameSite: 'Strict' }])
      await page.goto(name === 'overview' ? '/?period=today' : `/emails/${emailId}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.waitForLoadState('networkidle')
      await expect.poll(() => page.getByText('Loading', { exact: true }).count()).toBe(0)
      const beside = join(folder, `${name}.txt`)
      if (isWriting) {
        mkdirSync(folder, { recursive: true })
        await page.screenshot({ path: join(folder, `${name}-${theme}.png`) })
      }
      // The rows of tables depend on which attempt came last.
      await page.evaluate("document.querySelectorAll('main tbody').forEach((rows) => rows.remove())")
      const texts = stable(await page.getByRole('main').innerText())
      if (isWriting) writeFileSync(beside, texts)
      expect(existsSync(join(folder, `${name}-${theme}.png`))).toBe(true)
      expect(texts, 'the page has changed: npm run pictures').toBe(readFileSync(beside, 'utf8'))
      await context.close()
    }
  })
})
