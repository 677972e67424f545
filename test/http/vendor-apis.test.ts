/** Endpoints of other vendors' APIs: costs that a tenant could raise, and requests that no SDK of the compatibility tests makes. */
import { GetAccountCommand } from '@aws-sdk/client-sesv2'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { sql } from '#db'
import { changeStatus, listEmailsOfMessage } from '#emails'
import { appendEvents } from '#events'
import { keyLimitScope, setLimits, tenantLimitScope } from '#limits'
import { readSesEmail } from '#ses'
import { findSuppression, importSuppressions, saveSuppression, suppress } from '#suppressions'
import { checkRaw } from '../../src/accept/raw-submission.ts'
import { messageTurns, searchTurns } from '../../src/http/v1/search-turns.ts'
import type { TenantTurns } from '../../src/http/v1/tenant-turns.ts'
import type { SignedBy } from '../support/aws-signature.ts'
import { type Service, startService } from '../support/in-process-service.ts'
import { sesv2Client } from '../support/sdk-clients.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
})
afterAll(() => service.stop())

interface Called {
  method?: string
  headers: Record<string, string>
  body?: object
}

async function call(path: string, { method = 'GET', headers, body }: Called) {
  const response = await fetch(`http://127.0.0.1:${service.port}${path}`, {
    method,
    headers: { ...headers, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return { status: response.status, body: JSON.parse(await response.text()) }
}
const postmark = (path: string, key: string, more: Omit<Called, 'headers'> = {}) =>
  call(path, { ...more, headers: { 'x-postmark-server-token': key } })
const resend = (path: string, key: string, more: Omit<Called, 'headers'> = {}) =>
  call(path, { ...more, headers: { authorization: `Bearer ${key}` } })

const keyOfTenant = async (name: string) => service.makeKey({ tenantId: await service.makeTenant(name) })

async function sendToMany(key: string, recipients: number, more: Record<string, string> = {}): Promise<string> {
  const form = new FormData()
  for (const [name, value] of Object.entries({ from: 'shop@simulator.test', subject: 'Hello', text: 'Hi', ...more })) form.set(name, value)
  form.set('to', Array.from({ length: recipients }, (_, nth) => `to${nth}@simulator.test`).join(','))
  const sent = await fetch(`http://127.0.0.1:${service.port}/v3/simulator.test/messages`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` },
    body: form,
  })
  expect(sent.status).toBe(200)
  return (await resend('/emails?limit=1', key)).body.data[0].id
}

test('the details of a message with 200 recipients need a few queries', async () => {
  const key = await keyOfTenant('queries')
  const id = await sendToMany(key, 200)
  const queries = vi.spyOn(service.db, 'rows')
  const details = await postmark(`/messages/outbound/${id}/details`, key)
  const email = await resend(`/emails/${id}`, key)
  expect(queries.mock.calls.length).toBeLessThan(20)
  queries.mockRestore()
  expect(details.body.Recipients).toHaveLength(50)
  expect(email.body.to).toHaveLength(200)
})

/** Runs `work` while all turns of the tenant for searches and for single messages are taken. */
async function whileTurnsAreTaken(tenantId: string, work: () => Promise<void>): Promise<void> {
  const { promise, resolve: end } = Promise.withResolvers<void>()
  const fill = (turns: TenantTurns, length: number) => Array.from({ length }, () => turns.run({ tenantId, gone: undefined }, () => promise))
  const taken = [...fill(searchTurns, 44), ...fill(messageTurns, 103)]
  await work().finally(end)
  await Promise.all(taken)
}

test('the details of messages and the dump of suppressions wait for a turn of the tenant', async () => {
  const tenantId = await service.makeTenant('turns')
  const key = await service.makeKey({ tenantId })
  const id = await sendToMany(key, 2)
  await whileTurnsAreTaken(tenantId, async () => {
    expect((await postmark(`/messages/outbound/${id}/details`, key)).status).toBe(429)
    expect((await resend(`/emails/${id}`, key)).status).toBe(429)
    expect((await postmark('/message-streams/outbound/suppressions/dump', key)).status).toBe(429)
  })
})

test('the dump of suppressions reads pages by address, without counts', async () => {
  const tenantId = await service.makeTenant('dump')
  const key = await service.makeKey({ tenantId })
  const entries = Array.from({ length: 6000 }, (_, nth) => ({ address: `a${nth}@one.example`, createdAt: new Date(1000 * nth) }))
  await importSuppressions(
    service.db,
    tenantId,
    entries.map((one) => ({ ...one, reason: 'bounce', source: 'automatic', keepUntil: null })),
  )
  const queries = vi.spyOn(service.db, 'first')
  const dumped = async (query: string): Promise<{ EmailAddress: string }[]> =>
    (await postmark(`/message-streams/outbound/suppressions/dump${query}`, key)).body.Suppressions
  const all = await dumped('')
  expect(queries.mock.calls.filter(([statement]) => statement.text.includes('count(*)'))).toEqual([])
  queries.mockRestore()
  expect(new Set(all.map((one) => one.EmailAddress)).size).toBe(6000)
  expect(await dumped('?SuppressionReason=SpamComplaint')).toEqual([])
  expect(await dumped('?todate=1970-01-01T00:00:02')).toHaveLength(3)
  expect(await dumped('?EmailAddress=foo')).toEqual([])
  expect(await dumped('?EmailAddress=A7@one.example')).toMatchObject([{ EmailAddress: 'a7@one.example', Origin: 'Recipient' }])
  expect(await dumped('?EmailAddress=A7@one.example&todate=1970-01-01T00:00:02')).toEqual([])
})

test("a key of the organisation shows and removes entries of the default tenant's list and of the organisation's", async () => {
  const key = await service.makeKey({})
  const { db, tenantId } = service
  const suppress = async (list: string, address: string) => saveSuppression(db, list, { address }, Date.now())
  await suppress('', 'both@one.example')
  for (const [list, name] of [
    [tenantId, 'both'],
    [tenantId, 'b'],
    ['', 'a'],
    ['', 'c'],
  ] as const)
    await suppress(list, `${name}@one.example`)
  const dump = await postmark('/message-streams/outbound/suppressions/dump', key)
  expect(dump.body.Suppressions.map((one: { EmailAddress: string }) => one.EmailAddress)).toEqual([
    'a@one.example',
    'b@one.example',
    'both@one.example',
    'c@one.example',
  ])
  const idsOf = async (query: string) =>
    (await resend(`/suppressions?${query}`, key)).body.data.map(({ id }: { id: string }) => id.split('@')[0])
  expect(await idsOf('')).toEqual(['c', 'a', 'b', 'both'])
  expect(await idsOf('limit=2&after=a@one.example')).toEqual(['b', 'both'])
  expect(await idsOf('limit=2&before=both@one.example')).toEqual(['a', 'b'])
  expect((await resend('/suppressions/a@one.example', key)).status).toBe(200)
  expect((await resend('/suppressions/both@one.example', key, { method: 'DELETE' })).status).toBe(200)
  expect((await resend('/suppressions/both@one.example', key)).status).toBe(404)
  const body = { Suppressions: ['a', 'b', 'c'].map((name) => ({ EmailAddress: `${name}@one.example` })) }
  const deleted = await postmark('/message-streams/outbound/suppressions/delete', key, { method: 'POST', body })
  expect(deleted.body.Suppressions).toMatchObject([{ Status: 'Deleted' }, { Status: 'Deleted' }, { Status: 'Deleted' }])
  expect(await idsOf('')).toEqual([])
})

test("Mailgun's and SendGrid's lists of a key of the organisation are the default tenant's and the organisation's", async () => {
  const key = await service.makeKey({})
  const { db, tenantId } = service
  const mailgun = (path: string, method = 'GET', body?: object) =>
    call(`/v3/simulator.test/${path}`, {
      method,
      headers: { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` },
      ...(body ? { body } : {}),
    })
  const email = (name: string) => `${name}@lists.example`
  const bounced = { reason: 'bounce', source: 'automatic', keepUntil: null } as const
  const bounce = (list: string, name: string, second: number) =>
    importSuppressions(db, list, [{ ...bounced, address: email(name), createdAt: new Date(second * 1000) }])
  for (const [nth, [list, name]] of [[tenantId, 'b'] as const, ['', 'a'] as const, ['', 'c'] as const, ['', 'both'] as const].entries())
    await bounce(list, name, 1 + nth)
  await bounce(tenantId, 'both', 5)
  const namesOf = (entries: { address?: string; email?: string }[]) =>
    entries.map(({ address, email }) => (address ?? email ?? '').split('@')[0])
  const mailgunNames = async (query = '') => namesOf((await mailgun(`bounces${query}`)).body.items)
  const sendgridNames = async (query = '') => namesOf((await resend(`/v3/suppression/bounces${query}`, key)).body)
  expect(await mailgunNames()).toEqual(['a', 'b', 'both', 'c'])
  expect(await mailgunNames(`?page=next&limit=2&address=${email('a')}`)).toEqual(['b', 'both'])
  expect(await mailgunNames(`?page=previous&limit=2&address=${email('c')}`)).toEqual(['b', 'both'])
  expect(await sendgridNames()).toEqual(['both', 'c', 'a', 'b'])
  expect(await sendgridNames('?limit=2&offset=1')).toEqual(['c', 'a'])
  expect((await mailgun(`bounces/${email('b')}`)).status).toBe(200)
  expect((await resend(`/v3/suppression/bounces/${email('b')}`, key)).body).toHaveLength(1)
  expect((await mailgun(`bounces/${email('both')}`, 'DELETE')).status).toBe(200)
  expect(await mailgunNames()).toEqual(['a', 'b', 'c'])
  await mailgun('bounces', 'POST', [{ address: email('mailgun') }])
  await mailgun('unsubscribes', 'POST', [{ address: email('manual') }])
  const added = { recipient_emails: [email('sendgrid')] }
  expect((await resend('/v3/asm/suppressions/global', key, { method: 'POST', body: added })).status).toBe(201)
  for (const name of ['mailgun', 'manual', 'sendgrid']) expect((await findSuppression(db, tenantId, email(name))).entry).toBeDefined()
  expect((await mailgun('bounces', 'DELETE')).status).toBe(200)
  expect(await sendgridNames()).toEqual([])
  expect(namesOf((await mailgun('unsubscribes')).body.items)).toEqual(['manual', 'sendgrid'])
})

