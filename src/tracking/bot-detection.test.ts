import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { classifyRequest, isPrefetch, type Surroundings, type TrackedRequest } from './bot-detection.ts'
import { agentRules } from './bot-rules.ts'

const chrome = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36'
const minuteMs = 60_000
const click: TrackedRequest = { kind: 'click', atMs: minuteMs, ipAddress: '192.0.2.7', userAgent: chrome, isHead: false, isPrefetch: false }
const around: Surroundings = { deliveredAtMs: 0, isOneOfSeveral: false, isAfterHead: false }
const of = (asked: Partial<TrackedRequest>, surroundings: Partial<Surroundings> = {}) => {
  const { source, reason } = classifyRequest({ ...click, ...asked }, { ...around, ...surroundings })
  return `${source}: ${reason}`
}

describe('an open or a click', () => {
  test.each([
    [chrome, 'human: reader'],
    ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148', 'human: reader'],
    ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.4.0', 'human: reader'],
    [
      'Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; Trident/7.0; Microsoft Outlook 16.0.17928; ms-office; MSOffice 16)',
      'human: reader',
    ],
    ['Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.17928; Pro)', 'human: reader'],
    [
      'Mozilla/5.0 (Linux; Android 13; CUBOT P80) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36',
      'human: reader',
    ],
    ['Mozilla/5.0', 'machine: apple-mail-privacy-protection'],
    [
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0',
      'machine: gmail-prefetch',
    ],
    ['Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)', 'unknown: gmail-image-proxy'],
    ['YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html', 'unknown: yahoo-image-proxy'],
    ['Barracuda Sentinel (EE)', 'machine: security-scanner'],
    ['Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1) SafeLinks/1.0 (Microsoft Defender)', 'machine: security-scanner'],
    ['Microsoft Office Existence Discovery', 'machine: link-preview'],
    ['Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)', 'machine: link-preview'],
    ['WhatsApp/2.23.20.0', 'machine: link-preview'],
    ['Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', 'machine: crawler'],
    [
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/130.0.0.0 Safari/537.36',
      'machine: headless-browser',
    ],
    ['python-requests/2.26.0', 'machine: program'],
    ['curl/8.5.0', 'machine: program'],
    ['', 'machine: no-user-agent'],
    ['Dalvik/2.1.0 (Linux; U; Android 14)', 'unknown: unknown-program'],
  ])('is classified by the user agent %j: %s', (userAgent, told) => {
    expect(of({ userAgent })).toBe(told)
  })

  test('by a HEAD request or with the headers of a prefetch is of a machine, with any user agent', () => {
    expect(of({ isHead: true })).toBe('machine: head-request')
    expect(of({ isPrefetch: true })).toBe('machine: prefetch-header')
  })

  test('a click after HEAD from the same address, or beside another link within a second, is a machine; an open is not', () => {
    expect(of({}, { isAfterHead: true })).toBe('machine: head-before-get')
    expect(of({}, { isOneOfSeveral: true })).toBe('machine: several-links-within-a-second')
    expect(of({ kind: 'open' }, { isAfterHead: true, isOneOfSeveral: true })).toBe('human: reader')
  })

  test.each(['52.100.1.1', '20.64.0.9', '34.128.3.4', '2603:1000::5', '::ffff:20.64.0.9'])(
    'from the data centre of %s is of a machine within seconds of the delivery, and later of the reader that it looks like',
    (ipAddress) => {
      expect(of({ ipAddress, atMs: 5000 })).toBe('machine: data-centre-seconds-after-delivery')
      expect(of({ ipAddress, atMs: 25_000 })).toBe('human: reader')
      expect(of({ atMs: 5000 })).toBe('human: reader')
    },
  )

  test('before the delivery is not of a reader; without a known delivery it is not known', () => {
    expect(of({ atMs: 1000 }, { deliveredAtMs: minuteMs })).toBe('machine: before-delivery')
    expect(of({ atMs: minuteMs - 500 }, { deliveredAtMs: minuteMs })).toBe('human: reader')
    expect(of({}, { deliveredAtMs: null })).toBe('unknown: not-known-as-delivered')
  })

  test('is classified in bounded time, with anything that strangers send', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 16_000 }), fc.string(), (userAgent, ipAddress) => {
        expect(['human', 'machine', 'unknown']).toContain(classifyRequest({ ...click, userAgent, ipAddress }, around).source)
      }),
    )
  })
})

test.each([
  [{ 'sec-purpose': 'prefetch;prerender' }, true],
  [{ purpose: 'prefetch' }, true],
  [{ 'x-purpose': 'preview' }, true],
  [{ 'x-moz': 'prefetch' }, true],
  [{ purpose: 'reading' }, false],
  [{}, false],
])('the headers %j announce a prefetch: %s', (headers, is) => {
  expect(isPrefetch(headers)).toBe(is)
})

test('every reason is explained in the documentation', () => {
  const page = readFileSync('docs/tracking.md', 'utf8')
  const inCode = [...readFileSync('src/tracking/bot-detection.ts', 'utf8').matchAll(/(?:machine\(|reason: )'([a-z-]+)'/g)].map(
    ([, reason]) => reason as string,
  )
  expect(inCode.length).toBeGreaterThan(6)
  for (const reason of [...agentRules.map((rule) => rule.reason), ...inCode]) expect(page).toContain(`\`${reason}\``)
})
