/** Requests that are odd but allowed, and the contract's limits at the limit and one beyond, as clients send them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, type Service, startService } from '../support/in-process-service.ts'

let service: Service
let other: string
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null })
  other = await service.makeTenant('Other')
  await service.addDomain(other, 'other.example')
})
afterAll(() => service.stop())

const letter = { from: 'shop@simulator.test', to: ['ann@simulator.test'], subject: 'x' }
const raw = (text: string) => Buffer.from(text).toString('base64')
const rawMessage = raw('From: shop@simulator.test\r\n\r\nx')
const post = (path: string, body: object) => service.call('POST', path, { key: service.testKey, body })
const send = (changes: object) => post('/emails', { ...letter, ...changes })
const batch = (emails: object[]) => post('/emails/batch', { from: letter.from, emails })
const dataOf = <Data = Record<string, unknown>>({ body }: Answer): Data => {
  expect(body.error).toBe(undefined)
  return body.data as Data
}
const refused = (code: string, field: string) => ({ status: 400, body: { error: { code, field } } })

describe('the emails of a send', () => {
  const to = ['Ann@Simulator.TEST', 'ida@b\u00fccher.example']
  const given = (data: Record<string, unknown>) => Object.keys(data.messages as object)

  test('are found under the addresses as they were given', async () => {
    for (const answer of [await send({ to }), await post('/emails/raw', { from: letter.from, to, rawMessage })]) {
      expect(dataOf(answer)).toMatchObject({ to })
      expect(given(dataOf(answer))).toEqual(to)
    }
    const { results, ...whole } = dataOf<{ results: Record<string, unknown>[] }>(await batch([{ to, subject: 'x' }]))
    expect(given(whole)).toEqual(to)
    expect(results.map(given)).toEqual([to])
  })

  test('of an address that is given twice are found under the first spelling', async () => {
    expect(given(dataOf(await send({ to: ['BO@simulator.test'], cc: ['bo@SIMULATOR.test'] })))).toEqual(['BO@simulator.test'])
  })
})

describe('a batch of more than 1000 recipients in all', () => {
  const many = (count: number, n = 0) => Array.from({ length: count }, (_, index) => `r${n}x${index}@simulator.test`)
  const full = Array.from({ length: 20 }, (_, n) => ({ to: many(50, n), subject: 'x' }))

  test.each<[string, object[]]>([
    ['elements of which each has too many', Array.from({ length: 11 }, (_, n) => ({ to: many(100, n), subject: 'x' }))],
    ['one that lacks its subject', [...full, { to: many(1) }]],
    ['one of which only the copies can be counted', [...full, { to: 'x', cc: many(1), bcc: null }]],
  ])('is refused as a whole, also for %s', async (_, emails) => {
    expect(await batch(emails)).toMatchObject(refused('validation_error', 'emails'))
  })

  test('is one that has a wrong element without recipients not', async () => {
    expect(dataOf(await batch([...full, { to: 'x', refused: {}, recipients: 5 }]))).toMatchObject({ accepted: 20, failed: 1 })
  })
})

describe('an address or a message that is empty', () => {
  test.each<[object, string]>([
    [{ to: [''] }, 'to[0]'],
    [{ cc: ['a@simulator.test', ''] }, 'cc[1]'],
    [{ replyTo: '' }, 'replyTo'],
  ])('is none: %j', async (changes, field) => {
    expect(await send(changes)).toMatchObject(refused('invalid_email_format', field))
  })

  test('is no raw message', async () => {
    const answer = await post('/emails/raw', { ...letter, rawMessage: '' })
    expect(answer).toMatchObject(refused('invalid_raw_message', 'rawMessage'))
  })
})

test('a sender with its name has at most 1000 characters', async () => {
  const named = (length: number) => `${'n'.repeat(length - letter.from.length - 3)} <${letter.from}>`
  const { id } = dataOf<{ id: string }>(await send({ from: named(1000) }))
  expect((await service.call('GET', `/emails/${id}`, { key: service.testKey })).body.data).toMatchObject({ from: named(1000) })
  expect(await send({ from: named(1001) })).toMatchObject(refused('validation_error', 'from'))
})

test('the type of an attachment has at most 255 characters, wherever its slash is', async () => {
  const attached = (contentType: string) => send({ attachments: [{ filename: 'a', content: 'aGk=', contentType }] })
  const sent = dataOf<{ id: string }>(await attached(`a/${'b'.repeat(253)}`))
  const details = await service.call('GET', `/emails/${sent.id}?expand=attachments,raw`, { key: service.testKey })
  expect(details.body.data).toMatchObject({ attachments: [{ contentType: `a/${'b'.repeat(253)}` }] })
  expect(await attached(`a/${'b'.repeat(254)}`)).toMatchObject(refused('validation_error', 'attachments[0].contentType'))
})

test.each<[object, string]>([
  [{ html: '\u{1f600}'.repeat(4_000_000) }, 'html'],
  [{ text: '\u{1f600}'.repeat(4_000_000) }, 'text'],
  [{ text: 'x'.repeat(5_000_000), attachments: [{ filename: 'a', contentType: 'a/b', content: 'AAAA'.repeat(3_400_000) }] }, 'attachments'],
])('a message of more than 14 MB is refused with the name of its large part: %#', async (changes, field) => {
  expect(await send(changes)).toMatchObject(refused('payload_too_large', field))
})

test('an address in a query may have its plus sign as it is', async () => {
  const { id } = dataOf<{ id: string }>(await send({ to: ['plus+sign@simulator.test'] }))
  for (const to of ['plus+sign@simulator.test', 'plus%2Bsign@simulator.test'])
    expect((await service.call('GET', `/emails?to=${to}`, { key: service.testKey })).body).toMatchObject({ total: 1, data: [{ id }] })
  expect(await service.call('GET', '/emails?to=plus%20%20sign', { key: service.testKey })).toMatchObject(
    refused('invalid_email_format', 'to'),
  )
})

test('a send whose query alone names the tenant is sent by that tenant, and its body goes before its query', async () => {
  const from = 'a@other.example'
  for (const [path, body] of [
    ['/emails', { ...letter, from }],
    ['/emails/batch', { from, emails: [letter] }],
    ['/emails/raw', { ...letter, from, rawMessage: raw(`From: ${from}\r\n\r\nx`) }],
  ] as const) {
    expect(dataOf(await post(`${path}?tenantId=${other}`, body))).toMatchObject({ tenantId: other })
    expect(dataOf(await post(`${path}?tenant_id=${service.tenantId}`, { ...body, tenantId: other }))).toMatchObject({ tenantId: other })
    expect(await post(path, body)).toMatchObject({ body: { error: { code: 'domain_not_verified' } } })
  }
})

test('a key of a tenant names no other tenant in a body that the endpoint does not read', async () => {
  const tenantId = await service.makeTenant('Own')
  const key = await service.makeKey({ tenantId })
  const named = { key, body: { tenantId: other } }
  const { id } = dataOf<{ id: number }>(await service.call('POST', '/domains', { key, body: { name: 'own.example' } }))
  for (const [method, path] of [
    ['POST', `/domains/${id}/verify`],
    ['DELETE', `/domains/${id}`],
    ['DELETE', '/suppressions/a@own.example'],
    ['POST', '/emails/0000000000000000000000/retry'],
  ] as const)
    expect(await service.call(method, path, named)).toMatchObject({
      status: 403,
      body: { error: { code: 'tenant_mismatch', field: 'tenantId' } },
    })
  expect(await service.call('DELETE', `/domains/${id}`, { key, body: { tenantId } })).toMatchObject({ status: 200 })
})