test('an address on the organisation list stays suppressed for a key of a tenant, and its removal fails', async () => {
  const tenantId = await service.makeTenant('removal')
  const key = await service.makeKey({ tenantId })
  for (const list of ['', tenantId]) await saveSuppression(service.db, list, { address: 'stays@one.example' }, Date.now())
  const body = { Suppressions: [{ EmailAddress: 'stays@one.example' }, { EmailAddress: 'other@one.example' }, { EmailAddress: 'none' }] }
  const deleted = await postmark('/message-streams/outbound/suppressions/delete', key, { method: 'POST', body })
  expect(deleted.body.Suppressions).toMatchObject([
    { Status: 'Failed', Message: expect.stringContaining('organisation') },
    { Status: 'Deleted', Message: null },
    { Status: 'Failed', Message: 'An invalid email address was provided.' },
  ])
})

test('the tags of a raw message have the limits of other vendors, as those of a simple one', () => {
  const Data = Buffer.from('From: a@b.example\r\nTo: c@d.example\r\nX-SES-MESSAGE-TAGS: campaign-id=7\r\n\r\nhi\r\n').toString('base64')
  const EmailTags = Array.from({ length: 20 }, (_, nth) => ({ Name: `t.${nth}`, Value: 'v' }))
  const found = readSesEmail({ Content: { Raw: { Data } }, EmailTags }, 'test')
  if (!('raw' in found)) throw new Error('not a raw email')
  expect(Object.keys(checkRaw(found.raw).metadata ?? {})).toHaveLength(21)
})

