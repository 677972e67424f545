/** The guide at /docs/guide: the same Markdown as linked pages that run no scripts and reveal no other files. */

import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fastify from 'fastify'
import { parse } from 'parse5'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const get = (path: string, headers: Record<string, string> = {}) => fetch(`http://127.0.0.1:${service.port}${path}`, { headers })

/** A plain request, because fetch would normalise the path. */
const statusOf = (path: string) =>
  new Promise((resolve, reject) => {
    request({ port: service.port, host: '127.0.0.1', path }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end()
  })

const hrefsOf = (html: string) => [...html.matchAll(/href="([^"]+)"/g)].map(([, href]) => href as string)

test('every page of docs/ is shown, and every link in the guide leads to a page and a heading that are there', async () => {
  const seen = new Map<string, string>()
  const waiting = ['/docs/guide']
  const broken: string[] = []
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue
    const answer = await get(path)
    seen.set(path, answer.headers.get('content-type')?.startsWith('text/html') ? await answer.text() : '')
    if (answer.status !== 200) broken.push(path)
    for (const href of hrefsOf(seen.get(path) ?? '')) {
      const [target = ''] = href.split('#', 1)
      if (target.startsWith('/docs/guide')) waiting.push(target)
      else if (!/^(https:\/\/|#|\/$|\/docs$|\/v1\/openapi\.json$)/.test(href)) broken.push(`${path}: ${href}`)
    }
  }
  for (const [path, html] of seen) {
    for (const href of hrefsOf(html)) {
      const [target, anchor] = href.split('#', 2)
      const there = target === '' ? html : seen.get(target ?? '')
      if (anchor !== undefined && there !== undefined && !there.includes(`id="${anchor}"`)) broken.push(`${path}: ${href}`)
    }
  }
  expect(broken).toEqual([])
  const shown = readdirSync('docs').filter((name) => name.endsWith('.md') && name !== 'index.md')
  expect(shown.filter((name) => !seen.has(`/docs/guide/${name.slice(0, -3)}`))).toEqual([])
  expect([...seen.keys()]).toContain('/docs/guide/decisions/001-one-list-of-modules')
})

test('a page may load its style sheet, its script, fonts and images of this origin and nothing else', async () => {
  const answer = await get('/docs/guide/sending')
  expect(answer.headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; base-uri/,
  )
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  const script = '<script src="/docs/guide/guide.js"></script>'
  const shown = await answer.text()
  expect(shown).toContain(script)
  const html = shown.replace(script, '')
  expect(html).not.toMatch(/<script|<style| style=| on\w+=|javascript:/)
  expect(html).toContain('<table>')
  expect(parse(html, { onParseError: ({ code }) => expect(code).toBe('none') })).toBeDefined()
  expect((await get('/docs/guide/guide.css')).headers.get('content-type')).toBe('text/css; charset=utf-8')
  expect((await get('/docs/guide/guide.js')).headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  const again = await get('/docs/guide/sending', { 'if-none-match': answer.headers.get('etag') ?? '' })
  expect(again.status).toBe(304)
})

test('the page that is shown is marked in the list of pages', async () => {
  const html = await (await get('/docs/guide/webhooks')).text()
  expect(html.match(/aria-current="page"/g)).toHaveLength(1)
  expect(html).toContain('<a href="/docs/guide/webhooks" aria-current="page">Webhooks</a>')
  expect(html).toContain('<title>Webhooks</title>')
})

test('the home page has the first step and six cards, each page once, five pages of a card in sight', async () => {
  const html = await (await get('/docs/guide')).text()
  expect(html.match(/<section class="card">/g)).toHaveLength(6)
  expect(html).not.toContain('<nav')
  expect(html).toContain('<a href="/docs/guide/decisions">Decisions</a>')
  const cards = hrefsOf(html.slice(html.indexOf('<main>'), html.indexOf('</main>')))
  expect(cards.length).toBeGreaterThan(60)
  expect(new Set(cards).size).toBe(cards.length)
  expect(html.indexOf('<a href="/docs/guide/quick-start">')).toBeLessThan(html.indexOf('<section'))
  for (const card of html.split('<section class="card">').slice(1))
    expect(hrefsOf(card.replaceAll(/<details>.*?<\/details>/gs, ''))).toHaveLength(5)
})

test('the search finds the pages with all words, and shows the words as text', async () => {
  const found = async (query: string) => (await get(`/docs/guide/search?${query}`)).text()
  const html = await found('q=DKIM+rotation')
  expect(html).toContain('action="/docs/guide/search"')
  expect(hrefsOf(html.slice(html.indexOf('<main>')))[0]).toBe('/docs/guide/dkim-rotation')
  expect(await found('q=%3Cscript%3E%22')).toContain('No page has “&lt;script&gt;&quot;”')
  for (const query of ['', 'q=', 'q=+', 'q=a&q=b']) expect(await found(query)).toContain('Type one or more words')
  expect((await found('q=the')).split('class="found"')[1]?.split('</ul>')[0]?.match(/<li>/g)).toHaveLength(20)
})

test("the font is the dashboard's, if it is built", async () => {
  const { staticFileOf } = await import('../../src/http/dashboard-files.ts')
  const { serveGuide } = await import('../../src/http/guide.ts')
  const path = '/assets/geist-latin-wght-normal-Bx1.woff2'
  const styles = [[], [[path, staticFileOf(Buffer.from('font'), 'font/woff2')] as const]].map(async (files) => {
    const app = fastify()
    serveGuide(app, 'docs', new Map(files))
    const style = (await app.inject('/docs/guide/guide.css')).body
    await app.close()
    return style
  })
  const [without, withFont] = await Promise.all(styles)
  expect(without).not.toContain('@font-face')
  expect(withFont).toContain(`src: url("${path}")`)
})

test("the colours are the dashboard's", () => {
  const colours = [...readFileSync('docs/guide.css', 'utf8').matchAll(/--([\w-]+: light-dark\(#\w{6}, #\w{6}\);)/g)].map(
    ([, colour]) => colour,
  )
  expect(colours.length).toBeGreaterThan(5)
  const dashboard = readFileSync('dashboard/src/style.css', 'utf8')
  expect(colours.filter((colour) => !dashboard.includes(`--color-${colour}`))).toEqual([])
})

test('a path without a page is 404, in any spelling', async () => {
  for (const path of [
    'nothing',
    'sending.md',
    '../package.json',
    '..%2fpackage.json',
    '..%2f..%2fpackage.json',
    '%2e%2e/src/main',
    'sending/../../x',
  ])
    expect(await statusOf(`/docs/guide/${path}`), path).toBe(404)
  expect(await statusOf('/docs/guide/sending/')).toBe(200)
})

test('HTML in Markdown is shown, and links elsewhere than to pages and the web are text', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-guide-'))
  await writeFile(join(folder, 'guide.css'), '')
  await writeFile(join(folder, 'guide.js'), '')
  await writeFile(
    join(folder, 'index.md'),
    '# A <b>title</b>\n\n<script>alert(1)</script>\n\nA <img src=x onerror=alert(1)> in it, [one](javascript:alert%281%29), [two](../secret.md), [three](other.md#here), [other.md](other.md), ![x](y)\n\n<https://example.org/?a=1&b="2>\n',
  )
  await writeFile(join(folder, 'other.md'), '# Other\n\n## Here\n')
  const { serveGuide } = await import('../../src/http/guide.ts')
  const app = fastify()
  serveGuide(app, folder)
  const html = (await app.inject('/docs/guide')).body
  await app.close()
  await rm(folder, { recursive: true })
  const main = html.slice(html.indexOf('<main>'), html.indexOf('</main>'))
  expect(main).not.toMatch(/<script|<img|<b>|javascript:|secret/)
  expect(main).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
  expect(hrefsOf(main)[0]).toBe('/docs/guide/other#here')
  expect(main).toContain('<a href="/docs/guide/other">Other</a>')
})
