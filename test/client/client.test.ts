/** The TypeScript client against the running service. A real proxy between the two causes the network faults. */
import { request as ask, createServer } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  AuthenticationError,
  ConnectionError,
  NotFoundError,
  PermissionError,
  Postrider,
  RateLimitError,
  type Settings,
  type StreamedEvent,
  TimeoutError,
  ValidationError,
} from '../../packages/client/src/index.ts'
import { type Service, startService } from '../support/in-process-service.ts'

const usual = { from: 'shop@simulator.test', to: ['delivered@simulator.test'], subject: 'Your order' }

let service: Service
let proxy: Awaited<ReturnType<typeof startProxy>>
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'] })
  proxy = await startProxy(service.port)
})
afterEach(() => proxy.behave('pass'))
afterAll(async () => {
  await proxy.stop()
  await service.stop()
})

const open = (more: Partial<Settings> = {}) =>
  new Postrider({ apiKey: service.testKey, baseUrl: `http://127.0.0.1:${proxy.port}/v1`, sleep: async () => undefined, ...more })

type Manner =
  | 'pass'
  | 'lose the answer'
  | 'be away'
  | 'stay silent'
  | 'pass the beginning'
  | { status: number; headers: Record<string, string> }

/** Forwards to the service. Any other behaviour is applied `times` times. */
async function startProxy(target: number) {
  let manner: Manner = 'pass'
  let left = 0
  const seen: { method: string; url: string; key: string | undefined }[] = []
  const server = createServer((incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming
    seen.push({ method, url, key: headers['idempotency-key'] as string | undefined })
    const now = left-- > 0 ? manner : 'pass'
    if (now === 'be away') return void incoming.socket.destroy()
    if (now === 'stay silent') return
    if (typeof now === 'object') return void outgoing.writeHead(now.status, now.headers).end('<h1>from a proxy</h1>')
    const onward = ask({ port: target, host: '127.0.0.1', method, path: url, headers }, (answer) => {
      if (now === 'lose the answer') {
        answer.resume().on('end', () => incoming.socket.destroy())
        return
      }
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      if (now === 'pass the beginning') outgoing.flushHeaders()
      else answer.pipe(outgoing)
      outgoing.on('close', () => onward.destroy())
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as { port: number }).port,
    seen,
    behave(next: Manner, times = 1) {
      manner = next
      left = times
      seen.length = 0
    },
    cut: () => server.closeAllConnections(),
    stop: () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  }
}

test('an email is sent, read back and found in the test inbox', async () => {
  const postrider = open()
  const sent = await postrider.emails.send({
    ...usual,
    to: ['delivered+first@simulator.test'],
    html: '<p>Hello</p>',
    metadata: { order: '1' },
  })
  expect(sent).toMatchObject({ status: 'pending', to: ['delivered+first@simulator.test'] })
  const { data } = await postrider.test.inbox.list({ to: 'delivered+first@simulator.test', wait: 10 }).page()
  expect(data).toMatchObject([{ emailId: sent.id, subject: 'Your order' }])
  expect(await postrider.emails.retrieve(sent.id, { expand: 'content' })).toMatchObject({ status: 'sent', htmlBody: '<p>Hello</p>' })
})

test('a list is walked to its end, page by page', async () => {
  const postrider = open()
  const emails = Array.from({ length: 7 }, (_, n) => ({ to: [`delivered+${n}@simulator.test`], subject: `No ${n}`, tag: 'walked' }))
  expect(await postrider.emails.sendBatch({ from: usual.from, emails })).toMatchObject({ accepted: 7, failed: 0 })
  proxy.behave('pass')
  const seen: string[] = []
  for await (const { subject } of postrider.emails.list({ tag: 'walked', perPage: 3 })) seen.push(subject)
  expect(seen.sort()).toEqual(emails.map(({ subject }) => subject))
  expect(proxy.seen.map(({ url }) => /&page=(\d)/.exec(url)?.[1])).toEqual([undefined, '2', '3'])
  expect(await postrider.emails.list({ tag: 'walked', perPage: 3, page: 2 }).page()).toMatchObject({ page: 2, total: 7, totalPages: 3 })
  expect(await postrider.emails.list({ tag: 'walked', perPage: 3 }).take(4)).toHaveLength(4)
})

test('each status of a refusal is a class of its own, with code, suggestion and request id', async () => {
  const postrider = open()
  const refused = await postrider.emails.send({ ...usual, to: ['a@example.org', 'nobody'] }).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(ValidationError)
  expect(refused).toMatchObject({ status: 400, code: 'invalid_email_format', field: 'to[1]', suggestion: expect.stringMatching(/./) })
  expect(refused).toMatchObject({ requestId: expect.stringMatching(/^req_/), details: [{ field: 'to[1]' }] })
  await expect(postrider.tenants.retrieve('nobody')).rejects.toBeInstanceOf(NotFoundError)
  await expect(open({ apiKey: 'svc_test_no' }).limits.retrieve()).rejects.toBeInstanceOf(AuthenticationError)
  const reader = await service.makeKey({ permissions: ['emails:read'] })
  await expect(open({ apiKey: reader }).domains.list()).rejects.toBeInstanceOf(PermissionError)
})

test('a send whose answer was lost is made again and sends once', async () => {
  const postrider = open()
  proxy.behave('lose the answer', 2)
  const { id } = await postrider.emails.send({ ...usual, tag: 'lost' })
  expect(proxy.seen).toHaveLength(3)
  expect(new Set(proxy.seen.map(({ key }) => key))).toHaveProperty('size', 1)
  expect((await postrider.emails.list({ tag: 'lost' }).page()).data).toMatchObject([{ id }])
})

test("a caller's own idempotency key is used", async () => {
  const postrider = open()
  proxy.behave('pass')
  const first = await postrider.emails.send(usual, { idempotencyKey: 'order-1' })
  expect(await postrider.emails.send(usual, { idempotencyKey: 'order-1' })).toEqual(first)
  expect(proxy.seen.map(({ key }) => key)).toEqual(['order-1', 'order-1'])
})

test('a call that would act twice is not repeated when its answer is lost', async () => {
  proxy.behave('lose the answer', 9)
  await expect(open().tenants.create({ name: 'Once' })).rejects.toBeInstanceOf(ConnectionError)
  expect(proxy.seen).toHaveLength(1)
})

test('a creation that may have been done is not repeated, although the service asks for it; a send is', async () => {
  const again = { 'x-should-retry': 'true', 'retry-after': '0' }
  for (const status of [500, 503]) {
    proxy.behave({ status, headers: again }, 9)
    await expect(open().tenants.create({ name: 'Perhaps' })).rejects.toMatchObject({ status })
    expect(proxy.seen).toHaveLength(1)
  }
  for (const [status, headers] of [
    [400, again],
    [408, {}],
    [503, again],
  ] as const) {
    proxy.behave({ status, headers })
    expect(await open().emails.send({ ...usual, tag: 'in progress' })).toMatchObject({ status: 'pending' })
    expect(proxy.seen).toHaveLength(2)
  }
})

test('a call that was refused with a time to come back is made again after that time', async () => {
  const slept: number[] = []
  const sleep = async (delayMs: number) => void slept.push(delayMs)
  proxy.behave({ status: 429, headers: { 'retry-after': '3' } })
  await open({ sleep }).tenants.create({ name: 'After a pause' })
  proxy.behave({ status: 429, headers: { 'retry-after': new Date(5000).toUTCString() } })
  await open({ sleep, now: () => 1000 }).limits.retrieve()
  expect(slept).toEqual([3000, 4000])
})

test('without such a time it waits longer each time, up to a limit, with chance in it', async () => {
  const slept: number[] = []
  const settings = { sleep: async (delayMs: number) => void slept.push(delayMs), random: () => 0.5, maxRetries: 7 }
  proxy.behave('be away', 8)
  await expect(open(settings).limits.retrieve()).rejects.toBeInstanceOf(ConnectionError)
  expect(slept).toEqual([375, 750, 1500, 3000, 6000, 6000, 6000])
})

test('a wait of more than a minute, and a no to trying again, are left to the caller', async () => {
  proxy.behave({ status: 429, headers: { 'retry-after': '3600' } }, 9)
  const refused = await open()
    .limits.retrieve()
    .catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(RateLimitError)
  expect(refused).toMatchObject({ retryAfterMs: 3_600_000 })
  proxy.behave({ status: 503, headers: { 'x-should-retry': 'false' } }, 9)
  await expect(open().limits.retrieve()).rejects.toMatchObject({ status: 503 })
  expect(proxy.seen).toHaveLength(1)
})

test('the real rate limit is waited out', async () => {
  await using limited = await startService({ rateLimit: 5 })
  const postrider = new Postrider({ apiKey: limited.testKey, baseUrl: `http://127.0.0.1:${limited.port}/v1`, maxRetries: 9 })
  const all = await Promise.all(Array.from({ length: 9 }, () => postrider.limits.retrieve()))
  expect(all).toHaveLength(9)
})

test('silence ends in time, and at once when the caller wants no more', async () => {
  proxy.behave('stay silent', 9)
  // Counted at the caller, not at the server: on a busy machine the time is over before requests arrive.
  let asked = 0
  const counted: typeof fetch = (...given) => {
    asked++
    return fetch(...given)
  }
  await expect(open({ timeoutMs: 200, maxRetries: 1, fetch: counted }).limits.retrieve()).rejects.toBeInstanceOf(TimeoutError)
  expect(asked).toBe(2)
  const stop = new AbortController()
  const reason = new Error('enough')
  const waiting = open().emails.retrieve('waited-for', {}, { signal: stop.signal })
  await expect.poll(() => proxy.seen.some(({ url }) => url.includes('waited-for'))).toBe(true)
  stop.abort(reason)
  await expect(waiting).rejects.toBe(reason)
})

test('a redirect is not followed with the key', async () => {
  proxy.behave({ status: 302, headers: { location: 'http://127.0.0.1:9/' } })
  await expect(open().limits.retrieve()).rejects.toMatchObject({ status: 302 })
  proxy.behave({ status: 308, headers: { location: 'https://mail.example.com/v1/limits' } })
  await expect(open().limits.retrieve()).rejects.toMatchObject({
    message: 'status 308: redirected to https://mail.example.com/v1/limits',
    suggestion: 'If the service is at https://mail.example.com, use this URL',
  })
})

test('a tenant has its own domains, keys, suppressions and webhooks', async () => {
  const tenant = await open().tenants.create({ name: 'Shop' })
  const shop = open().tenant(tenant.id)
  await shop.suppressions.create({ address: 'a+b@example.org' })
  expect(await shop.suppressions.retrieve('a+b@example.org')).toMatchObject({ suppressed: true })
  expect(await open().suppressions.retrieve('a+b@example.org')).toMatchObject({ suppressed: false })
  expect((await shop.suppressions.list().page()).data).toMatchObject([{ tenantId: tenant.id }])
})

test('the events of an email arrive as they happen, past a broken connection, each once', async () => {
  const stop = new AbortController()
  const postrider = open()
  const came: StreamedEvent[] = []
  proxy.behave('pass')
  const reading = (async () => {
    for await (const one of postrider.events.stream({ after: '0-0' }, { signal: stop.signal })) came.push(one)
  })()
  const { id } = await postrider.emails.send({ ...usual, tag: 'streamed' })
  const isHere = (token: string) => came.some(({ event }) => event.event === 'MessageSent' && event.payload.message.token === token)
  await expect.poll(() => isHere(id), { timeout: 10_000 }).toBe(true)
  proxy.cut()
  const again = await postrider.emails.send({ ...usual, tag: 'streamed' })
  await expect.poll(() => isHere(again.id), { timeout: 10_000 }).toBe(true)
  expect(new Set(came.map(({ id }) => id)).size).toBe(came.length)
  stop.abort()
  await reading
})

test('a stream goes on after the service was away for longer than a request is repeated, and ends when the key is refused', async () => {
  const postrider = open()
  const came: StreamedEvent[] = []
  const reading = (async () => {
    for await (const one of postrider.events.stream({ after: '0-0' })) came.push(one)
  })()
  await expect.poll(() => came.length, { timeout: 10_000 }).toBeGreaterThan(0)
  proxy.behave('be away', 9)
  proxy.cut()
  await expect.poll(() => proxy.seen.length, { timeout: 10_000 }).toBeGreaterThan(9)
  const { id } = await postrider.emails.send({ ...usual, tag: 'after a pause' })
  const isHere = () => came.some(({ event }) => event.event === 'MessageSent' && event.payload.message.token === id)
  await expect.poll(isHere, { timeout: 10_000 }).toBe(true)
  expect(new Set(came.map((one) => one.id)).size).toBe(came.length)
  proxy.behave({ status: 401, headers: {} }, 9)
  proxy.cut()
  await expect(reading).rejects.toMatchObject({ status: 401 })
})

test('a stream that falls silent is opened again after the last event, and every character of an event arrives', async () => {
  const stop = new AbortController()
  const note = 'line\u2028 and paragraph\u2029'
  const postrider = open({ silenceMs: 300 })
  const { id } = await postrider.emails.send({ ...usual, metadata: { note } })
  proxy.behave('pass the beginning', 1)
  for await (const { event } of postrider.events.stream({ after: '0-0' }, { signal: stop.signal })) {
    if (event.event !== 'MessageSent' || event.payload.message.token !== id) continue
    expect(event.payload.message.metadata).toMatchObject({ note })
    stop.abort()
  }
  expect(proxy.seen.length).toBeGreaterThan(1)
})

test('no more events come from a stream after its signal, not even those that have arrived', async () => {
  const stop = new AbortController()
  const event = { event: 'MessageSent', timestamp: 1, uuid: 'u', tenant_id: 't', payload: {} }
  const piece = [1, 2, 3].map((n) => `id: ${n}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  const answer = async () => new Response(piece, { headers: { 'content-type': 'text/event-stream' } })
  const came: string[] = []
  for await (const { id } of open({ fetch: answer }).events.stream({}, { signal: stop.signal })) {
    came.push(id)
    stop.abort()
  }
  expect(came).toEqual(['1'])
})

test('an answer of a proxy is an error with its text, also with status 200', async () => {
  const page = { status: 200, headers: { 'content-type': 'text/html' } }
  proxy.behave(page, 9)
  await expect(open().limits.retrieve()).rejects.toMatchObject({
    name: 'ConnectionError',
    message: 'the answer is not JSON: <h1>from a proxy</h1>',
  })
  proxy.behave(page, 9)
  await expect(open().events.stream()[Symbol.asyncIterator]().next()).rejects.toThrow('not an event stream')
  expect(proxy.seen).toHaveLength(1)
})

test('a time without an end is no time at all', async () => {
  expect(await open({ timeoutMs: Number.POSITIVE_INFINITY }).limits.retrieve()).toMatchObject({})
})

test('changes of a suppression list are sent to a stream that names them', async () => {
  const stop = new AbortController()
  const postrider = open()
  proxy.behave('pass')
  await postrider.suppressions.create({ address: 'named@example.org', reason: 'asked' })
  const events = 'SuppressionAdded,SuppressionRemoved'
  for await (const { event } of postrider.events.stream({ after: '0-0', events }, { signal: stop.signal })) {
    if (event.event !== 'SuppressionAdded' || event.payload.address !== 'named@example.org') continue
    expect(event.payload).toMatchObject({ reason: 'asked', source: 'manual', message: null })
    stop.abort()
  }
  expect(stop.signal.aborted).toBe(true)
})

test('a value that cannot be part of a path is refused before any request', () => {
  const postrider = open()
  for (const id of ['', '.', '..']) expect(() => postrider.emails.retrieve(id)).toThrow(TypeError)
  expect(() => open({ baseUrl: 'http://127.0.0.1:3025' })).toThrow(/v1/)
  expect(() => open({ apiKey: '' })).toThrow(TypeError)
})