test('a suppression names the message as its send returned it', async () => {
  const tenantId = await service.makeTenant('causes')
  const key = await service.makeKey({ tenantId })
  const id = await sendToMany(key, 2)
  const second = (await listEmailsOfMessage(service.db, id, tenantId))[1]
  const entry = { tenantId, address: 'to1@simulator.test', reason: 'hard fail' as const, at: new Date(), emailId: second?.id ?? '' }
  await service.db.transaction((tx) => suppress(tx, [entry]))
  expect(entry.emailId).not.toBe(id)
  expect((await resend('/suppressions', key)).body.data).toMatchObject([{ email: 'to1@simulator.test', source_id: id }])
  expect((await resend('/suppressions/to1@simulator.test', key)).body.source_id).toBe(id)
})

test('the activation of a bounce removes the entries that hold the mail of its tenant', async () => {
  const tenantId = await service.makeTenant('activation')
  const [keyOfTenant, keyOfOrganisation] = [await service.makeKey({ tenantId }), await service.makeKey({})]
  const [email] = await listEmailsOfMessage(service.db, await sendToMany(keyOfTenant, 1), tenantId)
  if (!email) throw new Error('the email is missing')
  await service.db.transaction(async (tx) => {
    await changeStatus(tx, email, ['pending'], 'hardfail')
    await appendEvents(tx, [{ tenantId, kind: 'MessageDeliveryFailed', emailId: email.id, at: email.acceptedAt, data: { was: 'pending' } }])
  })
  for (const list of ['', tenantId, service.tenantId]) await saveSuppression(service.db, list, { address: email.recipient }, Date.now())
  const id = (await postmark('/bounces?count=1&offset=0', keyOfTenant)).body.Bounces[0].ID
  const activate = async (key: string) => (await postmark(`/bounces/${id}/activate`, key, { method: 'PUT' })).body
  expect(await activate(keyOfTenant)).toMatchObject({ Message: 'OK', Bounce: { Inactive: true } })
  await saveSuppression(service.db, tenantId, { address: email.recipient }, Date.now())
  expect(await activate(keyOfOrganisation)).toMatchObject({ Message: 'OK', Bounce: { Inactive: false } })
  const { entry } = await findSuppression(service.db, service.tenantId, email.recipient)
  expect(entry).toBeDefined()
})

