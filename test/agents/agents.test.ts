/** The tools for agents, by the official client: each over HTTP and stdio, rights, plans and tokens, and texts that give orders. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openIds, systemRandom } from '#base'
import { appendAttempt } from '#emails'
import { listAudit } from '#members'
import { recordDeliveries } from '#webhooks'
import { type Service, startService } from '../support/in-process-service.ts'
import { runHere } from '../support/run-command.ts'
import { halfPastTwelve } from '../support/test-clock.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { type Agent, overHttp, overStdio, type ToolAnswer } from './agent-client.ts'
import { factsOf, forbidden, hostileTexts, stringsOf } from './hostile-texts.ts'

const hourMs = 3_600_000
const planMs = 300_000
let aheadMs = 0
const clock = { ...halfPastTwelve, nowMs: () => halfPastTwelve.nowMs() + aheadMs }
const newIds = openIds(systemRandom)

let service: Service
let receiver: Receiver
let http: Agent
let stdio: Agent
let live: Agent
let tenantId: string
let ofTenant: Agent
const from = 'shop@simulator.test'

let ids: { failed: string; held: string; scheduled: string; domain: number; webhook: string; disabled: string; delivery: string }

async function asOwner<Data>(method: string, path: string, body?: object, key = service.liveKey): Promise<Data> {
  const answer = await service.call(method, path, { key, ...(body ? { body } : {}) })
  if (answer.status >= 300) throw new Error(answer.text)
  return answer.body.data as Data
}
const send = async (to: string, more: object = {}) =>
  (await asOwner<{ id: string }>('POST', '/emails', { from, to: [to], subject: 'Order 7', text: 'Hello.', ...more }, service.testKey)).id
const statusOf = async (id: string) => (await asOwner<{ status: string }>('GET', `/emails/${id}`)).status
const inAnHour = () => new Date(clock.nowMs() + hourMs).toISOString()
const addWebhook = async (name: string) => (await asOwner<{ id: string }>('POST', '/webhooks', { name, url: `${receiver.url}/${name}` })).id

async function recordFailure(webhookId: string): Promise<string> {
  const id = newIds.uuid()
  const failed = { tenantId: service.tenantId, eventUuid: newIds.uuid(), event: 'MessageSent', url: `${receiver.url}/old`, attempt: 2 }
  const answered = { success: false, statusCode: 503, willRetry: true, durationMs: 12, responseBody: 'later', error: null }
  const request = { requestHeaders: {}, payload: '{"event":"MessageSent"}' }
  await recordDeliveries(service.db, [
    { id, webhookId: Number(webhookId), at: new Date(clock.nowMs()), ...failed, ...answered, ...request },
  ])
  return id
}

beforeAll(async () => {
  service = await startService({
    rateLimit: null,
    sendLimit: null,
    roles: ['delivery'],
    clock,
    settings: { POSTRIDER_ALLOWED_NETWORKS: '127.0.0.0/8', POSTRIDER_DNS: '127.0.0.1:9' },
  })
  receiver = await startReceiver()
  tenantId = await service.makeTenant('Shop')
  const tenantKey = await service.makeKey({ tenantId })
  ;[http, stdio, live, ofTenant] = await Promise.all([
    overHttp(service.port, service.testKey, 'modern'),
    overStdio(service.port, service.testKey),
    overHttp(service.port, service.liveKey),
    overHttp(service.port, tenantKey),
  ])
  const { domains } = await asOwner<{ domains: { id: number }[] }>('GET', '/domains')
  const [webhook, disabled] = [await addWebhook('orders'), await addWebhook('gone')]
  await asOwner('PATCH', `/webhooks/${disabled}`, { enabled: false })
  await recordFailure(disabled)
  ids = {
    failed: await send('hardfail+ann@simulator.test'),
    held: await send('suppressed+ann@simulator.test'),
    scheduled: await send('delivered+ann@simulator.test', { scheduledAt: inAnHour() }),
    domain: domains[0]?.id ?? 0,
    webhook,
    disabled,
    delivery: await recordFailure(webhook),
  }
  await vi.waitFor(async () => expect([await statusOf(ids.failed), await statusOf(ids.held)]).toEqual(['hardfail', 'held']), 10_000)
})
beforeEach(() => {
  aheadMs = 0
})
afterAll(async () => {
  for (const agent of [http, stdio, live, ofTenant]) await agent[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
  await service.stop()
})

const done = ({ isError, text, data }: ToolAnswer) => {
  if (isError) throw new Error(text)
  return data
}
const codeOf = async (answer: Promise<ToolAnswer>) => ((await answer).data.error as { code?: string } | undefined)?.code

/** Questions with a part of their answers. */
const questions: [string, () => object, object][] = [
  [
    'explain_email',
    () => ({ emailId: ids.failed }),
    { email: { status: 'hardfail' }, lastAttempt: { status: 'hardfail', classification: 'invalid_recipient' } },
  ],
  [
    'why_no_mail',
    () => ({ address: 'hardfail+ann@simulator.test' }),
    { emailsInAll: 1, finding: expect.stringContaining('failed permanently') },
  ],
  [
    'why_no_mail',
    () => ({ address: 'stranger@example.com' }),
    { emails: [], finding: expect.stringContaining('no email to this address') },
  ],
  ['list_emails', () => ({ status: 'held' }), { emails: [{ id: expect.any(String), status: 'held' }], total: 1 }],
  [
    'show_email',
    () => ({ emailId: ids.held, includeContent: true }),
    { status: 'held', untrusted: { subject: 'Order 7', text: 'Hello.' } },
  ],
  [
    'list_attempts',
    () => ({ emailId: ids.failed }),
    { attemptsInAll: expect.any(Number), attempts: expect.arrayContaining([expect.objectContaining({ status: 'hardfail' })]) },
  ],
  ['queue', () => ({}), { recipientDomains: [], pauses: [], providers: expect.any(Array) }],
  [
    'classify_reply',
    () => ({ text: '550 5.1.1 no such user' }),
    { classification: 'invalid_recipient', fault: 'recipient', permanent: true },
  ],
  ['doctor', () => ({}), { counts: { problem: expect.any(Number) }, checks: expect.any(Array) }],
  ['list_suppressions', () => ({}), { suppressions: expect.any(Array), total: expect.any(Number) }],
  ['failing_webhooks', () => ({}), { failing: 1, shown: [{ id: expect.any(String), enabled: false, failures: [{ statusCode: 503 }] }] }],
  ['usage', () => ({ period: 'today' }), { emails: { sent: expect.any(Number) }, rates: { delivery_rate: expect.any(Number) } }],
  ['limits', () => ({}), { rateLimit: { period: 'second' }, sendLimit: expect.any(Object) }],
  ['what_changed', () => ({}), { changes: expect.arrayContaining([expect.objectContaining({ action: 'webhooks.update' })]) }],
  ['list_domains', () => ({}), { domains: [expect.objectContaining({ name: 'simulator.test' })] }],
  ['show_domain', () => ({ domainId: ids.domain }), { name: 'simulator.test', records: expect.any(Array) }],
  ['dmarc_summary', () => ({ domainId: ids.domain }), { totals: { messages: 0 }, advice: { ready: expect.any(Boolean) } }],
  ['list_transports', () => ({}), { default: 'mx', transports: [], rules: [] }],
  ['list_tenants', () => ({}), { total: 2 }],
]

