/**
 * The main task of each page in a real browser, on a dark phone and on a light wide screen. The pages of security, the test inbox and
 * tracking have their own file.
 */
import { readFile } from 'node:fs/promises'
import type { Browser, Request } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openIds, silentLog, systemClock, systemRandom } from '#base'
import { sql } from '#db'
import { countOutcomes } from '#reputation'
import { type Sending, startSending } from '#webhooks'
import { invite, password } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { receiveReport } from '../support/received-report.ts'
import { startTestDns, type TestDns } from '../support/test-dns.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { loopbackPost, plainBodies, sendingConfig } from '../support/webhook-sender-parts.ts'
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

const at = ({ width, theme }: Look) => `${width}-${theme}`

const addListing = sql`
  insert into blocklist_checks (zone, address, listed, codes, since, checked_at, claimed_until)
  values ('bl.example.test', '192.0.2.25', true, '{127.0.0.2}', $1, $1, $1), ('other.example.test', '192.0.2.25', false, '{}', $1, $1, $1)`

let service: Service
let browser: Browser
let dns: TestDns
let receiver: Receiver
let sending: Sending
const attack = '</pre><img src=x onerror="window.pwned=1"><script>window.pwned=2</script>'
beforeAll(async () => {
  if (!hasChromium) return
  dns = await startTestDns()
  receiver = await startReceiver()
  receiver.answer = (response) => response.end(attack)
  service = await startDashboardService({
    settings: { POSTRIDER_DNS: dns.address, POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_RELAY: 'smtp://127.0.0.1:1' },
  })
  sending = await startSending({
    db: service.db,
    clock: systemClock,
    ids: openIds(systemRandom),
    log: silentLog,
    secrets: service.secrets,
    post: loopbackPost(),
    bodies: plainBodies,
    config: sendingConfig,
    version: 'test',
    processId: 'pages',
  })
  browser = await startBrowser()
  await service.addDomain(service.tenantId, 'shop.test')
  await service.addDomain(service.tenantId, 'reported.test')
  await receiveReport(service, 'reported.test')
  await service.call('POST', '/emails', {
    key: service.liveKey,
    body: { from: 'shop@shop.test', to: ['ann@far.test'], subject: 'Waits', text: 'For a relay that is away' },
  })
  for (const [to, subject] of [
    ['delivered', 'Your order'],
    ['hardfail', 'Your invoice'],
    ['softfail', 'Later'],
  ] as const)
    await service.call('POST', '/emails', {
      key: service.testKey,
      body: {
        from: 'shop@simulator.test',
        to: [`${to}@simulator.test`],
        subject,
        html: `<h1>${subject}</h1><p>Thank you.</p>`,
        text: `${subject}. Thank you.`,
        tag: 'orders',
        metadata: { order_id: '4711' },
      },
    })
  const countedAttempts = async () => {
    const { data } = (await service.call('GET', '/reputation?test=true', { key: service.liveKey })).body
    const { accepted, deferred, failed } = (data as { totals: Record<'accepted' | 'deferred' | 'failed', number> }).totals
    return accepted + deferred + failed
  }
  const settled = async () => {
    const { data } = (await service.call('GET', '/emails', { key: service.testKey })).body
    return (data as { status: string }[]).filter(({ status }) => status === 'pending').length
  }
  await vi.waitUntil(async () => (await settled()) === 0, { timeout: 20_000, interval: 100 })
  await service.db.run(addListing, [new Date(systemClock.nowMs())])
  // An open transaction of another test may hold the log back.
  await vi.waitUntil(async () => (await countOutcomes(service.db, () => 'others')) === 0 && (await countedAttempts()) >= 3, {
    timeout: 20_000,
    interval: 100,
  })
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await sending.stop()
  await service.stop()
  await dns.close()
  await receiver[Symbol.asyncDispose]()
})