test('the quota of SES is the smallest limit of key, tenant and organisation', async () => {
  const tenantId = await service.makeTenant('quota')
  const body = { name: 'ses', type: 'api', mode: 'test', format: 'ses' }
  const made = await service.call('POST', `/tenants/${tenantId}/credentials`, { key: service.testKey, body })
  const key = made.body.data as { id: number } & SignedBy
  const client = sesv2Client(key, `http://127.0.0.1:${service.port}`)
  const quota = async () => (await client.send(new GetAccountCommand({}))).SendQuota?.Max24HourSend
  await setLimits(service.db, tenantLimitScope(tenantId), { sendPerHour: 100 })
  await expect.poll(quota).toBe(2400)
  await setLimits(service.db, keyLimitScope(key.id), { sendPerHour: 7 })
  await expect.poll(quota).toBe(168)
})

test("more recipients than a raw message of Postal may have are refused by their parameter's name", async () => {
  const key = await keyOfTenant('postal')
  const raw = Buffer.from('From: a@simulator.test\r\nTo: c@simulator.test\r\n\r\nhi\r\n').toString('base64')
  const body = { rcpt_to: Array.from({ length: 51 }, (_, nth) => `r${nth}@simulator.test`), mail_from: 'a@simulator.test', data: raw }
  const refused = await call('/api/v1/send/raw', { method: 'POST', headers: { 'x-server-api-key': key }, body })
  expect(refused.body.data.message).toBe('`rcpt_to` has more than 50 addresses')
})