describe.each([
  ['HTTP', () => http],
  ['stdio', () => stdio],
])('over %s', (_, agent) => {
  test.each(questions)('%s answers', async (name, given, expected) => {
    const answer = await agent().call(name, given())
    expect(done(answer)).toMatchObject(expected)
    expect(answer.notice).toContain('It is data')
  })

  test('a rehearsal sends a test email', async () => {
    const { id } = done(await agent().call('send_test_email', { subject: 'Rehearsal', text: 'Hello.' })) as { id: string }
    await expect.poll(() => statusOf(id)).toBe('sent')
  })

  test.each<[string, () => object, object]>([
    ['retry_email', () => ({ emailId: ids.failed }), { id: expect.any(String) }],
    ['release_held_email', () => ({ emailId: ids.held }), { released: expect.any(Number) }],
    ['replay_webhook_delivery', () => ({ webhookId: ids.webhook, deliveryId: ids.delivery }), { success: true, statusCode: 200 }],
    ['pause_queue', () => ({ destination: 'example.com' }), { paused: true }],
    ['resume_queue', () => ({ destination: 'example.com' }), { resumed: true }],
  ])('%s acts after its plan', async (name, given, expected) => {
    const planned = done(await agent().call(name, given()))
    expect(planned).toMatchObject({ plan: expect.stringMatching(/\.$/), token: expect.any(String) })
    expect(done(await agent().call(name, { ...given(), token: planned.token }))).toMatchObject({ done: name, ...expected })
    // The next questions find both as they were.
    if (name === 'retry_email') await expect.poll(() => statusOf(ids.failed)).toBe('hardfail')
    if (name === 'release_held_email') await expect.poll(() => statusOf(ids.held)).toBe('held')
  })

  test('a scheduled email is cancelled, and a suppression removed, each after its plan', async () => {
    const emailId = await send('delivered@simulator.test', { scheduledAt: inAnHour() })
    const address = 'bob@example.com'
    await asOwner('POST', '/suppressions', { address })
    for (const [name, given] of [
      ['cancel_scheduled_email', { emailId }],
      ['remove_suppression', { address }],
    ] as const) {
      const { token } = done(await agent().call(name, given))
      expect(await statusOf(emailId)).toBe(name === 'remove_suppression' ? 'hardfail' : 'pending')
      done(await agent().call(name, { ...given, token }))
    }
    expect(await asOwner('GET', `/suppressions/${address}`)).toMatchObject({ suppressed: false })
  })

  test('every tool is listed once, with a schema', async () => {
    const tools = JSON.parse(await agent().tools()) as { name: string; inputSchema: { type: string } }[]
    const names = tools.map((one) => one.name)
    expect(new Set(names).size).toBe(names.length)
    expect(names).toEqual(expect.arrayContaining(questions.map(([name]) => name)))
    expect(names).toHaveLength(26)
    expect(tools.every((one) => one.inputSchema.type === 'object')).toBe(true)
  })
})

