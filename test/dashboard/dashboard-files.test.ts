/** Delivery of the dashboard's built files, and the cleaning of a stranger's HTML for a preview. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'
import { ask, elsewhere, fromOurPages, invite, signedIn, useLink } from './signed-in-browser.ts'

let service: Service
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postrider-pages-'))
  await mkdir(join(folder, 'dist/assets'), { recursive: true })
  await writeFile(join(folder, 'secret.txt'), 'not to be served')
  await writeFile(join(folder, 'dist/index.html'), '<!doctype html><title>Postrider</title>')
  await writeFile(join(folder, 'dist/assets/main-1a2b.js'), 'export {}')
  service = await startService({ dashboardFolder: join(folder, 'dist'), settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
})
afterAll(async () => {
  await service.stop()
  await rm(folder, { recursive: true })
})

const get = (path: string, headers: Record<string, string> = {}) => ask(service, 'GET', path, headers)

describe('the pages', () => {
  test.each(['/', '/sign-in', '/sign-in/abc', '/emails', '/emails/0Vbb606RWYNNrJMaoyfupr', '/webhooks/1', '/logs/req_1'])(
    'are shown at %s, and may load from here only',
    async (path) => {
      const { status, headers, text } = await get(path)
      expect([status, text]).toEqual([200, '<!doctype html><title>Postrider</title>'])
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/)
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toMatch(/unsafe|https?:|\*/)
      expect(headers.get('referrer-policy')).toBe('no-referrer')
    },
  )

  test('are kept by the browser for good when their name changes with their content, and asked for again otherwise', async () => {
    expect((await get('/assets/main-1a2b.js')).headers.get('cache-control')).toContain('immutable')
    const { headers } = await get('/emails')
    expect(headers.get('cache-control')).toBe('no-cache')
    expect((await get('/emails', { 'if-none-match': headers.get('etag') ?? '' })).status).toBe(304)
  })

  test.each([
    '/../secret.txt',
    '/%2e%2e/secret.txt',
    '/assets/..%2f..%2fsecret.txt',
    '/assets/',
    '/assets/other.js',
    '/index.html',
    '/favicon.ico',
  ])('are only the built files: %s is not found', async (path) => {
    const answer = await get(path)
    expect(answer.text).not.toContain('not to be served')
    expect(answer.status).toBe(404)
  })

  test('are not needed by the service: without a build, its log, / and the pages explain so', async () => {
    const lines: string[] = []
    await using bare = await startService({ log: pino({ level: 'warn' }, { write: (line) => lines.push(line) }) })
    expect(lines.filter((line) => line.includes('npm ci && npm run build'))).toHaveLength(1)
    expect((await ask(bare, 'GET', '/', {})).text).toContain('not built')
    for (const path of ['/emails', '/sign-in/abc']) {
      const answer = await ask(bare, 'GET', path, {})
      expect(answer.status).toBe(404)
      expect(answer.text).toContain('npm run build')
    }
  })
})

describe('the preview', () => {
  test('leaves no element that could load, send or lead anywhere', async () => {
    const html =
      '<base href=x><META http-equiv=refresh><link rel=preconnect><script>1</script><IFRAME src=x></iframe><form><object><embed><b>bold</b>'
    const sent = await service.call('POST', '/emails', {
      key: service.testKey,
      body: { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 'A', html },
    })
    const { id } = sent.body.data as { id: string }
    const { cookie = '' } = await signedIn(service, 'viewer@house.test', 'viewer')
    const shown = await get(`/dashboard/api/emails/${id}/preview`, { cookie, 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'iframe' })
    expect(shown.text).not.toMatch(/<(base|meta http|link|script|iframe|form|object|embed)/i)
    expect(shown.text).toContain('<b>bold</b>')
    expect(shown.headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'; .*img-src data:; form-action 'none'/)
  })
})

describe('the preview of an email without HTML', () => {
  test('is its text, in which nothing is an element', async () => {
    const body = {
      from: 'a@simulator.test',
      to: ['delivered@simulator.test'],
      subject: 'A',
      text: 'Fish & <b>chips</b>\n</pre><script>1</script>',
    }
    const { id } = (await service.call('POST', '/emails', { key: service.testKey, body })).body.data as { id: string }
    const { cookie = '' } = await signedIn(service, 'reader@house.test', 'viewer')
    const shown = await get(`/dashboard/api/emails/${id}/preview`, { cookie, 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'iframe' })
    expect(shown.text).toContain('Fish &amp; &lt;b>chips&lt;/b>\n&lt;/pre>&lt;script>1&lt;/script></pre>')
  })
})

describe('the internal endpoints', () => {
  test('refuse bodies that are not of their form, and reveal a link only to its owner', async () => {
    const post = (path: string, body: object) => ask(service, 'POST', `/dashboard/api${path}`, elsewhere(), body)
    for (const body of [{}, { address: 1, password: 'x' }, { address: 'a@b.test', password: 'x'.repeat(2000) }])
      expect(await post('/sign-in', body)).toMatchObject({ status: 400, code: 'validation_error' })
    for (const odd of ['a\0@b.test', 'a\ud800@b.test'])
      expect(await post('/sign-in', { address: odd, password: 'x' })).toMatchObject({ status: 400, code: 'validation_error' })
    expect(await post('/sign-in-link', { token: 'x'.repeat(43) })).toMatchObject({ status: 404 })
    const big = { address: 'a'.repeat(20_000), password: 'x' }
    expect(await post('/sign-in', big)).toMatchObject({ status: 400, code: 'payload_too_large' })
    expect((await get('/dashboard/api/session', fromOurPages)).data).toEqual({ member: null })
  })

  test('take one use of a link when two come at the same time', async () => {
    const token = await invite(service, 'twice@house.test', 'viewer')
    const both = await Promise.all([useLink(service, token), useLink(service, token)])
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 404])
  })
})