test("Postmark's list has each message once on all pages, and its status filter finds those that it shows so", async () => {
  const tenantId = await service.makeTenant('list')
  const key = await service.makeKey({ tenantId })
  const ids = [await sendToMany(key, 3), await sendToMany(key, 3), await sendToMany(key, 3)].reverse()
  const [queued, partly, delayed] = ids as [string, string, string]
  const kinds = { softfail: 'MessageDelayed', held: 'MessageHeld' } as const
  const change = async (id: string, nth: number, to: keyof typeof kinds) => {
    const email = (await listEmailsOfMessage(service.db, id, tenantId))[nth]
    if (!email) throw new Error('the email is missing')
    await service.db.transaction(async (tx) => {
      expect(await changeStatus(tx, email, ['pending'], to)).toBe(true)
      await appendEvents(tx, [{ tenantId, kind: kinds[to], emailId: email.id, at: email.acceptedAt, data: { was: 'pending' } }])
    })
  }
  await change(partly, 1, 'held')
  await change(delayed, 0, 'softfail')
  await change(delayed, 2, 'softfail')
  const listed = async (query: string) => {
    const { body } = await postmark(`/messages/outbound?${query}`, key)
    const messages: { MessageID: string; Status: string }[] = body.Messages
    return { total: body.TotalCount, messages: messages.map((one) => [one.MessageID, one.Status]) }
  }
  const all = [
    [queued, 'Queued'],
    [partly, 'Sent'],
    [delayed, 'Queued'],
  ]
  // Without a filter by address or tag, the total counts recipients.
  expect(await listed('count=10')).toEqual({ total: 9, messages: all })
  expect(await listed('count=1&offset=1')).toEqual({ total: 9, messages: [all[1]] })
  expect(await listed('count=10&offset=3')).toEqual({ total: 9, messages: [] })
  expect(await listed('count=10&status=sent')).toEqual({ total: 1, messages: [all[1]] })
  expect(await listed('count=10&status=queued')).toEqual({ total: 8, messages: [all[0], all[2]] })
  expect(await listed('count=1&status=queued&offset=1')).toEqual({ total: 8, messages: [all[2]] })
  expect(await listed('count=10&fromemail=shop@simulator.test')).toEqual({ total: 3, messages: all })
  expect(await listed('count=10&recipient=to1@simulator.test')).toEqual({ total: 3, messages: all })
  expect(await listed('count=10&subject=hello')).toEqual({ total: 3, messages: all })
  expect(await listed('count=10&status=queued&subject=hello')).toEqual({ total: 2, messages: [all[0], all[2]] })
  expect(await listed('count=10&status=queued&recipient=to1@simulator.test')).toEqual({ total: 2, messages: [all[0], all[2]] })
})

test("Postmark's list by tag has each message once for a key of the organisation too", async () => {
  const key = await service.makeKey({})
  const ids = [await sendToMany(key, 3, { 'o:tag': 'by-tag' }), await sendToMany(key, 3, { 'o:tag': 'by-tag' })].reverse()
  for (const status of ['', '&status=queued']) {
    const pages = await Promise.all(
      [0, 1, 2].map((offset) => postmark(`/messages/outbound?count=1&offset=${offset}&tag=by-tag${status}`, key)),
    )
    expect(pages.map(({ body }) => body.Messages.map((one: { MessageID: string }) => one.MessageID))).toEqual([[ids[0]], [ids[1]], []])
  }
})

test("the total of Postmark's list is not too small with more than 1,000 messages", async () => {
  const key = await keyOfTenant('total')
  const one = { From: 'shop@simulator.test', To: 'a@simulator.test', Subject: 'Hello', TextBody: 'Hi' }
  for (let batch = 0; batch < 3; batch++)
    expect((await postmark('/email/batch', key, { method: 'POST', body: Array.from({ length: 350 }, () => one) })).status).toBe(200)
  for (const status of ['', '&status=queued']) {
    const ids = new Set<string>()
    for (let offset = 0, total = 1; offset < total; offset += 500) {
      const { body } = await postmark(`/messages/outbound?count=500&offset=${offset}${status}`, key)
      total = body.TotalCount
      for (const { MessageID } of body.Messages) ids.add(MessageID)
    }
    expect(ids.size).toBe(1050)
  }
})