test('both generations of the protocol list the same tools, over both ways', async () => {
  expect(await http.tools()).toBe(await live.tools())
  expect(await http.tools()).toBe(await stdio.tools())
})

describe('addresses', () => {
  test('are masked unless asked for', async () => {
    const given = { emailId: ids.failed }
    for (const name of ['explain_email', 'show_email', 'list_attempts']) {
      expect((await http.call(name, given)).text).not.toContain('hardfail+ann')
      if (name !== 'list_attempts')
        expect((await http.call(name, { ...given, showAddresses: true })).text).toContain('hardfail+ann@simulator.test')
    }
    const list = await http.call('list_suppressions')
    expect(list.text).toContain('***@')
    expect(list.text).not.toMatch(/[\w+]{2,}@/)
  })
})

describe('the rights of the key', () => {
  test('a tenant sees its own only', async () => {
    expect(done(await ofTenant.call('list_emails'))).toEqual({ emails: [], total: 0 })
    expect(done(await ofTenant.call('queue'))).toEqual({ recipientDomains: [] })
    expect(done(await ofTenant.call('what_changed'))).toEqual({ changes: [] })
    expect(done(await ofTenant.call('list_domains'))).toEqual({ domains: [], total: 0 })
    expect(done(await ofTenant.call('usage'))).toMatchObject({ tenant_id: tenantId, emails: { sent: 0 } })
    expect(done(await ofTenant.call('failing_webhooks'))).toEqual({ webhooks: 0, failing: 0, shown: [] })
    for (const [name, given] of [
      ['explain_email', { emailId: ids.failed }],
      ['retry_email', { emailId: ids.failed }],
      ['replay_webhook_delivery', { webhookId: ids.webhook, deliveryId: ids.delivery }],
      ['show_domain', { domainId: ids.domain }],
    ] as const)
      expect([name, await codeOf(ofTenant.call(name, given))]).toEqual([name, 'not_found'])
    for (const [name, given] of [
      ['doctor', {}],
      ['list_tenants', {}],
      ['list_transports', {}],
      ['pause_queue', { destination: 'example.com' }],
      ['release_held_email', { emailId: ids.held }],
    ] as const)
      expect([name, await codeOf(ofTenant.call(name, given))]).toEqual([name, 'permission_denied'])
    for (const name of ['list_emails', 'queue', 'usage', 'what_changed', 'list_suppressions', 'failing_webhooks', 'list_domains'])
      expect([name, await codeOf(ofTenant.call(name, { tenantId: service.tenantId }))]).toEqual([name, 'tenant_mismatch'])
  })

  test('a key with one permission gets the tools of that permission', async () => {
    await using reader = await overHttp(service.port, await service.makeKey({ permissions: ['emails:read'] }))
    expect(done(await reader.call('queue'))).toMatchObject({ recipientDomains: [] })
    expect(done(await reader.call('why_no_mail', { address: 'stranger@example.com' })).suppressions).toMatch(/^unknown/)
    for (const [name, given] of [
      ['list_suppressions', {}],
      ['failing_webhooks', {}],
      ['what_changed', {}],
      ['doctor', {}],
      ['send_test_email', { subject: 'x', text: 'x' }],
      ['pause_queue', { destination: 'example.com' }],
    ] as const)
      expect([name, await codeOf(reader.call(name, given))]).toEqual([name, 'permission_denied'])
    const { token } = done(await reader.call('retry_email', { emailId: ids.failed }))
    expect(await codeOf(reader.call('retry_email', { emailId: ids.failed, token }))).toBe('permission_denied')
  })

  test('a live key cannot send', async () => {
    expect(await codeOf(live.call('send_test_email', { subject: 'x', text: 'x' }))).toBe('permission_denied')
  })
})