describe.skipIf(!hasChromium)('the first load', () => {
  test('of the first page after signing in, with its charts, is under 200 kB', async () => {
    const { page, context } = await openPage(browser, service, { width: 1440, theme: 'light' })
    const sizes: Promise<number>[] = []
    const sizeOf = (request: Request) =>
      request.sizes().then(
        ({ responseBodySize }) => responseBodySize,
        // Of a request that ends while the page is closed.
        () => 0,
      )
    page.on('requestfinished', (request) => sizes.push(sizeOf(request)))
    await page.goto(`/sign-in/${await invite(service, 'first@house.test', 'owner')}`)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('img', { name: /^Emails by outcome/ }).waitFor()
    await page.waitForLoadState('networkidle')
    const octets = (await Promise.all(sizes)).reduce((sum, one) => sum + one, 0)
    console.log(`the first load: ${octets} octets in ${sizes.length} requests`)
    expect(octets).toBeGreaterThan(50_000)
    expect(octets).toBeLessThan(200_000)
    await context.close()
  })
})

describe.skipIf(!hasChromium).each(looks)('at $width px, $theme', (look) => {
  let watched: Watched
  beforeAll(async () => {
    watched = await openPage(browser, service, look)
  })
  afterAll(() => watched.context.close())

  /** An action in the menu of a row. */
  const choose = async (of: string, action: string) => {
    await watched.page.getByRole('button', { name: `Actions for ${of}`, exact: true }).click()
    await watched.page.getByRole('menuitem', { name: action, exact: true }).click()
  }
  /** The rare filters are folded away. */
  const unfold = async () => {
    const more = watched.page.getByRole('button', { name: 'More filters' })
    if (await more.isVisible()) await more.click()
  }

  const go = async (name: string) => {
    const { page } = watched
    const menu = page.getByRole('button', { name: 'Menu' })
    if (await menu.isVisible()) await menu.click()
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  }

  test('the one-time link sets a password, by keyboard alone, and signing out and in again works', async () => {
    const { page } = watched
    const address = `owner-${at(look)}@house.test`
    const token = await invite(service, address, 'owner')
    await page.goto(`/sign-in/${token}`)
    await page.getByRole('heading', { name: 'Choose a password' }).waitFor()
    await expect.poll(() => page.getByLabel('Email address').inputValue()).toBe(address)
    await expectFine(watched, 'sign-in-link', look)
    await page.getByLabel('Email address').focus()
    await page.keyboard.press('Tab')
    await page.keyboard.type(password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/')
    const menu = page.getByRole('button', { name: 'Menu' })
    if (await menu.isVisible()) await menu.click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.goto('/emails')
    await page.waitForURL('**/sign-in')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await expectFine(watched, 'sign-in', look)
    await page.getByLabel('Email address').fill(address)
    const field = page.getByLabel('Password')
    await field.fill(password)
    await page.getByRole('button', { name: 'Show' }).click()
    expect(await field.getAttribute('type')).toBe('text')
    await page.getByRole('button', { name: 'Hide' }).click()
    expect(await field.getAttribute('type')).toBe('password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  })

  test('the overview shows volume, rates, times, what fails and why, limits and health', async () => {
    const { page } = watched
    await go('Overview')
    for (const name of ['Median delivery time', 'Complaint rate', 'Sent this hour'])
      await page.getByRole('term').getByText(name, { exact: true }).waitFor()
    for (const chart of ['Emails by outcome', 'Failed and bounced', 'Complaint rate'])
      await page.getByRole('img', { name: new RegExp(`^${chart}`) }).waitFor()
    const failing = page.getByRole('region', { name: 'Failing domains' })
    await failing.getByRole('cell', { name: 'far.test', exact: true }).waitFor()
    await page.getByRole('list', { name: 'System health' }).getByText('Healthy').first().waitFor()
    await page.getByLabel('Period').selectOption('today')
    await page.getByText('Show as a table').click()
    await page.getByRole('region', { name: 'Over time' }).getByRole('columnheader', { name: 'Complaints' }).waitFor()
    await expectFine(watched, 'overview', look)
  })

  test('the queue shows what waits and why; a destination is tried now, paused and resumed', async () => {
    const { page } = watched
    await go('Queue')
    const row = page.getByRole('region', { name: 'Queue' }).getByRole('row', { name: /far\.test/ })
    await row.getByText('Paused').waitFor({ state: 'detached' })
    await row.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('their servers move')
    await expectFine(watched, 'queue-pause', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('cell', { name: 'their servers move' }).waitFor()
    await page.getByRole('region', { name: 'Paused' }).getByRole('link', { name: 'far.test' }).waitFor()
    await row.getByRole('button', { name: 'Retry now: far.test' }).click()
    await page.getByText(/(is|are) due now/).waitFor()
    await expectFine(watched, 'queue', look)
    await row.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('cell', { name: 'their servers move' }).waitFor({ state: 'detached' })
  })

  test('the emails that wait for a domain or a provider are listed with their reply, and lead to the email', async () => {
    const { page } = watched
    await go('Queue')
    await page.getByRole('region', { name: 'Queue' }).getByRole('link', { name: 'far.test' }).click()
    await page.getByRole('heading', { level: 1, name: 'Queue: far.test' }).waitFor()
    const row = page.getByRole('row', { name: /ann@far\.test/ })
    await row.getByText('ECONNREFUSED').waitFor()
    await expectFine(watched, 'queue-waiting', look)
    await page.getByRole('button', { name: 'Retry now' }).click()
    await page.getByText(/(is|are) due now/).waitFor()
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('their servers move')
    await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click()
    await page.getByText('Paused: their servers move').waitFor()
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    await page.getByText('Paused: their servers move').waitFor({ state: 'detached' })
    // A phone has no checkboxes.
    if (look.width > 1000) {
      await page.getByLabel('Select ann@far.test').first().check()
      await page.getByRole('region', { name: 'Actions' }).getByRole('button', { name: 'Cancel sending' }).click()
      await page.getByRole('dialog').getByText('Cancel sending of one email?').waitFor()
      await expectFine(watched, 'queue-waiting-cancel', look)
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }).click()
    }
    await page.goto('/queue/waiting?provider=relay')
    await page.getByRole('heading', { level: 1, name: 'Queue: relay' }).waitFor()
    await row.getByRole('link', { name: 'ann@far.test' }).click()
    await page.getByRole('heading', { level: 1, name: 'ann@far.test' }).waitFor()
  })

  test('a tenant is added, limited, paused, resumed, looked at and deleted', async () => {
    const { page } = watched
    await go('Tenants')
    const name = `Shop ${at(look)}`
    await page.getByRole('button', { name: 'Add tenant' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill(name)
    await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click()
    const row = page.getByRole('row', { name: new RegExp(name) })
    await choose(name, 'Edit')
    await page.getByRole('dialog').getByLabel('Emails per hour').fill('1234')
    await expectFine(watched, 'tenant-change', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await row.getByText(/1.?234/).waitFor()
    await choose(name, 'Pause')
    await page.getByRole('dialog').getByLabel('Reason').fill('they spam')
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
    await row.getByText('they spam').waitFor()
    await expectFine(watched, 'tenants', look)
    await choose(name, 'Resume')
    await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
    await row.getByText('they spam').waitFor({ state: 'detached' })
    await choose(name, 'Show emails')
    await page.getByText('No emails yet.').waitFor()
    const menu = page.getByRole('button', { name: 'Menu' })
    if (await menu.isVisible()) await menu.click()
    await page.getByLabel('Tenant').selectOption('')
    if (await menu.isVisible()) await menu.click()
    await go('Tenants')
    await choose(name, 'Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await row.waitFor({ state: 'detached' })
    await go('Emails')
    await page.getByLabel('Mail', { exact: true }).selectOption('all')
  })

  test('emails are listed, new ones appear by themselves, and are found by recipient', async () => {
    const { page } = watched
    await page
      .getByRole('link', { name: /delivered@simulator\.test/ })
      .first()
      .waitFor()
    const subject = `Live ${at(look)}`
    await service.call('POST', '/emails', {
      key: service.testKey,
      body: { from: 'shop@simulator.test', to: [`delivered+${at(look)}@simulator.test`], subject, text: 'Now' },
    })
    await page.getByText(subject).waitFor()
    await page.getByLabel('Recipient').fill('hardfail@simulator.test')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByText(subject).waitFor({ state: 'detached' })
    await page
      .getByRole('link', { name: /hardfail@simulator\.test/ })
      .first()
      .waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByText(subject).waitFor()
  })

  test('emails are filtered by event and by time, which the address keeps, and each filter is removed alone', async () => {
    const { page } = watched
    const active = page.getByRole('list', { name: 'Active filters' }).getByRole('listitem')
    await unfold()
    await page.getByLabel('Event', { exact: true }).selectOption('Delayed')
    await page.getByLabel('Accepted', { exact: true }).selectOption('Last 24 hours')
    await page.getByRole('link', { name: 'softfail@simulator.test' }).first().waitFor()
    await page.getByRole('link', { name: 'hardfail@simulator.test' }).first().waitFor({ state: 'detached' })
    expect(await active.allInnerTexts()).toEqual(['Event: Delayed', 'Accepted: Last 24 hours'])
    await expectFine(watched, 'emails-filtered', look)
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ mail: 'all', event: 'delayed', within: 'day' })
    await page.reload()
    await page.getByRole('link', { name: 'softfail@simulator.test' }).first().waitFor()
    expect(await page.getByLabel('Event', { exact: true }).inputValue()).toBe('delayed')
    await page.getByRole('button', { name: 'Remove the filter Event: Delayed' }).click()
    await page.getByRole('link', { name: 'hardfail@simulator.test' }).first().waitFor()
    await expect.poll(() => active.count()).toBe(1)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await active.waitFor({ state: 'detached' })
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ mail: 'all' })
  })

  test('emails are searched by words and metadata, and saved as a file', async () => {
    const { page } = watched
    await unfold()
    await page.getByLabel('Recipient or subject').fill('invoi your')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByText(`Live ${at(look)}`).waitFor({ state: 'detached' })
    await page.getByText('Your invoice').first().waitFor()
    await page.getByLabel('Metadata').fill('order_id:4711')
    await page.getByLabel('Sending domain').fill('simulator.test')
    await page.getByLabel('Accepted after').fill('2020-01-01T00:00')
    await page.keyboard.press('Enter')
    await page.getByText('Your invoice').first().waitFor()
    await page.getByText('1 in total').waitFor()
    await expectFine(watched, 'emails', look)
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download CSV' }).click()
    const file = await readFile(await (await saved).path(), 'utf8')
    expect(file.split('\r\n')[1]).toMatch(/^\w{22},20.*Z,hardfail,hardfail@simulator\.test,shop@simulator\.test,Your invoice,orders,/)
    await page.getByRole('textbox', { name: 'Metadata' }).fill('order_id:1')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByText('No emails match').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByText(`Live ${at(look)}`).waitFor()
  })

  test('an email says where it is and why, shows its attempts and content, and can be tried again', async () => {
    const { page, context } = watched
    await page.getByLabel('Recipient').fill('hardfail@simulator.test')
    await page.getByRole('button', { name: 'Search' }).click()
    await page
      .getByRole('link', { name: /hardfail@simulator\.test/ })
      .first()
      .click()
    await page.getByRole('heading', { level: 1, name: 'hardfail@simulator.test' }).waitFor()
    await page.getByText('Attempt 1', { exact: true }).waitFor()
    await page.getByText('Server reply').first().click()
    await page.getByRole('link', { name: 'POST /v1/emails' }).waitFor()
    await page.frameLocator('iframe').getByRole('heading', { name: 'Your invoice' }).waitFor()
    await page.locator('iframe').scrollIntoViewIfNeeded()
    await expectFine(watched, 'email', look)
    for (const [form, text] of [
      ['Text', 'Your invoice. Thank you.'],
      ['HTML source', '<h1>Your invoice</h1>'],
      ['Headers', 'shop@simulator.test'],
      ['Raw', 'MIME-Version: 1.0'],
    ] as const) {
      await page.getByRole('tab', { name: form, exact: true }).click()
      await page.getByRole('region', { name: form }).getByText(text).first().waitFor()
    }
    await page.getByRole('tab', { name: 'Parts', exact: true }).click()
    await page.getByText('multipart/alternative').waitFor()
    await expectFine(watched, 'email-parts', look)
    await page.getByRole('tab', { name: 'Checks', exact: true }).click()
    await page.getByText('Has a text part').waitFor()
    await expectFine(watched, 'email-insights', look)
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Copy as curl' }).click()
    await page.getByText('The command is copied.').waitFor()
    await expectCopied(page, /^curl 'http:\/\/localhost:\d+\/v1\/emails\/\w{22}\?expand=full'/)
    const before = await page.getByText(/^Attempt \d+$/).count()
    // The mailbox does not exist and is suppressed: another attempt is possible, and not the main button.
    await page.getByText('Suppressed', { exact: true }).waitFor()
    expect(await page.getByRole('button', { name: 'Retry now' }).count()).toBe(0)
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Retry now' }).click()
    await page.getByText(`Attempt ${before + 1}`, { exact: true }).waitFor()
    expect(context.pages()).toHaveLength(1)
    await expectFine(watched, 'email-raw', look)
  })

  test('an email that waits shows its whole conversation, and is cancelled', async () => {
    const { page } = watched
    const to = `bob-${at(look)}@far.test`
    await service.call('POST', '/emails', { key: service.liveKey, body: { from: 'shop@shop.test', to: [to], subject: 'Waits', text: 'T' } })
    await go('Emails')
    await page.getByRole('link', { name: to }).click()
    await page.getByText('SMTP transcript').first().click()
    await page.getByRole('region', { name: 'SMTP transcript, attempt 1' }).getByText('ECONNREFUSED').waitFor()
    await expectFine(watched, 'email-waits', look)
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Cancel sending' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel sending' }).click()
    await page.getByText('Failed', { exact: true }).first().waitFor()
  })

  test('a domain is added, its records can be copied, and it is checked again', async () => {
    const { page } = watched
    await go('Domains')
    await expectFine(watched, 'domains', look)
    await page.getByRole('button', { name: 'Add domain' }).click()
    const name = `mail-${at(look)}.example.com`
    await page.getByRole('dialog').getByLabel('Domain').fill(name)
    await expectFine(watched, 'domain-add', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
    // A recommended record opens.
    const mx = page.getByRole('region', { name: 'Mail server of the domain' })
    await mx.getByRole('heading').click()
    await mx.getByRole('paragraph').getByText('The value is an example').waitFor()
    await page.getByRole('button', { name: 'Copy value' }).first().click()
    await expectCopied(page, /^v=spf1 /)
    await page.getByRole('button', { name: 'Check again' }).click()
    await page.getByText(/required records found, checked/).waitFor()
    await page.getByText('Missing').first().waitFor()
    await expectFine(watched, 'domain', look)
  })

  test('DMARC reports show who sends as a domain, and the records that ask for reports', async () => {
    const { page } = watched
    await go('DMARC and TLS')
    await page.getByLabel('Domain').selectOption('reported.test')
    const sources = page.getByRole('region', { name: 'Sources' })
    await sources.getByRole('cell', { name: '192.0.2.1', exact: true }).waitFor()
    await sources.getByRole('cell', { name: 'Unknown' }).first().waitFor()
    await page.getByText('Publish a DMARC record with p=none and the report address first').waitFor()
    await expectFine(watched, 'dmarc', look)
    await page.getByRole('tab', { name: 'TLS' }).click()
    await page.getByText('v=TLSRPTv1; rua=mailto:').waitFor()
    await expectFine(watched, 'tls-reports', look)
  })

  test('reputation shows what changed, the figures by domain and provider, and the blocklists', async () => {
    const { page } = watched
    await go('Reputation')
    await page.getByText('192.0.2.25 is listed by bl.example.test (127.0.0.2)').waitFor()
    const sources = page.getByRole('region', { name: 'Source addresses' })
    await sources.getByText('Listed by bl.example.test since').waitFor()
    await sources.getByText('Not listed by one list').waitFor()
    await page.getByRole('combobox', { name: 'Mail' }).selectOption('test')
    await page.getByRole('region', { name: 'Sending domain' }).getByRole('cell', { name: 'simulator.test', exact: true }).waitFor()
    await page.getByText('Good: below 0.1%').waitFor()
    await page.getByRole('combobox', { name: 'Group by' }).selectOption('provider')
    await page.getByRole('region', { name: 'Mailbox provider' }).getByRole('cell', { name: 'simulator', exact: true }).waitFor()
    await page.getByRole('img', { name: /^Attempts by result/ }).waitFor()
    await expectFine(watched, 'reputation', look)
  })

  test('an address is suppressed, found, and let go again', async () => {
    const { page } = watched
    await go('Suppressions')
    const address = `ann-${at(look)}@example.org`
    await page.getByRole('button', { name: 'Add address' }).click()
    await page.getByRole('dialog').getByLabel('Address').fill(address)
    await page.getByRole('dialog').getByLabel('Reason').fill('asked by phone')
    await page.getByRole('dialog').getByRole('button', { name: 'Suppress' }).click()
    await page.getByRole('cell', { name: address, exact: true }).waitFor()
    await page.getByLabel('Address contains').fill(`ann-${at(look)}`)
    await page.waitForURL('**address=ann-**')
    await page.getByRole('button', { name: /^Complaint/ }).click()
    await page.getByText('No suppressed addresses.').waitFor()
    await page.getByRole('button', { name: 'Any reason' }).click()
    await page.getByRole('cell', { name: address, exact: true }).waitFor()
    await expectFine(watched, 'suppressions', look)
    await page.getByRole('button', { name: `Allow again: ${address}` }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Allow again' }).click()
    await page.getByText('No suppressed addresses.').waitFor()
  })

  test('addresses are read from a file and saved to one', async () => {
    const { page } = watched
    await go('Suppressions')
    const [one, two] = [`file1-${at(look)}@example.org`, `file2-${at(look)}@example.org`]
    await page.getByRole('button', { name: 'Import CSV' }).click()
    const rows = `address,reason\r\n${one},"left, angry"\r\n${two},=1+1\r\nno address,\r\n`
    await page
      .getByRole('dialog')
      .getByLabel('File')
      .setInputFiles({ name: 'list.csv', mimeType: 'text/csv', buffer: Buffer.from(rows) })
    await page.getByText('2 added, 0 already listed, 1 invalid.').waitFor()
    await expectFine(watched, 'suppressions-import', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    await page.getByLabel('Address contains').fill(at(look))
    await page.getByText('2 in total').waitFor()
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download CSV' }).click()
    const file = await readFile(await (await saved).path(), 'utf8')
    expect(file).toContain(`${one},"left, angry",manual,`)
    expect(file).toContain(`${two},'=1+1,manual,`)
  })

  test('a webhook is added, its secret shown, and a sample sent', async () => {
    const { page } = watched
    await go('Webhooks')
    await page.getByRole('button', { name: 'Add webhook' }).click()
    await page
      .getByRole('dialog')
      .getByLabel('Name')
      .fill(`hook-${at(look)}`)
    await page
      .getByRole('dialog')
      .getByLabel('URL')
      .fill(`${receiver.url}/${at(look)}`)
    await page.getByRole('dialog').getByLabel('MessageBounced').check()
    await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click()
    await page.getByRole('heading', { level: 1, name: `hook-${at(look)}` }).waitFor()
    await page.getByRole('button', { name: 'Show secret' }).click()
    await page.getByRole('button', { name: 'Copy secret' }).waitFor()
    await page.getByRole('button', { name: 'Test', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Send sample' }).click()
    await page.getByRole('dialog').getByText('200', { exact: true }).waitFor()
    await expectFine(watched, 'webhook-test', look)
    expect(receiver.received.some(({ path }) => path === `/${at(look)}`)).toBe(true)
  })

  test("a webhook's deliveries are looked at, sent again, and it is switched off; an answer that attacks is text", async () => {
    const { page } = watched
    await page.goto('/webhooks')
    await page.getByRole('button', { name: 'Add webhook' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill(`sent-${at(look)}`)
    await dialog.getByLabel('URL').fill(`${receiver.url}/sent-${at(look)}`)
    await dialog.getByLabel('MessageSent').check()
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('heading', { level: 1, name: `sent-${at(look)}` }).waitFor()
    await page.getByText('No deliveries yet.').waitFor()
    const body = { from: 'shop@simulator.test', to: [`delivered+told-${at(look)}@simulator.test`], subject: `Told ${at(look)}`, text: 'T' }
    expect((await service.call('POST', '/emails', { key: service.testKey, body })).status).toBe(200)
    const event = page.getByRole('region', { name: 'Deliveries' }).getByRole('button', { name: 'MessageSent' })
    await event.click()
    await page.getByRole('region', { name: 'Response' }).getByText('window.pwned').waitFor()
    expect(await page.evaluate('window.pwned')).toBeUndefined()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await event.click()
    await dialog.getByRole('button', { name: 'Replay' }).click()
    await page.getByText('The event was sent again.').waitFor()
    await event.click()
    await expect.poll(() => dialog.getByLabel('Attempts').locator('option').count()).toBe(2)
    await expectFine(watched, 'webhook-delivery', look)
    await dialog.getByRole('button', { name: 'Close' }).click()
    expect(await event.count()).toBe(1)
    await expectFine(watched, 'webhook', look)
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Disable' }).click()
    await page.getByText('Disabled in the dashboard or through the API,').waitFor()
    await expectFine(watched, 'webhook-off', look)
    await go('Webhooks')
    await page.getByText('Disabled in the dashboard or through the API,').first().waitFor()
    await expectFine(watched, 'webhooks', look)
  })

  test('a key is created, shown once, put on hold and revoked', async () => {
    const { page } = watched
    await go('Keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page
      .getByRole('dialog')
      .getByLabel('Name')
      .fill(`key-${at(look)}`)
    await page.getByRole('dialog').getByLabel('emails:send').check()
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    const key =
      (await page
        .getByRole('dialog')
        .getByText(/^svc_test_\w{32}$/)
        .textContent()) ?? ''
    await expectFine(watched, 'key-made', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Done' }).click()
    expect(await page.content()).not.toContain(key)
    const row = page.getByRole('row', { name: `key-${at(look)}` })
    await choose(`key-${at(look)}`, 'Hold')
    await row.getByText('On hold').waitFor()
    await expectFine(watched, 'keys', look)
    await choose(`key-${at(look)}`, 'Revoke')
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await row.waitFor({ state: 'detached' })
    expect((await service.call('GET', '/limits', { key })).status).toBe(401)
  })

  test('usage is shown in numbers, as a chart and as a table', async () => {
    const { page } = watched
    await go('Usage')
    await page.getByRole('img', { name: /^Emails by outcome/ }).waitFor()
    for (const [choice, file] of [
      ['By tenant', 'usage-last_7_days.csv'],
      ['Over time', 'usage-over-time-last_7_days.csv'],
    ] as const) {
      const saved = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Download CSV' }).click()
      await page.getByRole('menuitem', { name: choice }).click()
      expect((await saved).suggestedFilename()).toBe(file)
    }
    await page.getByLabel('Period').selectOption('today')
    await page.getByText('Show as a table').click()
    await page.getByRole('region', { name: 'Over time' }).getByRole('columnheader', { name: 'Delivered' }).waitFor()
    await expectFine(watched, 'usage', look)
  })

  test('a request is found in the log, with what was sent and answered', async () => {
    const { page } = watched
    await go('Request logs')
    await page.getByRole('link', { name: 'POST /v1/emails', exact: true }).first().click()
    await page
      .getByRole('region', { name: 'Request body' })
      .getByText(/shop@(simulator|shop)\.test/)
      .first()
      .waitFor()
    await expectFine(watched, 'log', look)
    await go('Request logs')
    if (await page.getByRole('button', { name: 'More filters' }).isVisible())
      await page.getByRole('button', { name: 'More filters' }).click()
    await page.getByLabel('Response', { exact: true }).selectOption('error')
    await page
      .getByRole('link', { name: /^GET \/v1\/limits/ })
      .or(page.getByText('No requests match.'))
      .first()
      .waitFor()
    await expectFine(watched, 'logs', look)
  })

  test('a member is added with a link, and removed', async () => {
    const { page } = watched
    await go('Members')
    const address = `new-${at(look)}@house.test`
    await page.getByRole('button', { name: 'Add member' }).click()
    await page.getByRole('dialog').getByLabel('Email address').fill(address)
    await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click()
    await page
      .getByRole('dialog')
      .getByText(/\/sign-in\/\w{43}$/)
      .waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Done' }).click()
    await expectFine(watched, 'members', look)
    await choose(address, 'Change role')
    await page
      .getByRole('dialog')
      .getByRole('radio', { name: /^Admin/ })
      .check()
    await expectFine(watched, 'member-role', look)
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page
      .getByRole('row', { name: new RegExp(address) })
      .getByText('Admin', { exact: true })
      .waitFor()
    await choose(address, 'Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: `Actions for ${address}` }).waitFor({ state: 'detached' })
  })

  test('the other colours can be chosen, and stay chosen', async () => {
    const { page } = watched
    const other = look.theme === 'light' ? 'dark' : 'light'
    const menu = page.getByRole('button', { name: 'Menu' })
    if (await menu.isVisible()) await menu.click()
    await page.getByRole('button', { name: 'Theme' }).click()
    await page.getByRole('menuitemradio', { name: other === 'dark' ? 'Dark' : 'Light' }).click()
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'Members' }).waitFor()
    expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe(other)
    expect(watched.complaints).toEqual([])
  })
})