const crowded = (messages: number, recipients: number) => {
  const To = Array.from({ length: recipients }, (_, nth) => `a${nth}@b.example`).join(',')
  return Array.from({ length: messages }, () => ({ From: 'shop@simulator.test', To, Subject: 'Hello', TextBody: 'Hi' }))
}

test.each([
  ['the test token', async () => 'POSTMARK_API_TEST'],
  ['a key', async () => service.testKey],
])("a batch of Postmark's with too many recipients is refused before its messages are checked: %s", async (_, keyFor) => {
  const queries = vi.spyOn(service.db, 'rows')
  const refused = await postmark('/email/batch', await keyFor(), { method: 'POST', body: crowded(21, 48) })
  expect(queries.mock.calls.filter(([statement]) => statement.text.includes('suppressions'))).toEqual([])
  queries.mockRestore()
  expect(refused).toMatchObject({ status: 422, body: { ErrorCode: 300, Message: expect.stringContaining('1008 recipients') } })
})

test('a body with the test token is at most 256 KiB, so that it reserves no memory', async () => {
  const send = (length: number) => {
    const body = { From: 'shop@simulator.test', To: 'a@b.example', TextBody: 'x'.repeat(length) }
    return postmark('/email', 'POSTMARK_API_TEST', { method: 'POST', body })
  }
  expect(await send(262_000)).toMatchObject({ status: 200, body: { ErrorCode: 0 } })
  expect(await send(262_144)).toMatchObject({ status: 413, body: { ErrorCode: 413, Message: expect.stringContaining('256 KiB') } })
})

test('the addresses of one IPv6 network share the rate of the test token', async () => {
  await using proxied = await startService({ rateLimit: 1, settings: { POSTRIDER_TRUSTED_PROXIES: '127.0.0.1' } })
  const statusFrom = async (address: string) => {
    const response = await fetch(`http://127.0.0.1:${proxied.port}/email`, {
      method: 'POST',
      headers: { 'x-postmark-server-token': 'POSTMARK_API_TEST', 'content-type': 'application/json', 'x-forwarded-for': address },
      body: JSON.stringify({ From: 'shop@simulator.test', To: 'a@b.example', TextBody: 'Hi' }),
    })
    return response.status
  }
  const statuses: number[] = []
  for (let nth = 0; nth < 40; nth++) statuses.push(await statusFrom(`2001:db8::${nth.toString(16)}`))
  expect(statuses).toContain(429)
  expect(await statusFrom('2001:db8:0:1::1')).toBe(200)
})

test("a NUL in a query is refused in each vendor's form", async () => {
  const key = await keyOfTenant('NUL')
  const mailgun = { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` }
  for (const parameter of ['tag=%00', 'subject=a%00', 'metadata_a=%00', 'metadata_%00=a', 'messagestream=%00', 'tag=a&tag=%00'])
    expect(await postmark(`/messages/outbound?count=1&${parameter}`, key)).toMatchObject({
      status: 422,
      body: { ErrorCode: 300, Message: expect.stringContaining('NUL') },
    })
  expect(await postmark('/bounces?count=1&tag=%00', key)).toMatchObject({ status: 422, body: { ErrorCode: 300 } })
  expect(await resend('/emails?after=%00', key)).toMatchObject({ status: 422, body: { message: expect.stringContaining('NUL') } })
  expect(await resend('/v3/suppression/bounces?limit=%00', key)).toMatchObject({
    status: 400,
    body: { errors: [{ message: expect.stringContaining('NUL') }] },
  })
  expect(await call('/v3/simulator.test/events?tags=%00', { headers: mailgun })).toMatchObject({
    status: 400,
    body: { message: expect.stringContaining('NUL') },
  })
})

const mailgunCall = (path: string, key: string, more: Omit<Called, 'headers'> = {}) =>
  call(path, { ...more, headers: { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` } })