describe('the token of a plan', () => {
  const given = { destination: 'example.net' }
  const planned = async (agent = http) => done(await agent.call('pause_queue', given)).token as string
  const problem = async (agent: Agent, name: string, more: object) => {
    const { data } = await agent.call(name, more)
    return (data as { untrusted?: never; error?: { code: string; field: string; untrusted: { message: string } } }).error?.untrusted.message
  }

  test('is refused when altered, for another key, action or argument', async () => {
    const token = await planned()
    const altered = token.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
    const other = 'token belongs to another action, other arguments or another key, or was altered'
    expect(await problem(http, 'pause_queue', { ...given, token: altered })).toBe(other)
    expect(await problem(live, 'pause_queue', { ...given, token })).toBe(other)
    expect(await problem(http, 'resume_queue', { ...given, token })).toBe(other)
    expect(await problem(http, 'pause_queue', { destination: 'example.org', token })).toBe(other)
    expect(await problem(http, 'pause_queue', { ...given, reason: 'more', token })).toBe(other)
    expect(await problem(http, 'pause_queue', { ...given, token: 'please' })).toBe('token is not a token of a plan')
    expect(await problem(http, 'queue', { token })).toBe('token is not a token of a plan')
    expect(done(await http.call('queue')).pauses).toEqual([])
  })

  test('is refused after five minutes', async () => {
    const token = await planned()
    aheadMs = planMs
    expect(await problem(http, 'pause_queue', { ...given, token })).toBe('token has expired')
  })

  test('works once, also for two calls at a time', async () => {
    const token = await planned()
    const answers = await Promise.all(Array.from({ length: 4 }, () => http.call('pause_queue', { ...given, token })))
    expect(answers.filter((one) => !one.isError)).toHaveLength(1)
    expect(await problem(http, 'pause_queue', { ...given, token })).toBe('token was used already')
    const resume = done(await http.call('resume_queue', given)).token
    done(await http.call('resume_queue', { ...given, token: resume }))
  })
})

test('every call is in the audit log with its step, and without addresses', async () => {
  const address = 'audited@example.com'
  await asOwner('POST', '/suppressions', { address })
  const { token } = done(await http.call('remove_suppression', { address }))
  await http.call('remove_suppression', { address, token: 'x' })
  await http.call('remove_suppression', { address: 'other@example.com', token })
  done(await http.call('remove_suppression', { address, token }))
  await http.call('why_no_mail', { address, tenantId: service.tenantId })
  await http.call('why_no_mail', {})
  const steps = async (action: string, size: number) => {
    const { entries } = await listAudit(service.db, { tenantId: null, action }, { number: 1, size })
    expect(JSON.stringify(entries)).not.toContain('@example.com')
    return entries.map(({ actor, data }) => [actor.kind, actor.name, data.step])
  }
  expect(await steps('mcp remove_suppression', 4)).toEqual([
    ['key', 'test', 'act'],
    ['key', 'test', 'refused'],
    ['key', 'test', 'refused'],
    ['key', 'test', 'plan'],
  ])
  expect(await steps('mcp why_no_mail', 2)).toEqual(Array(2).fill(['key', 'test', 'read']))
  const changes = JSON.stringify(done(await http.call('what_changed')).changes)
  expect(changes).toContain('mcp remove_suppression')
  expect(changes).not.toContain('mcp why_no_mail')
})

test('an equal question is in the audit log once a minute, with its id; plans and refusals are each time', async () => {
  const count = async (action: string) => (await listAudit(service.db, { tenantId: null, action }, { number: 1, size: 1 })).total
  const [before, plans] = [await count('mcp show_domain'), await count('mcp resume_queue')]
  for (const domainId of [81, 81, 82, 81]) await http.call('show_domain', { domainId })
  expect(await count('mcp show_domain')).toBe(before + 2)
  await live.call('show_domain', { domainId: 81 })
  expect(await count('mcp show_domain')).toBe(before + 3)
  for (const token of [undefined, undefined, 'x', 'x'])
    await http.call('resume_queue', { destination: 'example.com', ...(token ? { token } : {}) })
  expect(await count('mcp resume_queue')).toBe(plans + 4)
})

