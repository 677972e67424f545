/** Endpoints besides the API: health, metrics, the reference. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const get = (path: string, headers: Record<string, string> = {}) => fetch(`http://127.0.0.1:${service.port}${path}`, { headers })

describe('without a key', () => {
  test('health and readiness are plain JSON', async () => {
    for (const path of ['/healthz', '/readyz']) {
      const answer = await get(path)
      expect(answer.status).toBe(200)
      expect(await answer.json()).not.toHaveProperty('success')
    }
  })

  test('metrics are shown to this machine, with the requests by endpoint and status', async () => {
    await service.call('GET', '/limits', { key: service.testKey })
    const text = await (await get('/metrics')).text()
    expect(text).toMatch(/postrider_http_request_duration_seconds_count\{endpoint="limits\.retrieve",status="200"\} \d+/)
    expect((await get('/metrics', { 'x-forwarded-for': '192.0.2.1' })).status).toBe(404)
  })

  test('the reference is shown, and loads nothing from elsewhere', async () => {
    const answer = await get('/docs/')
    const page = await answer.text()
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'self'")
    expect(page).not.toMatch(/(src|href)="https?:/)
    const script = /<script src="([^"]+)"/.exec(page)?.[1]
    expect((await get(`/docs/${script}`)).headers.get('content-type')).toContain('javascript')
  })

  test('an unknown page outside the API is 404', async () => {
    expect((await get('/favicon.ico')).status).toBe(404)
    expect((await get('/emails')).status).toBe(404)
  })

  test('the counted address comes from a proxy only when it is trusted', async () => {
    const remaining = async (port: number, from: string) =>
      (await fetch(`http://127.0.0.1:${port}/v1/limits`, { headers: { 'x-forwarded-for': from } })).headers.get('x-ratelimit-remaining')
    expect([await remaining(service.port, '192.0.2.1'), await remaining(service.port, '192.0.2.2')]).toEqual(['9', '8'])
    await using behind = await startService({ settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.0/8' } })
    expect([
      await remaining(behind.port, '192.0.2.1'),
      await remaining(behind.port, '192.0.2.2'),
      await remaining(behind.port, '198.51.100.9, 192.0.2.2'),
    ]).toEqual(['9', '9', '8'])
  })

  test('an unknown address outside the API is a page to a browser, and JSON to a program', async () => {
    const browser = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
    for (const path of ['/foo', '/foo/bar?a=<script>', '/docs/nothing']) {
      const answer = await get(path, browser)
      const page = await answer.text()
      expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
      expect(page).toContain('<a href="/">')
      expect(page).not.toContain('<script')
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    }
    for (const headers of [{}, { accept: 'application/json' }, { accept: '*/*' }] as Record<string, string>[])
      expect(((await (await get('/foo', headers)).json()) as { error: { code: string } }).error.code).toBe('not_found')
    // Every path under /v1 is the API, for every client.
    expect((await get('/v1/foo', browser)).headers.get('content-type')).toContain('application/json')
    expect(
      (await fetch(`http://127.0.0.1:${service.port}/foo`, { method: 'POST', headers: browser })).headers.get('content-type'),
    ).toContain('json')
  })
})