const auditOf = (tenantId: string) =>
  service.db.rows(sql<{ action: string; data: object }>`select action, data from audit_entries where tenant_id = $1 order by id`, [
    tenantId,
  ])

test('an audit entry has no address of a suppression', async () => {
  const tenantId = await service.makeTenant('audit')
  const key = await service.makeKey({ tenantId })
  await resend('/suppressions', key, { method: 'POST', body: { email: 'ann@one.example' } })
  await resend('/suppressions/ann@one.example', key, { method: 'DELETE' })
  const entries = await auditOf(tenantId)
  expect(entries.map(({ action }) => action)).toEqual(['resend.suppressions.add', 'resend.suppressions.remove'])
  expect(JSON.stringify(entries)).not.toContain('ann@one.example')
})

/** As an import writes them. */
const addBounces = sql`
  insert into suppressions (tenant_id, address, reason, source, created_at)
  select $1, 'a' || nth || '@one.example', 'bounce', 'automatic', 'epoch'::timestamptz
  from generate_series(1, 50000) as nth`

test('a removal of many addresses that is not complete has an audit entry', async () => {
  for (const [vendor, clear] of [
    ['mailgun', (key: string) => mailgunCall('/v3/simulator.test/bounces', key, { method: 'DELETE' })],
    ['sendgrid', (key: string) => resend('/v3/suppression/bounces', key, { method: 'DELETE', body: { delete_all: true } })],
  ] as const) {
    const tenantId = await service.makeTenant(`many ${vendor}`)
    const key = await service.makeKey({ tenantId })
    await service.db.run(addBounces, [tenantId])
    expect((await clear(key)).status).toBe(400)
    expect((await auditOf(tenantId)).map(({ action }) => action)).toEqual([`${vendor}.bounces.clear`])
  }
}, 120_000)

test("a webhook of Mailgun's that was disabled gets only the event of the new one", async () => {
  const tenantId = await service.makeTenant('revived')
  const key = await service.makeKey({ tenantId })
  const url = 'https://hooks.one.example/a'
  const create = (id: string) => mailgunCall('/v3/domains/simulator.test/webhooks', key, { method: 'POST', body: { id, url: [url] } })
  const webhookOf = async () =>
    (await service.call('GET', '/webhooks', { key })).body.data as { webhooks: { id: string; events: string[] }[] }
  for (const id of ['opened', 'clicked']) expect((await create(id)).status).toBe(200)
  const [webhook] = (await webhookOf()).webhooks
  const disabled = await service.call('PATCH', `/webhooks/${webhook?.id}`, { key, body: { enabled: false } })
  expect(disabled.status).toBe(200)
  expect((await create('delivered')).status).toBe(200)
  expect((await webhookOf()).webhooks).toMatchObject([{ url, enabled: true, events: ['MessageSent'] }])
})

test("SendGrid's sandbox mode refuses and takes the same mail as a send, and sends nothing", async () => {
  const tenantId = await service.makeTenant('sandbox mode')
  const key = await service.makeKey({ tenantId })
  const statusesOf = async (more: object) => {
    const mail = {
      from: { email: 'shop@simulator.test' },
      personalizations: [{ to: [{ email: 'a@simulator.test' }] }],
      subject: 'Hello',
      content: [{ type: 'text/html', value: '<p>Hi</p>' }],
      ...more,
    }
    const send = (mail_settings: object) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ ...mail, mail_settings })
      return fetch(`http://127.0.0.1:${service.port}/v3/mail/send`, { method: 'POST', headers, body })
    }
    return [(await send({ sandbox_mode: { enable: true } })).status, (await send({})).status]
  }
  expect(await statusesOf({})).toEqual([200, 202])
  expect((await resend('/emails', key)).body.data).toHaveLength(1)
  expect(await statusesOf({ tracking_settings: { open_tracking: { enable: true } } })).toEqual([400, 400])
  expect(await statusesOf({ from: { email: 'shop@other.example' } })).toEqual([403, 403])
  expect(await statusesOf({ personalizations: [{ to: [{ email: 'a' }] }] })).toEqual([400, 400])
})