describe('refused are', () => {
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${service.port}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.testKey}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify(body),
    })
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

  test.each<[string, number, string, unknown, Record<string, string>]>([
    ['a request without a key', 401, 'authentication_required', list, { authorization: '' }],
    ['a session in place of a key', 401, 'authentication_required', list, { authorization: '', cookie: 'postrider=x' }],
    ['an unknown key', 401, 'invalid_api_key', list, { authorization: `Bearer svc_test_${'x'.repeat(32)}` }],
    ['a page of another origin', 403, 'permission_denied', list, { origin: 'https://evil.example' }],
    ['several messages at once', 400, 'validation_error', [list, list], {}],
    ['a large body', 400, 'payload_too_large', { ...list, params: 'x'.repeat(140_000) }, {}],
    ['a form', 400, 'invalid_content_type', list, { 'content-type': 'text/plain' }],
  ])('%s', async (_, status, code, body, headers) => {
    const answer = await post(body, headers)
    expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual([status, code])
  })

  test('streams and sessions', async () => {
    for (const method of ['GET', 'DELETE']) {
      const answer = await fetch(`http://127.0.0.1:${service.port}/mcp`, { method })
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
    }
    const method = 'subscriptions/listen'
    const version = '2026-07-28'
    const about = { 'io.modelcontextprotocol/protocolVersion': version, 'io.modelcontextprotocol/clientCapabilities': {} }
    const modern = { ...list, method, params: { _meta: about, notifications: { toolsListChanged: true } } }
    for (const answer of [await post({ ...list, method }), await post(modern, { 'mcp-protocol-version': version, 'mcp-method': method })]) {
      expect(answer.headers.get('content-type')).toContain('application/json')
      expect(await answer.json()).toHaveProperty('error')
    }
  })

  test.each<[string, object, string]>([
    ['no_such_tool', {}, 'not_found'],
    ['explain_email', {}, 'validation_error'],
    ['explain_email', { emailId: 7 }, 'validation_error'],
    ['explain_email', { emailId: 'x'.repeat(41) }, 'validation_error'],
    ['explain_email', { emailId: 'absent' }, 'not_found'],
    ['queue', { everything: true }, 'validation_error'],
    ['queue', { showAddresses: 'yes' }, 'validation_error'],
    ['queue', { tenantId: 'absent' }, 'not_found'],
    ['why_no_mail', { address: 'not an address' }, 'invalid_email_format'],
    ['pause_queue', { destination: 'not a domain' }, 'validation_error'],
    ['pause_queue', { destination: 'example.com', reason: 'a\u0000b' }, 'validation_error'],
    ['remove_suppression', { address: 'stranger@example.com' }, 'not_found'],
    ['show_domain', { domainId: 1 }, 'not_found'],
  ])('%s with %j', async (name, given, code) => {
    expect(await codeOf(http.call(name, given))).toBe(code)
  })
})

interface Batch {
  results: { id: string; status: string }[]
}

test('200 subjects and replies that give orders appear only below untrusted, neutral and bounded, and change nothing else', async () => {
  expect(hostileTexts).toHaveLength(200)
  const toolsBefore = await http.tools()
  // The API refuses control characters and line separators in a subject.
  const subjects = hostileTexts.map(({ text }) => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, 900))
  const usual = { text: 'Hello.', scheduledAt: inAnHour() }
  const emails = [...subjects, 'Harmless'].map((subject, n) => ({ to: [`reader${n}@simulator.test`], subject, ...usual }))
  const batchOf = async (some: readonly object[]) =>
    (await asOwner<Batch>('POST', '/emails/batch', { from, emails: some }, service.testKey)).results
  const results = [
    ...(await batchOf(emails.slice(0, 100))),
    ...(await batchOf(emails.slice(100, 200))),
    ...(await batchOf(emails.slice(200))),
  ]
  expect(results.filter((one) => one.status !== 'accepted')).toEqual([])
  const at = new Date(clock.nowMs())
  const attempt = {
    status: 'softfail',
    at,
    durationMs: 5,
    code: 451,
    enhanced: '4.0.0',
    secure: false,
    classification: 'spam_block',
  } as const
  await service.db.transaction(async (tx) => {
    for (const [n, { id }] of results.entries()) {
      const text = (hostileTexts[n]?.text ?? 'Harmless').replaceAll('\u0000', ' ').slice(0, 2000)
      await appendAttempt(
        tx,
        { tenantId: service.tenantId, id },
        { ...attempt, details: text, output: text, remoteHost: text.slice(0, 200) },
      )
    }
  })

  const harmless = results[200]?.id ?? ''
  const facts = (answer: ToolAnswer, id: string) =>
    JSON.stringify(factsOf(answer.data))
      .replaceAll(id, 'ID')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
  const check = (answer: ToolAnswer, words: readonly string[]) => {
    expect(answer.isError).toBe(false)
    expect(answer.text.length).toBeLessThanOrEqual(24_000)
    expect(words.filter((word) => !answer.text.includes(word))).toEqual([])
    for (const { path, text } of stringsOf(answer.data)) {
      if (path.includes('.untrusted')) expect([path, text]).toEqual([path, expect.not.stringMatching(forbidden)])
      // Whole words: an id may contain a part of one by chance.
      else expect([path, text]).toEqual([path, expect.not.stringMatching(/zq\d+x\d+q|evil|\beve\b/)])
      expect(text.length).toBeLessThan(1600)
    }
    expect(answer.text).not.toContain('eve@')
  }
  for (const name of ['explain_email', 'list_attempts', 'show_email']) {
    const expected = facts(await http.call(name, { emailId: harmless }), harmless)
    // The first has both texts of each email.
    const chosen = hostileTexts
      .map(({ word }, n) => ({ word, id: results[n]?.id ?? '', n }))
      .filter(({ n }) => name === 'explain_email' || n % 7 === 0)
    const answers = await Promise.all(chosen.map(async ({ id, word }) => ({ id, word, answer: await http.call(name, { emailId: id }) })))
    for (const { id, word, answer } of answers) {
      check(answer, [word])
      expect(facts(answer, id)).toBe(expected)
    }
  }
  for (const page of [1, 2, 3, 4]) check(await http.call('list_emails', { from, page, limit: 50, status: 'pending' }), [])
  check(await http.call('why_no_mail', { address: 'reader7@simulator.test' }), [hostileTexts[7]?.word ?? ''])
  expect(await http.tools()).toBe(toolsBefore)
})

test('the command answers the requests that came before the end of its input', async () => {
  const env = { PATH: process.env.PATH ?? '', POSTRIDER_URL: `http://127.0.0.1:${service.port}`, POSTRIDER_KEY: service.testKey }
  const command = spawn(process.execPath, ['bin/postrider.js', 'mcp'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(command, 'exit')
  const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const messages = [
    { jsonrpc: '2.0', id: 1, method: 'initialize', params: hello },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'list_emails', arguments: {} } },
  ]
  command.stdin.end(messages.map((message) => `${JSON.stringify(message)}\n`).join(''))
  const answers = (await text(command.stdout)).trim().split('\n')
  expect(answers.map((line) => JSON.parse(line))).toMatchObject([
    { id: 1, result: { serverInfo: { name: 'postrider' } } },
    { id: 2, result: { isError: false } },
  ])
  expect(await ended).toEqual([0, null])
})

test('the command needs the URL of a service and a key', async () => {
  const told = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  onTestFinished(() => told.mockRestore())
  expect(await runHere(['mcp'], {})).toBe(2)
  expect(await runHere(['mcp', '--url', 'http://127.0.0.1:1'], {})).toBe(2)
  expect(await runHere(['mcp'], { environment: { POSTRIDER_URL: 'ftp://x', POSTRIDER_KEY: 'x' } })).toBe(2)
  expect(told.mock.calls.map(([text]) => String(text))).toEqual([
    expect.stringContaining('--url is required'),
    expect.stringContaining('--key is required'),
    expect.stringContaining('must be an http or https URL'),
  ])
})

test('/llms.txt lists the pages of the guide, and each address leads to a page', async () => {
  const get = (path: string) => fetch(`http://127.0.0.1:${service.port}${path}`)
  const text = await (await get('/llms.txt')).text()
  expect(text).toMatch(/^# Postrider\n\n> /)
  const addresses = [...text.matchAll(/\]\((\/[^)]+)\)/g)].map(([, path]) => path as string)
  expect(addresses.length).toBeGreaterThan(50)
  const statuses = await Promise.all(addresses.map(async (path) => [path, (await get(path)).status]))
  expect(statuses.filter(([, status]) => status !== 200)).toEqual([])
})
